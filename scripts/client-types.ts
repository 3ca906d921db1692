/**
 * The types of `caisson/client`, made of the document that the daemon itself tells: `npm run client-types`.
 *
 * Guarantees: each operation of the document is there with what it is asked and what it answers; a schema that this does not
 * understand ends it, and is never passed over. A test makes them again and compares.
 */
import { execFileSync } from "node:child_process"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { request } from "node:http"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { text } from "node:stream/consumers"
import { openDaemon } from "../src/daemon/daemon.ts"

const root = join(import.meta.dirname, "..")
const target = join(root, "src/client/api.ts")

type Schema = Readonly<Record<string, unknown>>
interface Operation {
  readonly operationId: string
  readonly summary: string
  readonly parameters?: readonly {
    readonly in: "path" | "query" | "header"
    readonly name: string
    readonly required?: boolean
    readonly schema: Schema
  }[]
  readonly requestBody?: { readonly required?: boolean; readonly content: Readonly<Record<string, Content>> }
  readonly responses: Readonly<Record<string, { readonly content?: Readonly<Record<string, Content>> }>>
}
interface Content {
  readonly schema: Schema
}
export interface OpenApi {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
  readonly components: { readonly schemas: Readonly<Record<string, Schema>> }
}

/** What a daemon on an empty data folder tells of itself. */
export const documentOfDaemon = async (): Promise<OpenApi> => {
  const data = mkdtempSync(join(tmpdir(), "caisson-document-"))
  try {
    await using daemon = await openDaemon({ data, listen: "none" })
    const told = Promise.withResolvers<string>()
    request({ socketPath: daemon.socket, path: "/openapi.json", agent: false }, (answer) => told.resolve(text(answer)))
      .on("error", told.reject)
      .end()
    return JSON.parse(await told.promise) as OpenApi
  } finally {
    rmSync(data, { recursive: true, force: true })
  }
}

/** Words that say how a value is checked, or described, and nothing of its type. */
const UNTYPED = new Set([
  ..."title description format pattern minLength maxLength minimum maximum exclusiveMinimum exclusiveMaximum".split(
    " ",
  ),
  ..."minItems maxItems uniqueItems minProperties maxProperties unevaluatedProperties default examples $id".split(" "),
  ..."multipleOf propertyNames deprecated readOnly writeOnly".split(" "),
])
const TYPED = new Set(
  "type properties required additionalProperties items enum const oneOf anyOf allOf $ref".split(" "),
)

const isSchema = (value: unknown): value is Schema =>
  typeof value === "object" && value !== null && !Array.isArray(value)
const keyOf = (name: string): string => (/^[A-Za-z_$][\w$]*$/.test(name) ? name : JSON.stringify(name))
const union = (types: readonly string[]): string => [...new Set(types)].join(" | ")
const commentOf = ({ description }: Schema): string =>
  typeof description === "string" ? `/** ${description.replaceAll("*/", "* /")} */\n` : ""

const objectOf = (schema: Schema): string => {
  const properties = (schema["properties"] ?? {}) as Readonly<Record<string, Schema>>
  const required = new Set((schema["required"] ?? []) as readonly string[])
  const { additionalProperties: more } = schema
  const named = Object.entries(properties).map(
    ([name, one]) => `${commentOf(one)}readonly ${keyOf(name)}${required.has(name) ? "" : "?"}: ${typeOf(one)}`,
  )
  if (named.length > 0) return `{ ${named.join("\n")} }`
  if (more === false) return "Record<never, never>"
  return `{ readonly [name: string]: ${isSchema(more) ? typeOf(more) : "Json"} }`
}

const ofType = (type: unknown, schema: Schema): string => {
  switch (type) {
    case "string":
    case "boolean":
    case "null":
      return type
    case "integer":
    case "number":
      return "number"
    case "array":
      return `readonly (${isSchema(schema["items"]) ? typeOf(schema["items"]) : "Json"})[]`
    case "object":
      return objectOf(schema)
    default:
      throw new Error(`client-types: there is no type ${JSON.stringify(type)}`)
  }
}

/** JSON Schema, as far as the document uses it, to TypeScript. */
export const typeOf = (schema: Schema): string => {
  const odd = Object.keys(schema).find((word) => !UNTYPED.has(word) && !TYPED.has(word) && !word.startsWith("x-"))
  if (odd !== undefined) throw new Error(`client-types: the word ${odd} of a schema is not understood`)
  const { type, $ref, oneOf, anyOf, allOf, const: only, enum: choices, ...rest } = schema
  if (typeof $ref === "string") return $ref.slice($ref.lastIndexOf("/") + 1)
  if (only !== undefined) return JSON.stringify(only)
  if (Array.isArray(choices)) return union(choices.map((choice) => JSON.stringify(choice)))
  const parts = [
    ...(type === undefined && !("properties" in rest)
      ? []
      : [union((Array.isArray(type) ? type : [type ?? "object"]).map((one) => ofType(one, schema)))]),
    ...[oneOf, anyOf].flatMap((ways) =>
      Array.isArray(ways) ? [`(${union(ways.map((way) => typeOf(way as Schema)))})`] : [],
    ),
    ...(Array.isArray(allOf) ? allOf.map((way) => `(${typeOf(way as Schema)})`) : []),
  ]
  return parts.length === 0 ? "Json" : parts.join(" & ")
}

const partOf = (operation: Operation, where: "path" | "query" | "header", as: string): readonly string[] => {
  const own = (operation.parameters ?? []).filter((parameter) => parameter.in === where)
  if (own.length === 0) return []
  const isNeeded = own.some(({ required }) => required === true)
  const fields = own.map(
    ({ name, required, schema }) =>
      `${commentOf(schema)}readonly ${keyOf(name)}${required === true ? "" : "?"}: ${typeOf(schema)}`,
  )
  return [`readonly ${as}${isNeeded ? "" : "?"}: { ${fields.join("\n")} }`]
}

const requestOf = (operation: Operation): string => {
  const body = operation.requestBody?.content["application/json"]?.schema
  const parts = [
    ...partOf(operation, "path", "params"),
    ...partOf(operation, "query", "query"),
    ...partOf(operation, "header", "headers"),
    ...(body === undefined
      ? []
      : [`readonly body${operation.requestBody?.required === true ? "" : "?"}: ${typeOf(body)}`]),
  ]
  return parts.length === 0 ? "Record<never, never>" : `{ ${parts.join("\n")} }`
}

/** What it answers where it does not refuse. */
const answerOf = ({ responses }: Operation): string => {
  const told = Object.values(responses).flatMap(({ content }) => {
    const json = content?.["application/json"]?.schema
    const isText = ["text/plain", "application/x-ndjson"].some((type) => content?.[type] !== undefined)
    return [...(json === undefined ? [] : [typeOf(json)]), ...(isText ? ["string"] : [])]
  })
  return told.length === 0 ? "undefined" : union(told)
}

/** The source of `src/client/api.ts`, unformatted. */
const sourceOf = ({ paths, components }: OpenApi): string => {
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method: method.toUpperCase(), operation })),
  )
  const schemas = Object.entries(components.schemas).map(
    ([name, schema]) =>
      `${typeof schema["title"] === "string" ? `/** ${schema["title"]} */\n` : ""}export type ${name} = ${typeOf(schema)}\n`,
  )
  const typed = operations.map(
    ({ operation }) =>
      `/** ${operation.summary} */\nreadonly ${operation.operationId}: {\nreadonly request: ${requestOf(operation)}\nreadonly answer: ${answerOf(operation)}\n}`,
  )
  const placed = operations.map(
    ({ path, method, operation }) =>
      `${operation.operationId}: { method: ${JSON.stringify(method)}, path: ${JSON.stringify(path)} },`,
  )
  return `/**
 * The API, as the daemon's document tells it. Made by \`npm run client-types\`, never by hand.
 */
export type Json = null | boolean | number | string | readonly Json[] | { readonly [name: string]: Json }

${schemas.join("\n")}
export interface Operations {
${typed.join("\n")}
}

export const routes = {
${placed.join("\n")}
} as const satisfies Readonly<Record<keyof Operations, { readonly method: string; readonly path: string }>>
`
}

/** The file as it has to be. */
export const clientTypes = (document: OpenApi): string =>
  execFileSync(join(root, "node_modules/.bin/biome"), ["format", `--stdin-file-path=${target}`], {
    cwd: root,
    input: sourceOf(document),
    encoding: "utf8",
  })

if (process.argv[1] === import.meta.filename) {
  writeFileSync(target, clientTypes(await documentOfDaemon()))
}
