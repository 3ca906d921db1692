/**
 * Inputs that name a file of the workspace: `format: workspace-path` in a tool's schema.
 *
 * Guarantees: what passes is relative, canonical, without `..`, and means the same file however it is joined.
 * Does not: touch the disk. Links inside the workspace are the sandbox's and the commit's business.
 */
import type { JsonObject, JsonSchema, JsonValue } from "../../manifest/types.ts"
import type { Failure } from "../failure.ts"
import { maxPathBytes, maxPathSegmentBytes } from "./limits.ts"
import { isObject, referredBy } from "./schema-path.ts"

const workspacePathFormat = "workspace-path"

/** Why the text names nothing in the workspace; undefined where it does. */
export const workspacePathFault = (text: string): readonly [problem: string, fix: string] | undefined => {
  if (text === "") return ["is empty", "write `.` for the workspace itself"]
  if (text.includes("\0")) return ["contains a NUL character", "remove it"]
  if (!text.isWellFormed()) return ["is not well-formed Unicode", "remove the lone surrogates"]
  if (text.startsWith("/")) return ["is absolute", "write it relative to the workspace"]
  if (text === "~" || text.startsWith("~/"))
    return ["starts with `~`, which is not expanded", "write it relative to the workspace"]
  if (Buffer.byteLength(text) > maxPathBytes) return [`is longer than ${maxPathBytes} bytes`, "use a shorter path"]
  if (text === ".") return undefined
  for (const segment of text.split("/")) {
    if (segment === "") return ["has an empty segment", "write single slashes and none at the end"]
    if (segment === ".") return ["has a `.` segment", "leave it out"]
    if (segment === "..") return ["has a `..` segment", "name a path inside the workspace"]
    if (Buffer.byteLength(segment) > maxPathSegmentBytes)
      return [`has a segment longer than ${maxPathSegmentBytes} bytes`, "use shorter names"]
  }
  return undefined
}

const record = (value: JsonValue | undefined): JsonObject => (isObject(value) ? value : {})
const list = (value: JsonValue | undefined): readonly JsonValue[] =>
  Array.isArray(value) ? (value as readonly JsonValue[]) : []

/** Keywords whose schemas look at the same value; what `not` says is no mark. */
const inPlace = (schema: JsonObject): readonly (JsonValue | undefined)[] => [
  ...["allOf", "anyOf", "oneOf"].flatMap((word) => list(schema[word])),
  ...["if", "then", "else"].map((word) => schema[word]),
  ...Object.values(record(schema["dependentSchemas"])),
]

/** Schemas that apply to one value through any keyword, those beside a `$ref` too; each at most once, whatever refers to it. */
const applies = (root: JsonSchema, schema: JsonValue | undefined, seen: Set<JsonObject>): readonly JsonObject[] => {
  if (!isObject(schema) || seen.has(schema)) return []
  seen.add(schema)
  return [schema, ...[referredBy(root, schema), ...inPlace(schema)].flatMap((branch) => applies(root, branch, seen))]
}

/** What a schema says of a property, of those that it names, by itself or by a pattern. */
const namedBy = (schema: JsonObject, key: string): readonly JsonValue[] => {
  const properties = record(schema["properties"])
  const named = Object.hasOwn(properties, key) ? [properties[key] ?? true] : []
  const patterns = Object.entries(record(schema["patternProperties"]))
  return [...named, ...patterns.filter(([text]) => new RegExp(text, "u").test(key)).map(([, each]) => each)]
}

const ofProperty = (schemas: readonly JsonObject[], key: string): readonly (JsonValue | undefined)[] => {
  const evaluated = schemas.some(
    (schema) => namedBy(schema, key).length > 0 || isObject(schema["additionalProperties"]),
  )
  return schemas.flatMap((schema) => {
    const named = namedBy(schema, key)
    return [
      ...(named.length > 0 ? named : [schema["additionalProperties"]]),
      ...(evaluated ? [] : [schema["unevaluatedProperties"]]),
    ]
  })
}

const ofItem = (schemas: readonly JsonObject[], index: number): readonly (JsonValue | undefined)[] =>
  schemas.flatMap((schema) => {
    const prefix = list(schema["prefixItems"])
    return index < prefix.length ? [prefix[index]] : [schema["items"] ?? schema["unevaluatedItems"]]
  })

const isMarked = (schemas: readonly JsonObject[]): boolean =>
  schemas.some((schema) => schema["format"] === workspacePathFormat)

const faultOf = (text: string, at: string, what: string): Failure | undefined => {
  const [problem, fix] = workspacePathFault(text) ?? []
  if (problem === undefined || fix === undefined) return undefined
  return {
    ok: false,
    code: "input_invalid",
    message: `${what} is not a workspace path: it ${problem}`,
    hint: fix,
    details: { field: at },
  }
}

const walk = (root: JsonSchema, schemas: readonly JsonObject[], value: JsonValue, at: string): Failure | undefined => {
  const inner = (found: readonly (JsonValue | undefined)[]): readonly JsonObject[] => {
    const seen = new Set<JsonObject>()
    return found.flatMap((schema) => applies(root, schema, seen))
  }
  if (typeof value === "string") return isMarked(schemas) ? faultOf(value, at, `\`${at}\``) : undefined
  if (Array.isArray(value)) {
    for (const [index, item] of value.entries()) {
      const failure = walk(root, inner(ofItem(schemas, index)), item, `${at}[${index}]`)
      if (failure !== undefined) return failure
    }
  } else if (isObject(value)) {
    const marksNames = isMarked(inner(schemas.map((schema) => schema["propertyNames"])))
    for (const [key, item] of Object.entries(value)) {
      const misnamed = marksNames ? faultOf(key, at, `a name in \`${at}\``) : undefined
      const failure = misnamed ?? walk(root, inner(ofProperty(schemas, key)), item, `${at}.${key}`)
      if (failure !== undefined) return failure
    }
  }
  return undefined
}

/** The first input marked `format: workspace-path` that is none. Assumes an input validated for shape and depth. */
export const checkWorkspacePaths = (schema: JsonSchema, input: JsonValue): Failure | undefined =>
  walk(schema, applies(schema, schema, new Set()), input, "input")
