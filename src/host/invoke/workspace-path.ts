/**
 * Inputs that name a file of the workspace: `format: workspace-path` in a tool's schema.
 *
 * Guarantees: what passes is relative, canonical, without `..`, and means the same file however it is joined.
 * Does not: touch the disk. Links inside the workspace are the sandbox's and the commit's business.
 */
import type { JsonObject, JsonSchema, JsonValue } from "../../manifest/types.ts"
import type { Failure } from "../failure.ts"
import { maxPathBytes, maxPathSegmentBytes } from "./limits.ts"
import { dereference, isObject } from "./schema-path.ts"

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

/** Schemas that apply to one value through any keyword; each at most once, whatever refers to it. */
const applies = (root: JsonSchema, schema: JsonValue | undefined, seen: Set<JsonObject>): readonly JsonObject[] => {
  const target = dereference(root, schema)
  if (target === undefined || seen.has(target)) return []
  seen.add(target)
  const branches = ["allOf", "anyOf", "oneOf"].flatMap((word) => {
    const list = target[word]
    return Array.isArray(list) ? (list as readonly JsonValue[]) : []
  })
  return [target, ...[...branches, target["then"], target["else"]].flatMap((branch) => applies(root, branch, seen))]
}

const walk = (root: JsonSchema, schemas: readonly JsonObject[], value: JsonValue, at: string): Failure | undefined => {
  if (typeof value === "string") {
    if (!schemas.some((schema) => schema["format"] === workspacePathFormat)) return undefined
    const [problem, fix] = workspacePathFault(value) ?? []
    if (problem === undefined || fix === undefined) return undefined
    return {
      ok: false,
      code: "input_invalid",
      message: `\`${at}\` is not a workspace path: it ${problem}`,
      hint: fix,
      details: { field: at },
    }
  }
  if (Array.isArray(value)) {
    for (const [index, item] of value.entries()) {
      const seen = new Set<JsonObject>()
      const inner = schemas.flatMap((schema) => {
        const prefix = schema["prefixItems"]
        return applies(root, Array.isArray(prefix) && index < prefix.length ? prefix[index] : schema["items"], seen)
      })
      const failure = walk(root, inner, item, `${at}[${index}]`)
      if (failure !== undefined) return failure
    }
  } else if (isObject(value)) {
    for (const [key, item] of Object.entries(value)) {
      const seen = new Set<JsonObject>()
      const inner = schemas.flatMap((schema) => {
        const properties = schema["properties"]
        const named = isObject(properties) && Object.hasOwn(properties, key)
        return applies(root, named ? properties[key] : schema["additionalProperties"], seen)
      })
      const failure = walk(root, inner, item, `${at}.${key}`)
      if (failure !== undefined) return failure
    }
  }
  return undefined
}

/** The first input marked `format: workspace-path` that is none. Assumes an input validated for shape and depth. */
export const checkWorkspacePaths = (schema: JsonSchema, input: JsonValue): Failure | undefined =>
  walk(schema, applies(schema, schema, new Set()), input, "input")
