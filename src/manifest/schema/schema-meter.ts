/**
 * Puts step counters (`x-step`) into a checked schema, so that a validation's work can be counted as it runs.
 *
 * Guarantees: between two counters the work is at most the weight of the first; every way in which work can multiply
 * (following a reference, applying a subschema to each part of a value) passes a counter. Meaning is unchanged.
 */
/** keywords whose subschema is applied once for every item or property of the value */
const EACH = new Set([
  "items",
  "contains",
  "additionalProperties",
  "patternProperties",
  "propertyNames",
  "unevaluatedProperties",
  "unevaluatedItems",
])
const VERBATIM = new Set(["enum", "const", "default", "examples", "required", "dependentRequired"])

/**
 * Put a counter wherever work can multiply: where a reference is followed and where a subschema is applied to each
 * part of a value. A counter's weight is the number of subschemas checked before the next counter.
 */
export function metered(node: unknown, each: boolean): { readonly copy: unknown; readonly weight: number } {
  if (Array.isArray(node)) {
    const parts = node.map((item) => metered(item, each))
    return { copy: parts.map((part) => part.copy), weight: parts.reduce((sum, part) => sum + part.weight, 0) }
  }
  if (node === null || typeof node !== "object") return { copy: node, weight: 0 }
  const copy: Record<string, unknown> = {}
  let weight = 1
  for (const [key, value] of Object.entries(node)) {
    if (VERBATIM.has(key)) {
      copy[key] = value
      weight += Array.isArray(value) ? Math.ceil(value.length / 8) : 0
      continue
    }
    const map =
      key === "properties" ||
      key === "patternProperties" ||
      key === "dependentSchemas" ||
      key === "$defs" ||
      key === "definitions"
    const parts = map
      ? Object.entries(value as object).map(([name, sub]) => ({ name, ...metered(sub, EACH.has(key)) }))
      : [{ name: "", ...metered(value, EACH.has(key)) }]
    copy[key] = map ? Object.fromEntries(parts.map((part) => [part.name, part.copy])) : parts[0]?.copy
    if (!key.startsWith("$def") && key !== "definitions") weight += parts.reduce((sum, part) => sum + part.weight, 0)
  }
  if (!each && typeof copy["$ref"] !== "string") return { copy, weight }
  // following a reference costs a call, which is dearer than a check in place
  copy["x-step"] = typeof copy["$ref"] === "string" ? weight + 3 : weight
  return { copy, weight: 1 }
}
