/**
 * What a JSON Schema says about the value at a path.
 *
 * Guarantees: pure, bounded (local `$ref` only, at most 32 hops), own properties only. Says `unknown` for anything it
 * does not understand (`allOf`, `oneOf`, foreign `$ref`, …), and callers treat that as the least trusted.
 * Does not: validate values.
 */
import type { JsonObject, JsonSchema, JsonValue } from "../../manifest/types.ts"

export interface SchemaFacts {
  /** false: the schema is closed or lists properties and this is none of them */
  readonly declared: boolean
  /** every object on the way requires the next key */
  readonly always: boolean
  /** the schema's `default` */
  readonly default?: JsonValue
  readonly types: readonly string[] | "unknown"
  /** the texts it can have when it is a string, from `enum` or `const` */
  readonly allowed?: ReadonlySet<string>
}

export const isObject = (value: JsonValue | undefined): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const own = (value: JsonObject, key: string): JsonValue | undefined =>
  Object.hasOwn(value, key) ? value[key] : undefined

const pointer = (root: JsonSchema, ref: string): JsonValue | undefined => {
  if (!ref.startsWith("#/")) return ref === "#" ? root : undefined
  let at: JsonValue | undefined = root
  for (const step of ref.slice(2).split("/")) {
    if (!isObject(at)) return undefined
    at = own(at, step.replaceAll("~1", "/").replaceAll("~0", "~"))
  }
  return at
}

/** What its own `$ref` leads to, one step. */
export const referredBy = (root: JsonSchema, schema: JsonObject): JsonValue | undefined => {
  const ref = own(schema, "$ref")
  return typeof ref === "string" ? pointer(root, ref) : undefined
}

/** The schema itself, or what its local `$ref` leads to. */
export const dereference = (root: JsonSchema, schema: JsonValue | undefined): JsonObject | undefined => {
  let at = schema
  for (let hops = 0; hops < 32; hops++) {
    if (!isObject(at)) return undefined
    const ref = own(at, "$ref")
    if (typeof ref !== "string") return at
    at = pointer(root, ref)
  }
  return undefined
}

const typesOf = (schema: JsonObject): SchemaFacts["types"] => {
  const type = own(schema, "type")
  if (typeof type === "string") return [type]
  if (Array.isArray(type)) return type.filter((each): each is string => typeof each === "string")
  const values = own(schema, "enum") ?? (Object.hasOwn(schema, "const") ? [own(schema, "const") ?? null] : undefined)
  if (!Array.isArray(values)) return "unknown"
  return [...new Set(values.map((value) => (value === null ? "null" : Array.isArray(value) ? "array" : typeof value)))]
}

const allowedOf = (schema: JsonObject): ReadonlySet<string> | undefined => {
  const values = Object.hasOwn(schema, "const") ? [own(schema, "const")] : own(schema, "enum")
  if (!Array.isArray(values)) return undefined
  return new Set(values.filter((value): value is string => typeof value === "string"))
}

const step = (
  schema: JsonObject,
  key: string,
): { child: JsonValue | undefined; declared: boolean; always: boolean } => {
  const properties = own(schema, "properties")
  if (isObject(properties) && Object.hasOwn(properties, key)) {
    const child = properties[key]
    const required = own(schema, "required")
    return { child, declared: true, always: Array.isArray(required) && required.includes(key) }
  }
  if (/^\d+$/.test(key) && own(schema, "items") !== undefined)
    return { child: own(schema, "items"), declared: true, always: false }
  const extra = own(schema, "additionalProperties")
  if (isObject(extra)) return { child: extra, declared: true, always: false }
  const open = ["allOf", "anyOf", "oneOf", "patternProperties", "if", "$dynamicRef"].some((word) =>
    Object.hasOwn(schema, word),
  )
  return { child: undefined, declared: open || (!isObject(properties) && extra !== false), always: false }
}

export const factsAt = (root: JsonSchema, keys: readonly string[]): SchemaFacts => {
  let at: JsonObject | undefined = dereference(root, root)
  let always = true
  for (const key of keys) {
    if (at === undefined) return { declared: true, always: false, types: "unknown" }
    const taken = step(at, key)
    if (!taken.declared) return { declared: false, always: false, types: "unknown" }
    always &&= taken.always
    at = dereference(root, taken.child)
  }
  if (at === undefined) return { declared: true, always, types: "unknown" }
  const allowed = allowedOf(at)
  const fallback = own(at, "default")
  return {
    declared: true,
    always,
    types: typesOf(at),
    ...(fallback === undefined ? {} : { default: fallback }),
    ...(allowed === undefined ? {} : { allowed }),
  }
}
