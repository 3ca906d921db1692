/**
 * Which values a driver's templates cannot do without, and this call does not bring.
 *
 * Guarantees: pure; the names are the contract's, mapping undone; each once, in the order of the templates. An absent
 * value for which the template, the filter or the contract has a default is no lack.
 */
import type { JsonObject, JsonValue } from "../../manifest/types.ts"
import type { Element, Piece } from "../invoke/template-check.ts"
import type { TemplatePath } from "../../manifest/template.ts"
import type { Binding } from "../registry/types.ts"

const piecesOf = (element: Element): readonly Piece[] => (element.type === "one" ? element.pieces : [])

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
  const pieces = [...(binding.argv?.elements.flatMap(piecesOf) ?? []), ...(binding.stdin?.pieces ?? [])]
  const missing = pieces.flatMap((piece) => {
    if (piece.type === "literal" || piece.fallback !== undefined) return []
    const values = piece.path.root === "context" ? context : mappedInput
    return values !== undefined && isAbsent(values, piece.path.keys) ? [contractName(binding, piece.path)] : []
  })
  return [...new Set(missing)]
}
