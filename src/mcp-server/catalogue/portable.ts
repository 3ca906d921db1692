/**
 * A contract's schema as clients everywhere can read it: one type for each branch, and no schema without a word.
 *
 * Guarantees: pure; what matches is the same to the letter. Providers that know a single `type` refuse a tool with a list of them, and take
 * a schema that says nothing for a mistake.
 */
import type { JsonObject, JsonSchema, JsonValue } from "../../manifest/types.ts"

const isObject = (value: JsonValue | undefined): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** Where a schema holds schemas: by name, in a list, or one. */
const NAMED = new Set(["properties", "patternProperties", "$defs", "dependentSchemas"])
const LISTED = new Set(["allOf", "anyOf", "oneOf", "prefixItems"])
const SINGLE = new Set(["items", "additionalProperties", "contains", "not", "if", "then", "else", "propertyNames"])
/** Words that match everything alone. */
const SILENT = new Set([
  "title",
  "description",
  "default",
  "examples",
  "$comment",
  "deprecated",
  "readOnly",
  "writeOnly",
])
const TYPES = ["object", "array", "string", "number", "boolean", "null"] as const

const branches = (types: readonly JsonValue[]): JsonObject => ({ anyOf: types.map((type) => ({ type })) })

const within = (key: string, value: JsonValue): JsonValue => {
  if (NAMED.has(key) && isObject(value))
    return Object.fromEntries(
      Object.entries(value).map(([name, schema]) => [name, isObject(schema) ? portable(schema) : schema]),
    )
  if (LISTED.has(key) && Array.isArray(value))
    return (value as readonly JsonValue[]).map((schema) => (isObject(schema) ? inner(schema) : schema))
  return SINGLE.has(key) && isObject(value) ? portable(value) : value
}
const inner = (schema: JsonSchema): JsonObject =>
  Object.fromEntries(Object.entries(schema).map(([key, value]) => [key, within(key, value)]))

export const portable = (schema: JsonSchema): JsonSchema => {
  const { type, ...rest } = inner(schema)
  if (Array.isArray(type) && rest["anyOf"] === undefined) return { ...rest, ...branches(type as readonly JsonValue[]) }
  if (type === undefined && Object.keys(rest).every((key) => SILENT.has(key))) return { ...rest, ...branches(TYPES) }
  return type === undefined ? rest : { type, ...rest }
}
