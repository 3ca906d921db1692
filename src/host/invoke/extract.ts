/**
 * Taking from a result what `result_extract` or `response_extract` names.
 *
 * Guarantees: pure and total; only own properties count; work is bounded by the value's size times the path's steps.
 * After `[*]` or a filter what follows is taken of each item, and items that do not have it are left out.
 */
import type { ExtractPath } from "../../manifest/templates/extract.ts"
import type { JsonValue } from "../../manifest/types.ts"

const isRecord = (value: JsonValue): value is { readonly [key: string]: JsonValue } =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** Undefined where the path leads nowhere. */
export const extracted = (value: JsonValue, [step, ...rest]: ExtractPath): JsonValue | undefined => {
  if (step === undefined) return value
  if (step.take === "property") {
    const found = isRecord(value) && Object.hasOwn(value, step.name) ? value[step.name] : undefined
    return found === undefined ? undefined : extracted(found, rest)
  }
  if (!Array.isArray(value)) return undefined
  const items = value as readonly JsonValue[]
  if (step.take === "item") {
    const found = items[step.index]
    return found === undefined ? undefined : extracted(found, rest)
  }
  const meant =
    step.take === "all"
      ? items
      : items.filter((item) => isRecord(item) && Object.hasOwn(item, step.key) && item[step.key] === step.value)
  return meant.flatMap((item) => {
    const found = extracted(item, rest)
    return found === undefined ? [] : [found]
  })
}
