/**
 * A schema as its author has it → JSON Schema, which is the only form that is kept, checked and shown.
 *
 * Guarantees: a plain object is taken as JSON Schema as it stands; a schema of a library (Standard Schema) is asked for
 * its JSON Schema by the interface that the libraries agreed on (`~standard.jsonSchema`, draft 2020-12): of what may be
 * given for inputs, of what comes out for outputs. What a library cannot say in JSON Schema (dates, transforms) is
 * refused in its own words, and a schema that cannot be converted says how to hand it over instead.
 * Does not: run a library's own checks. A rule that a library does not put into its JSON Schema (zod's `refine`) is not
 * part of the contract.
 */
import type { JsonObject } from "../manifest/types.ts"

/** Whose side of a library's schema is meant: what may be written, or what is there once it was read. */
export type Side = "input" | "output"

type Canonical =
  | { readonly ok: true; readonly schema: JsonObject }
  | { readonly ok: false; readonly message: string; readonly fix: string }

const DRAFT = "draft-2020-12"
const DIALECT = "https://json-schema.org/draft/2020-12/schema"

interface Standard {
  readonly vendor?: unknown
  readonly jsonSchema?: Partial<Record<Side, (options: { readonly target: string }) => unknown>>
}

/** How a schema of a library that has no converter of its own is handed over. */
const HAND_OVER: Readonly<Record<string, string>> = {
  zod: "take zod 4.2 or later, or pass what `z.toJSONSchema(schema)` gives",
  valibot: "pass what `toStandardJsonSchema(schema)` or `toJsonSchema(schema)` of @valibot/to-json-schema gives",
}

const refused = (message: string, fix: string): Canonical => ({ ok: false, message, fix })

const isObject = (value: unknown): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** A schema that says which draft it is written in says nothing more by it where that draft is ours. */
const withoutDialect = ({ $schema: dialect, ...schema }: JsonObject): JsonObject =>
  dialect === undefined || dialect === DIALECT || dialect === `${DIALECT}#` ? schema : { $schema: dialect, ...schema }

const convert = ({ vendor, jsonSchema }: Standard, side: Side): Canonical => {
  const library = typeof vendor === "string" ? vendor.slice(0, 40) : "unknown"
  const converter = jsonSchema?.[side]
  if (typeof converter !== "function")
    return refused(
      `a schema of \`${library}\` that cannot say itself in JSON Schema (no \`~standard.jsonSchema\`)`,
      HAND_OVER[library] ?? "pass it as JSON Schema",
    )
  let schema: unknown
  try {
    schema = converter({ target: DRAFT })
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    return refused(`\`${library}\` cannot say this in JSON Schema: ${why}`, "use types that JSON has")
  }
  return isObject(schema)
    ? { ok: true, schema: withoutDialect(schema) }
    : refused(`\`${library}\` gave no JSON Schema object`, "pass it as JSON Schema")
}

export const canonicalSchema = (value: unknown, side: Side): Canonical => {
  const isCallable = typeof value === "function"
  if (!isObject(value) && !isCallable)
    return refused("a schema is a JSON Schema object, or a schema of a library", "write `{ type: 'object' }`")
  const standard: unknown = (value as { readonly "~standard"?: unknown })["~standard"]
  if (isObject(standard)) return convert(standard as Standard, side)
  if (isCallable) return refused("a function is no schema", "pass JSON Schema, or a Standard Schema")
  const proto: unknown = Object.getPrototypeOf(value)
  if (proto !== Object.prototype && proto !== null)
    return refused(
      "an instance of a class that is no Standard Schema",
      "pass JSON Schema, or a schema of a library that follows standardschema.dev",
    )
  return { ok: true, schema: withoutDialect(value) }
}
