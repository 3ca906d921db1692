/**
 * Text of a config file → the settings in it, in the shape of its schema.
 *
 * Guarantees: strict. An unknown key is an error that names the nearest known one; nothing is guessed, and no part of a
 * file with errors is used. Read by the same safe parser as manifests. A setting that is left empty is not there. Pure.
 */
import type { Report } from "../../manifest/values/diagnostics.ts"
import { isObject } from "../../manifest/values/fields.ts"
import { parseYaml } from "../../manifest/read/safe-yaml.ts"
import { checkShape, type ShapeName } from "../../manifest/schema/shape.ts"
import type { JsonObject } from "../../manifest/types.ts"

/** Mappings whose keys are the operator's: an empty value is a mistake there. */
const FREE = ["env", "services", "logins", "annotations", "amplifier", "amplifier_hooks"]

const withoutEmpty = (settings: JsonObject): JsonObject =>
  Object.fromEntries(
    Object.entries(settings)
      .filter(([, value]) => value !== null)
      .map(([key, value]) => [key, isObject(value) && !FREE.includes(key) ? withoutEmpty(value) : value]),
  )

export const readSettings = <T>(source: string, shape: ShapeName, report: Report): T | undefined => {
  const parsed = parseYaml(source, report)
  if (!parsed.ok) return undefined
  const written = parsed.value ?? {}
  const settings = isObject(written) ? withoutEmpty(written) : written
  return checkShape(shape, settings, report) ? (settings as T) : undefined
}
