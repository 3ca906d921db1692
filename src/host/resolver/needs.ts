/**
 * Which values a driver's templates cannot do without, and this call does not bring.
 *
 * Guarantees: pure; the names are the contract's, mapping undone; each once, in the order of the templates. An absent
 * value for which the template, the filter or the contract has a default is no lack.
 */
import type { JsonObject, JsonValue } from "../../manifest/types.ts"
import type { TemplatePath } from "../../manifest/templates/template.ts"
import type { Binding } from "../drivers/kind.ts"

const isAbsent = (from: JsonObject, keys: readonly string[]): boolean => {
  let at: JsonValue | undefined = from
  for (const key of keys) {
    if (typeof at !== "object" || at === null || !Object.hasOwn(at, key)) return true
    at = (at as JsonObject)[key]
  }
  return at === undefined || at === null
}

const contractName = ({ implementation: { mapping } }: Binding, { root, keys }: TemplatePath): string => {
  const [head = "", ...rest] = keys
  if (root === "context") return ["context", ...keys].join(".")
  const from = Object.hasOwn(mapping, head) ? mapping[head]?.from : undefined
  return [from ?? head, ...rest].join(".")
}

/** `context` absent: it is not known, and nothing of it is missed. */
export const missingValues = (
  binding: Binding,
  mappedInput: JsonObject,
  context: JsonObject | undefined,
): readonly string[] => {
  const missing = binding.needs.flatMap((path) => {
    const values = path.root === "context" ? context : mappedInput
    return values !== undefined && isAbsent(values, path.keys) ? [contractName(binding, path)] : []
  })
  return [...new Set(missing)]
}
