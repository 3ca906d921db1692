/**
 * The schemas that calls were valid against, kept beside the evidence: each once, under its digest.
 *
 * Guarantees: a digest that is answered names a file with just the bytes that it is the digest of (canonical JSON), on disk
 * before the receipt that names it. What cannot be kept is not named. A file that is there already is compared once.
 */
import { createHash } from "node:crypto"
import { existsSync, readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { auditSchemasFolder } from "../../data-folder/paths.ts"
import { jcs } from "../../manifest/values/digest.ts"
import type { JsonObject, JsonSchema, ToolContract } from "../../manifest/types.ts"
import { writeWhole } from "../data/write-whole.ts"

const DIGEST = /^[0-9a-f]{64}$/
const nameOf = (hex: string): string => `${hex}.json`
const hexOf = (text: string | Buffer): string => createHash("sha256").update(text).digest("hex")

const isKept = (file: string, text: string): boolean => {
  try {
    return readFileSync(file, "utf8") === text
  } catch {
    return false
  }
}

const write = (folder: string, hex: string, text: string): void => {
  const file = join(folder, nameOf(hex))
  if (isKept(file, text)) return
  writeWhole(file, text, 0o600)
}

/** Contracts live as long as a generation of manifests: what was kept for one is not written again. */
const kept = new Map<string, WeakMap<ToolContract, JsonObject>>()

/** `{ input, output, context }` by digest; nothing where they cannot be kept. */
export const keepSchemas = (data: string, tool: ToolContract): JsonObject | undefined => {
  const here = kept.get(data) ?? new WeakMap<ToolContract, JsonObject>()
  kept.set(data, here)
  const known = here.get(tool)
  // The evidence may have been moved aside meanwhile, to begin anew.
  if (known !== undefined && existsSync(auditSchemasFolder(data))) return known
  try {
    const keep = (schema: JsonSchema): string => {
      const text = jcs(schema)
      const hex = hexOf(text)
      write(auditSchemasFolder(data), hex, text)
      return `sha256:${hex}`
    }
    const named = {
      input: keep(tool.inputs),
      output: keep(tool.outputs),
      ...(tool.contextSchema === undefined ? {} : { context: keep(tool.contextSchema) }),
    }
    here.set(tool, named)
    return named
  } catch {
    return undefined
  }
}

/** Those that lie in a folder as their names say; what is asked for and is not among them was changed or taken away. */
export const schemasIn = (data: string): ReadonlySet<string> => {
  const folder = auditSchemasFolder(data)
  let names: readonly string[]
  try {
    names = readdirSync(folder)
  } catch {
    return new Set()
  }
  const whole = names.filter((name) => {
    const hex = name.slice(0, -".json".length)
    if (!DIGEST.test(hex) || name !== nameOf(hex)) return false
    try {
      return hexOf(readFileSync(join(folder, name))) === hex
    } catch {
      return false
    }
  })
  return new Set(whole.map((name) => `sha256:${name.slice(0, -".json".length)}`))
}
