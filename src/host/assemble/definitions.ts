/**
 * What a program hands to `createHost` as manifests: folders, and what the define functions returned.
 *
 * Guarantees: a definition is taken by its data alone, as plain JSON, whoever made it; it is then read, checked and
 * registered as a file is. A mistake in what was handed over is the program's own and stops the start.
 */
import type { DriverCode } from "../../manifest/driver-code.ts"
import { ADAPTERS } from "../../manifest/driver-code.ts"
import type { DefinedManifest } from "../../manifest/read/defined.ts"
import { jcs } from "../../manifest/values/digest.ts"
import { deepFreeze } from "../../manifest/values/freeze.ts"
import type { JsonObject, ManifestKind } from "../../manifest/types.ts"
import { HostStartError } from "../start-error.ts"

const KINDS: readonly ManifestKind[] = ["tool", "driver", "cli", "secrets", "action", "policy"]

const isText = (value: unknown): value is string => typeof value === "string"
const isTexts = (value: unknown): value is readonly string[] => Array.isArray(value) && value.every(isText)

const isCode = (value: unknown): value is DriverCode => {
  if (typeof value !== "object" || value === null) return false
  const { module, export: name, execute, adapters, transforms } = value as Partial<Record<keyof DriverCode, unknown>>
  return (
    (module === undefined || (isText(module) && module.startsWith("/"))) &&
    isText(name) &&
    (execute === undefined || isTexts(execute)) &&
    isTexts(adapters) &&
    adapters.every((each) => (ADAPTERS as readonly string[]).includes(each)) &&
    isTexts(transforms)
  )
}

const definitionOf = (given: unknown): DefinedManifest | undefined => {
  if (typeof given !== "object" || given === null) return undefined
  const { doctype, file, front, code } = given as Partial<Record<keyof DefinedManifest, unknown>>
  if (!KINDS.includes(doctype as ManifestKind) || !isText(file)) return undefined
  if (code !== undefined && !isCode(code)) return undefined
  try {
    const data = JSON.parse(jcs(front)) as JsonObject
    const kept = code === undefined ? {} : { code: JSON.parse(jcs(code)) as DriverCode }
    return deepFreeze({ doctype: doctype as ManifestKind, file, front: data, ...kept })
  } catch {
    return undefined
  }
}

export const sortedManifests = (
  given: readonly unknown[],
): { readonly manifests: readonly string[]; readonly defined: readonly DefinedManifest[] } => {
  const defined = given.flatMap((each, index) => {
    if (isText(each)) return []
    const definition = definitionOf(each)
    if (definition === undefined)
      throw new HostStartError(
        "input_invalid",
        `manifests[${index}] is neither a folder's path nor what a define function returned`,
        "pass a path, or the value of `defineTool(…)`, `defineDriver(…)` and their like",
      )
    return [definition]
  })
  return { manifests: given.filter(isText), defined }
}
