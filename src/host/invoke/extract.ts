/**
 * What a path (`result_extract`, `response_extract`) takes of a value.
 *
 * Guarantees: own properties only, nothing is evaluated, total; what is not there is undefined, and `[*]` and `[?()]` give
 * lists of what is. Linear in the value for each step.
 */
import type { ExtractPath } from "../../manifest/templates/extract.ts"
import type { JsonValue } from "../../manifest/types.ts"
import { isObject } from "./schema-path.ts"

const isList = (value: JsonValue | undefined): value is readonly JsonValue[] => Array.isArray(value)

export const extract = (value: JsonValue, [step, ...rest]: ExtractPath): JsonValue | undefined => {
  if (step === undefined) return value
  if (step.take === "property")
    return isObject(value) && Object.hasOwn(value, step.name) ? extractFrom(value[step.name], rest) : undefined
  if (!isList(value)) return undefined
  if (step.take === "item") return extractFrom(value[step.index], rest)
  const items =
    step.take === "all"
      ? value
      : value.filter((item) => isObject(item) && Object.hasOwn(item, step.key) && item[step.key] === step.value)
  return items.flatMap((item) => {
    const taken = extract(item, rest)
    return taken === undefined ? [] : [taken]
  })
}

const extractFrom = (value: JsonValue | undefined, path: ExtractPath): JsonValue | undefined =>
  value === undefined ? undefined : extract(value, path)
