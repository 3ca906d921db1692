/**
 * Static checks on a foreign JSON Schema (2020-12) before it is compiled.
 *
 * Guarantees for a schema that passes: known keywords have the right shape; size, depth, number of subschemas,
 * properties, enum values and references are within `limits`; every `$ref` points inside the schema or to a stub
 * that ships with us (C-38), so nothing is ever fetched; every pattern compiles under RE2; no reference leads back
 * to itself without going down into the value. The result is a copy without `$schema`, `$id` and unknown keywords.
 * Does not: bound the work of a validation; json-schema.ts does that with a step budget.
 */
import { joinPath, shown } from "../values/diagnostics.ts"
import { limits } from "../limits.ts"
import { compilePattern } from "./pattern.ts"
import { DIALECTS, IN_PLACE, KEYWORDS, REFUSED, STUB, TYPES } from "./schema-keywords.ts"
import type { Shape } from "./schema-keywords.ts"
import type { JsonObject, JsonValue } from "../base-types.ts"

export interface SchemaFault {
  readonly path: string
  readonly message: string
  readonly fix: string
}

class Fault extends Error {
  readonly fault: SchemaFault
  constructor(path: string, message: string, fix: string) {
    super(message)
    this.fault = { path, message, fix }
  }
}

interface Walk {
  readonly refs: { readonly path: string; readonly target: string; readonly node: object }[]
  /** pointer → subschema in the copy, and each subschema's in-place successors */
  readonly nodes: Map<string, object>
  readonly inPlace: Map<object, object[]>
  count: number
  /** compiled size of the patterns met so far */
  patterns: number
}

const isObject = (value: unknown): value is JsonObject =>
  value !== null && typeof value === "object" && !Array.isArray(value)
const escape = (key: string): string => key.replaceAll("~", "~0").replaceAll("/", "~1")
const bad = (path: string, message: string, fix: string): never => {
  throw new Fault(path, message, fix)
}

function checkPattern(walk: Walk, source: JsonValue | undefined, path: string): void {
  if (typeof source !== "string") return bad(path, "a pattern must be a string", "write a regular expression")
  const compiled = compilePattern(source)
  if (!compiled.ok) return bad(path, compiled.message, compiled.fix)
  walk.patterns += compiled.pattern.size
  if (walk.patterns > limits.patternTotal)
    bad(
      path,
      `the patterns of the schema compile to more than ${limits.patternTotal} steps`,
      "use fewer or simpler patterns",
    )
}

function walkList(
  walk: Walk,
  value: JsonValue,
  path: string,
  pointer: string,
  depth: number,
  put: (child: object) => void,
): unknown[] {
  if (!Array.isArray(value) || value.length === 0)
    return bad(path, "must be a non-empty list of schemas", "write a list of schemas")
  if (value.length > limits.schemaProperties) bad(path, `has more than ${limits.schemaProperties} schemas`, "use fewer")
  return value.map((item: JsonValue, i) => walkSchema(walk, item, joinPath(path, i), `${pointer}/${i}`, depth, put))
}

function walkMap(
  walk: Walk,
  value: JsonValue,
  path: string,
  pointer: string,
  depth: number,
  put: (child: object) => void,
): Record<string, unknown> {
  if (!isObject(value))
    return bad(path, "must be a mapping from names to schemas", "write `name: { type: … }` below it")
  const names = Object.keys(value)
  if (names.length > limits.schemaProperties) bad(path, `has more than ${limits.schemaProperties} entries`, "use fewer")
  return Object.fromEntries(
    names.map((name) => [
      name,
      walkSchema(walk, value[name] ?? null, joinPath(path, name), `${pointer}/${escape(name)}`, depth, put),
    ]),
  )
}

function checkPlain(shape: Shape, value: JsonValue, path: string): void {
  const strings = (v: JsonValue): boolean =>
    Array.isArray(v) && v.every((item) => typeof item === "string") && v.length <= limits.schemaEnum
  if (shape === "string" && typeof value !== "string") bad(path, "must be a string", "write a string")
  if (shape === "boolean" && typeof value !== "boolean") bad(path, "must be true or false", "write true or false")
  if (shape === "number" && typeof value !== "number") bad(path, "must be a number", "write a number")
  if (path.endsWith("multipleOf") && typeof value === "number" && value <= 0)
    bad(path, "must be above zero", "write a number above zero")
  if (shape === "count" && (typeof value !== "number" || !Number.isInteger(value) || value < 0))
    bad(path, "must be a whole number from 0", "write a whole number")
  if (shape === "string-list" && !strings(value)) bad(path, "must be a list of strings", "write a list of names")
  if (shape === "string-list-map" && !(isObject(value) && Object.values(value).every(strings)))
    bad(path, "must map names to lists of names", "write `name: [other]`")
  if (shape === "enum" && (!Array.isArray(value) || value.length === 0 || value.length > limits.schemaEnum)) {
    bad(path, `must be a list of 1 to ${limits.schemaEnum} values`, "write a list of values")
  }
  if (shape === "type") {
    const listed: readonly JsonValue[] = Array.isArray(value) ? (value as readonly JsonValue[]) : [value]
    const wrong = listed.find((t) => typeof t !== "string" || !TYPES.includes(t))
    if (listed.length === 0 || wrong !== undefined)
      bad(path, `\`${shown(wrong ?? value, 30)}\` is not a JSON Schema type`, `use one of ${TYPES.join(", ")}`)
  }
}

function takeRef(walk: Walk, value: JsonValue, path: string, node: Record<string, unknown>): void {
  if (typeof value !== "string") return bad(path, "must be a string", "write `#/$defs/name`")
  if (STUB.test(value)) return
  if (value !== "#" && !value.startsWith("#/")) {
    return bad(
      path,
      `the reference \`${shown(value)}\` leads outside this schema; nothing is ever fetched`,
      "copy the schema into `$defs` and refer to `#/$defs/name`",
    )
  }
  let target: string
  try {
    target = decodeURIComponent(value)
  } catch {
    return bad(path, `the reference \`${shown(value)}\` is not a valid pointer`, "write `#/$defs/name`")
  }
  node["$ref"] = value
  walk.refs.push({ path, target, node })
  if (walk.refs.length > limits.schemaRefs)
    bad(path, `has more than ${limits.schemaRefs} references`, "use fewer references")
}

function walkSchema(
  walk: Walk,
  schema: JsonValue,
  path: string,
  pointer: string,
  depth: number,
  put: (child: object) => void,
): unknown {
  if (typeof schema === "boolean") {
    walk.nodes.set(pointer, {})
    return schema
  }
  if (!isObject(schema)) return bad(path, "a schema must be a mapping, true or false", "write `{ type: … }`")
  if (++walk.count > limits.schemaNodes)
    bad(path, `the schema has more than ${limits.schemaNodes} subschemas`, "use a smaller schema")
  if (depth > limits.schemaDepth)
    bad(path, `the schema is nested deeper than ${limits.schemaDepth} levels`, "use `$defs` or a flatter structure")
  const node: Record<string, unknown> = {}
  const successors: object[] = []
  walk.nodes.set(pointer, node)
  walk.inPlace.set(node, successors)
  put(node)
  for (const [key, value] of Object.entries(schema)) {
    const at = joinPath(path, key)
    const below = `${pointer}/${escape(key)}`
    const refused = REFUSED[key]
    if (refused !== undefined && Object.hasOwn(REFUSED, key)) bad(at, refused, "rewrite it as the message says")
    if (key === "$schema" && (depth > 0 || typeof value !== "string" || !DIALECTS.test(value))) {
      bad(
        at,
        "only JSON Schema 2020-12 is read",
        'write `$schema: "https://json-schema.org/draft/2020-12/schema"` at the top, or leave it out',
      )
    }
    if (key === "$id" && depth > 0)
      bad(at, "`$id` inside a schema changes where references lead and is not supported", "remove it")
    if (!Object.hasOwn(KEYWORDS, key)) continue
    const shape = KEYWORDS[key] ?? "any"
    const child = (sub: object): void => void (IN_PLACE.has(key) && successors.push(sub))
    if (shape === "schema") {
      if (key === "items" && Array.isArray(value))
        bad(at, "a list of schemas under `items` is not 2020-12", "rename `items` to `prefixItems`")
      node[key] = walkSchema(walk, value, at, below, depth + 1, child)
    } else if (shape === "schemas") node[key] = walkList(walk, value, at, below, depth + 1, child)
    else if (shape === "schema-map") node[key] = walkMap(walk, value, at, below, depth + 1, child)
    else if (shape === "pattern-map") {
      for (const name of Object.keys(isObject(value) ? value : {})) checkPattern(walk, name, joinPath(at, name))
      node[key] = walkMap(walk, value, at, below, depth + 1, child)
    } else if (shape === "pattern") {
      checkPattern(walk, value, at)
      node[key] = value
    } else if (shape === "ref") takeRef(walk, value, at, node)
    else {
      checkPlain(shape, value, at)
      node[key] = value
    }
  }
  return node
}

function checkRefs(walk: Walk): void {
  for (const { path, target, node } of walk.refs) {
    const found = walk.nodes.get(target)
    if (found === undefined)
      bad(path, `the reference \`${shown(target)}\` leads to no subschema`, "define it under `$defs`")
    else walk.inPlace.get(node)?.push(found)
  }
  const state = new Map<object, "open" | "done">()
  const visit = (node: object): void => {
    if (state.get(node) === "done") return
    if (state.get(node) === "open")
      bad(
        "",
        "a `$ref` leads back to itself without going down into the value, so validation would never end",
        "break the cycle with a property or an item in between",
      )
    state.set(node, "open")
    for (const next of walk.inPlace.get(node) ?? []) visit(next)
    state.set(node, "done")
  }
  for (const node of walk.inPlace.keys()) visit(node)
}

type SchemaCheck =
  | { readonly ok: true; readonly schema: Record<string, unknown> }
  | { readonly ok: false; readonly fault: SchemaFault }

export function checkSchema(schema: unknown): SchemaCheck {
  const fault = (message: string, fix: string): SchemaCheck => ({ ok: false, fault: { path: "", message, fix } })
  if (!isObject(schema)) return fault("a schema must be a mapping", "write `{ type: object, properties: { … } }`")
  try {
    const walk: Walk = { refs: [], nodes: new Map(), inPlace: new Map(), count: 0, patterns: 0 }
    const copy = walkSchema(walk, schema, "", "#", 0, () => undefined)
    checkRefs(walk)
    if (JSON.stringify(copy).length > limits.schemaBytes)
      return fault(`the schema is larger than ${limits.schemaBytes} bytes`, "use a smaller schema")
    return { ok: true, schema: copy as Record<string, unknown> }
  } catch (error) {
    if (error instanceof Fault) return { ok: false, fault: error.fault }
    if (error instanceof RangeError) return fault("the schema is nested too deeply", "use a flatter structure")
    throw error
  }
}
