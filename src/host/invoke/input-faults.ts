/**
 * What is wrong with an input, for whoever wrote it: every problem, and what a good one looks like.
 *
 * Guarantees: names fields and never their values; the example comes from the contract alone. Bounded. Pure.
 */
import { shown } from "../../manifest/values/diagnostics.ts"
import type { ValueFault } from "../../manifest/schema/json-schema.ts"
import type { JsonObject, JsonSchema, JsonValue, ToolContract } from "../../manifest/types.ts"
import { shownFaults, shownExampleChars } from "./limits.ts"
import { dereference, isObject } from "./schema-path.ts"

/** ``input `a` is missing; `b` is not a known property, did you mean `c`?`` */
export const faultsText = (what: string, faults: readonly ValueFault[]): string => {
  const said = faults
    .slice(0, shownFaults)
    .map(({ path, message }) => (path === "" ? message : `\`${path}\` ${message}`))
  const more = faults.length - said.length
  return `${what} ${said.join("; ") || "does not match the schema"}${more > 0 ? `; and ${more} more` : ""}`
}

const sample = (root: JsonSchema, schema: JsonValue | undefined, depth: number): JsonValue => {
  const at = dereference(root, schema)
  if (at === undefined || depth > 4) return "…"
  if (at["default"] !== undefined) return at["default"]
  if (at["const"] !== undefined) return at["const"]
  const values = at["enum"] ?? at["examples"]
  if (Array.isArray(values) && values.length > 0) return (values as readonly JsonValue[])[0] ?? null
  switch (Array.isArray(at["type"]) ? (at["type"] as readonly JsonValue[])[0] : at["type"]) {
    case "object":
      return sampleObject(root, at, depth)
    case "array":
      return [sample(root, at["items"], depth + 1)]
    case "integer":
    case "number":
      return typeof at["minimum"] === "number" ? at["minimum"] : 1
    case "boolean":
      return true
    case "null":
      return null
    default:
      return "…"
  }
}

const sampleObject = (root: JsonSchema, schema: JsonObject, depth: number): JsonObject => {
  const properties = isObject(schema["properties"]) ? schema["properties"] : {}
  const required = Array.isArray(schema["required"]) ? (schema["required"] as readonly JsonValue[]) : []
  return Object.fromEntries(
    required
      .filter((key): key is string => typeof key === "string" && Object.hasOwn(properties, key))
      .map((key) => [key, sample(root, properties[key], depth + 1)]),
  )
}

/** The contract's first example, else one made from its schema. */
export const exampleInput = ({ inputs, examples }: Pick<ToolContract, "inputs" | "examples">): string => {
  const given = examples[0]?.input ?? sampleObject(inputs, dereference(inputs, inputs) ?? {}, 0)
  return shown(JSON.stringify(given), shownExampleChars)
}
