/**
 * The forms of requests and answers of the API: what validates is what the document shows.
 *
 * Guarantees: every object of a request is closed, so that a misspelt key is refused. Plain JSON Schema, 2020-12.
 */
import { readFileSync } from "node:fs"
import type { JsonSchema } from "../../manifest/types.ts"

type Properties = Readonly<Record<string, JsonSchema>>

export const closed = (properties: Properties, required: readonly string[] = []): JsonSchema => ({
  type: "object",
  additionalProperties: false,
  required: [...required],
  properties: { ...properties },
})
/** An answer may grow: what is here is always there. */
export const open = (properties: Properties, required: readonly string[] = Object.keys(properties)): JsonSchema => ({
  type: "object",
  required: [...required],
  properties: { ...properties },
})
export const listOf = (items: JsonSchema): JsonSchema => ({ type: "array", items })

export const text = { type: "string" } as const satisfies JsonSchema
export const name = { type: "string", minLength: 1, maxLength: 4096 } as const satisfies JsonSchema
export const flag = { type: "boolean" } as const satisfies JsonSchema
export const moment = { type: "string", format: "date-time" } as const satisfies JsonSchema
export const count = { type: "integer", minimum: 0 } as const satisfies JsonSchema
export const anything: JsonSchema = {}
export const object: JsonSchema = { type: "object", additionalProperties: true }

/** One effect as a person reads it. */
export const contentChange = open(
  { kind: text, path: text, declared: flag, diff: text, note: text, mode: text, target: text, from: text },
  ["kind", "path", "declared"],
)

const envelopeFile = new URL("../../../schemas/envelope.schema.json", import.meta.url)

/** The envelope's own schema, as a part of the document. */
export const sharedSchemas = (): readonly (JsonSchema & { readonly $id: string })[] => {
  const {
    $schema: _draft,
    $defs,
    ...envelope
  } = JSON.parse(readFileSync(envelopeFile, "utf8")) as Record<string, unknown>
  const inline = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(inline)
    if (typeof value !== "object" || value === null) return value
    const { $ref, ...rest } = value as Record<string, unknown>
    if (typeof $ref === "string") return inline(($defs as Record<string, unknown>)[$ref.slice("#/$defs/".length)])
    return Object.fromEntries(Object.entries(rest).map(([key, one]) => [key, inline(one)]))
  }
  return [
    { ...(inline(envelope) as JsonSchema), $id: "Envelope" },
    {
      $id: "Problem",
      title: "Why a request was not served",
      ...open(
        {
          type: text,
          title: text,
          status: { type: "integer" },
          detail: text,
          code: text,
          hint: text,
          errors: listOf(open({ path: text, message: text, fix: text })),
        },
        ["type", "title", "status", "detail", "code", "hint"],
      ),
    },
  ]
}

export const envelope: JsonSchema = { $ref: "Envelope#" }
const problem: JsonSchema = { $ref: "Problem#" }

type Answers = Readonly<Record<string, JsonSchema>>
const refused = { "application/problem+json": { schema: problem } }
const answers = (description: string, content: object, statuses: readonly number[]): Answers =>
  Object.fromEntries(statuses.map((status) => [String(status), { description, content } as unknown as JsonSchema]))
const ANY_ROUTE = [400, 401, 403, 404, 413, 414, 415, 421, 429, 500, 503]

/** Answers that any route can give. */
export const problems = (...statuses: readonly number[]): Answers =>
  answers("problem details", refused, [...ANY_ROUTE, ...statuses])

/** A call's end, at the status that its reason has; where there was no call, problem details. */
export const envelopes = (description: string): Answers => {
  const told = { "application/json": { schema: envelope } }
  const failures = [...ANY_ROUTE, 409, 410, 422, 428, 502, 504]
  return {
    ...answers(description, told, [200]),
    ...answers("the call's envelope, or problem details where there was no call", { ...told, ...refused }, failures),
    ...answers("problem details", refused, [413, 414, 415]),
  }
}

export const idParams = closed({ id: { type: "string", minLength: 1, maxLength: 256 } }, ["id"])

export const callBody = closed(
  {
    tool: { type: "string", minLength: 1, maxLength: 4096, description: "`id`, or `id@major`" },
    input: anything,
    workspace: { type: "string", minLength: 1, maxLength: 4096, description: "absolute path of a folder" },
    context: object,
    plan: { type: "boolean", description: "run, show the effects, commit nothing" },
    driver: { type: "string", minLength: 1, maxLength: 4096 },
    observe: {
      type: "boolean",
      description: "record what it asks for: files, programs, hosts (`access` of the envelope)",
    },
  },
  ["tool"],
)
