/**
 * A definition in code → front matter, through the same checks as a manifest's, in strict mode.
 *
 * Guarantees: what comes out is plain JSON, frozen, and shares nothing with what was given; a definition that is no
 * JSON, too large, or that the checks refuse throws `ManifestError` with every fault. No I/O beyond our own schemas.
 */
import { fileURLToPath } from "node:url"
import { limits } from "../manifest/limits.ts"
import type { DriverCode } from "../manifest/driver-code.ts"
import type { DefinedManifest } from "../manifest/read/defined.ts"
import { loadFront } from "../manifest/read/load.ts"
import { jcs } from "../manifest/values/digest.ts"
import { deepFreeze } from "../manifest/values/freeze.ts"
import type { JsonObject, Manifest, ManifestKind } from "../manifest/types.ts"
import { ManifestError } from "./manifest-error.ts"
import { asManifest, type Keys, SpellingFault } from "./spelling.ts"
import type { DefineOptions } from "./types.ts"

/** The name of the function, as its faults begin. */
export interface Definer {
  readonly name: string
  readonly file: string
}

export const fault = (by: Definer, rule: string, path: string, message: string, fix: string): ManifestError =>
  new ManifestError(by.name, [{ severity: "error", rule, file: by.file, path, message, fix }])

/** Where a definition is written. */
export const moduleOf = ({ module }: DefineOptions): string | undefined => {
  if (module === undefined) return undefined
  if (typeof module !== "string" || !(module.startsWith("file:") || module.startsWith("/")))
    throw new TypeError("`module` is `import.meta.url`, or the absolute path of a file")
  return module.startsWith("file:") ? fileURLToPath(module) : module
}

/** `/app/drivers.ts#driver:echo`; the part behind the last slash is a name, so that paths start beside the module. */
export const definer = (name: string, kind: string, id: unknown, options: DefineOptions): Definer => ({
  name,
  file: `${moduleOf(options) ?? "<code>"}#${kind}:${String(id).replaceAll("/", "+").slice(0, 128)}`,
})

/** The block as plain JSON in the manifest's spelling. */
export const frontOf = (by: Definer, block: object, keys: Keys): JsonObject => {
  const bad = (message: string, path = ""): ManifestError =>
    fault(by, "not-json", path, message, "pass a plain object of JSON values")
  let text: string
  let written: string
  try {
    const plain = asManifest(block, keys)
    // That it is JSON, and nothing else; its keys stay in the order that they were written in, as a file's do.
    text = jcs(plain)
    written = JSON.stringify(plain)
  } catch (error) {
    throw bad(error instanceof Error ? error.message : String(error), error instanceof SpellingFault ? error.path : "")
  }
  if (text.length > limits.frontmatterBytes * 4) throw bad("the definition is too large")
  if (/"(?:__proto__|constructor|prototype)":/.test(text))
    throw bad("the keys `__proto__`, `constructor` and `prototype` are not allowed")
  return deepFreeze(JSON.parse(written) as JsonObject)
}

interface Made<M extends Manifest> extends DefinedManifest {
  readonly contract: M
}

export const make = <M extends Manifest>(
  by: Definer,
  doctype: ManifestKind,
  front: JsonObject,
  code?: DriverCode,
): Made<M> => {
  const { result } = loadFront(by.file, doctype, front, "strict", code === undefined ? {} : { code })
  if (!result.ok) throw new ManifestError(by.name, result.diagnostics)
  return { doctype, file: by.file, front, contract: result.manifest as M, ...(code === undefined ? {} : { code }) }
}
