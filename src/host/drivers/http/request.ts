/**
 * A call's values → the one request that is sent.
 *
 * Guarantees: nothing that a caller gives decides where the request goes or how it is framed: a value in the path is one
 * encoded piece of a segment that neither climbs nor vanishes, a value of the query is encoded, a header's value is
 * printable ASCII in one line. What is refused names the input, never its value. Pure.
 */
import type { TemplateTree } from "../../../manifest/templates/template-tree.ts"
import { pathText, type TemplatePart, type TemplatePath } from "../../../manifest/templates/template.ts"
import type { HttpCall, HttpSpec, JsonObject, JsonValue } from "../../../manifest/types.ts"
import type { Failure } from "../../failure.ts"
import type { TemplateScope } from "../../invoke/template-scope.ts"
import { fillTree, type TreeValues } from "../../invoke/template-tree.ts"
import type { Answer } from "../kind.ts"
import { maxHeaderBytes, maxPathBytes } from "./limits.ts"

type HeaderLine = readonly [name: string, value: string]

export interface HttpRequest {
  readonly method: string
  /** with its query */
  readonly path: string
  readonly headers: readonly HeaderLine[]
  /** those that the host writes where the driver does not: all that another origin is sent */
  readonly own: readonly HeaderLine[]
  readonly body?: Buffer
}

export interface RequestSource {
  readonly spec: HttpSpec
  readonly call: HttpCall
  readonly input: JsonObject
  readonly scope: TemplateScope
  /** names of the secrets that go into it */
  readonly secrets: readonly string[]
  /** the one of them that goes into `Authorization` unasked (AIP-31: a bearer's is the default) */
  readonly bearer?: string
  /** the same in all attempts of a call */
  readonly idempotencyKey?: string
}

const refuse = (path: TemplatePath, problem: string, hint: string): Failure => ({
  ok: false,
  code: "input_invalid",
  message: `\`${pathText(path)}\` ${problem}`,
  hint,
  details: { field: pathText(path) },
})

/** A segment climbs only where a value in it is dots alone: what the author wrote was looked at when it was read. */
const segment = (text: string, path: TemplatePath): Answer<string> => {
  if (text === "") return refuse(path, "is empty, and would change the address that is asked", "give it a value")
  if (!text.isWellFormed()) return refuse(path, "is not well-formed Unicode", "remove the lone surrogates from it")
  if (text.split(/[/\\]/).some((part) => part === "." || part === ".."))
    return refuse(path, "would climb in the address that is asked", "give it a value without `.` and `..`")
  return { ok: true, value: encodeURIComponent(text) }
}

const piece = (part: TemplatePart, values: TreeValues): Answer<string> => {
  if (part.type === "literal") return { ok: true, value: part.text }
  // Among other text, so that an absent value is refused and any other is a text.
  const filled = fillTree({ type: "text", text: "", parts: [{ type: "literal", text: "" }, part] }, values)
  return filled.ok ? segment(String(filled.value as string), part.path) : filled
}

/** The first value in a template, for messages. */
const pathIn = (tree: TemplateTree): TemplatePath | undefined => {
  if (tree.type !== "text") return undefined
  for (const part of tree.parts) if (part.type === "value") return part.path
  return undefined
}

const unfit = (tree: TemplateTree, place: string, problem: string): Failure => {
  const path = pathIn(tree)
  // A secret that cannot be sent is nothing that the caller can mend.
  if (path === undefined || path.root === "secrets")
    return {
      ok: false,
      code: "auth_required",
      message: `${path === undefined ? place : `the value of \`${pathText(path)}\``} ${problem}`,
      hint: "have the operator set another value",
      details: {},
    }
  return refuse(path, problem, "give it one text or number that can stand there")
}

/** One text or number; undefined where there is none. */
const textOf = (tree: TemplateTree, values: TreeValues, place: string): Answer<string | undefined> => {
  const made = fillTree(tree, values)
  if (!made.ok) return made
  const { value } = made
  if (value === undefined || value === null) return { ok: true, value: undefined }
  if (typeof value === "object") return unfit(tree, place, "is a list or object where a text is needed")
  return { ok: true, value: String(value) }
}

const pathOf = ({ spec, call }: RequestSource, values: TreeValues): Answer<string> => {
  let endpoint = ""
  for (const part of call.endpoint.parts) {
    const made = piece(part, values)
    if (!made.ok) return made
    endpoint += made.value
  }
  const query = new URLSearchParams()
  for (const { name, value } of call.query) {
    const text = textOf(value, values, `\`${name}\` of the query`)
    if (!text.ok) return text
    if (text.value !== undefined) query.append(name, text.value)
  }
  const path = `${spec.base.path}${endpoint}${query.size === 0 ? "" : `?${query.toString()}`}`
  return path.length > maxPathBytes ? tooLong("address", maxPathBytes) : { ok: true, value: path }
}

const tooLong = (what: string, limit: number): Failure => ({
  ok: false,
  code: "input_invalid",
  message: `the ${what} would be longer than ${limit} bytes`,
  hint: "give shorter values; the driver's author can send long ones in the body",
  details: { limit: what, value: limit },
})

const headersOf = ({ call }: RequestSource, values: TreeValues): Answer<readonly HeaderLine[]> => {
  const lines: HeaderLine[] = []
  for (const { name, value: template } of call.headers) {
    const value: TemplateTree = { type: "text", ...template }
    const text = textOf(value, values, `the header \`${name}\``)
    if (!text.ok) return text
    if (text.value === undefined) continue
    if (/[^\t\u0020-\u007e]/.test(text.value))
      return unfit(value, `the header \`${name}\``, "has a character that no header can carry")
    if (text.value.length > maxHeaderBytes) return tooLong(`header ${name}`, maxHeaderBytes)
    lines.push([name, text.value.trim()])
  }
  return { ok: true, value: lines }
}

const bearerOf = ({ bearer }: RequestSource, { secret }: TreeValues): Answer<readonly HeaderLine[]> => {
  const value = bearer === undefined ? undefined : secret(bearer)
  if (bearer === undefined || value === undefined) return { ok: true, value: [] }
  if (/^[\u0021-\u007e]+$/.test(value)) return { ok: true, value: [["authorization", `Bearer ${value}`]] }
  return {
    ok: false,
    code: "auth_required",
    message: `the value of \`secrets.${bearer}\` has a character that no header can carry`,
    hint: "have the operator set another value",
    details: {},
  }
}

const bodyOf = ({ call, input }: RequestSource, values: TreeValues): Answer<Buffer | undefined> => {
  if (call.method === "GET") return { ok: true, value: undefined }
  const made: Answer<JsonValue | undefined> =
    call.body === undefined ? { ok: true, value: input } : fillTree(call.body, values)
  if (!made.ok) return made
  return { ok: true, value: made.value === undefined ? undefined : Buffer.from(JSON.stringify(made.value)) }
}

const accepted = { sse: "text/event-stream", ndjson: "application/x-ndjson, application/json", chunked: "*/*" } as const

export const requestOf = (source: RequestSource, values: TreeValues): Answer<HttpRequest> => {
  const { call, idempotencyKey } = source
  const path = pathOf(source, values)
  if (!path.ok) return path
  const written = headersOf(source, values)
  if (!written.ok) return written
  const bearer = bearerOf(source, values)
  if (!bearer.ok) return bearer
  const body = bodyOf(source, values)
  if (!body.ok) return body
  const own: readonly HeaderLine[] = [
    ["accept", call.streaming === undefined ? "application/json" : accepted[call.streaming.transport]],
    ["accept-encoding", "gzip, deflate, br"],
    ["user-agent", "caisson"],
  ]
  const unwritten: readonly HeaderLine[] =
    body.value === undefined ? own : [...own, ["content-type", "application/json"]]
  const keyed = call.idempotencyKeyHeader
  const headers = [
    ...written.value.filter(([name]) => name !== keyed),
    ...bearer.value,
    ...unwritten.filter(([name]) => !written.value.some(([other]) => other === name)),
    ...(keyed === undefined || idempotencyKey === undefined ? [] : [[keyed, idempotencyKey] as const]),
  ]
  return {
    ok: true,
    value: {
      method: call.method,
      path: path.value,
      headers,
      own,
      ...(body.value === undefined ? {} : { body: body.value }),
    },
  }
}
