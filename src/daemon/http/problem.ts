/**
 * What the API says where it has no envelope to give: problem details (RFC 9457) with the reason's code and the fix.
 *
 * Guarantees: status, class and hint come from the reason table; nothing of the host's paths, of a stack or of another
 * tenant is in it. A call that was refused by what it asked is no problem in this sense: it has an envelope and a receipt.
 */
import type { FastifyError } from "fastify"
import { callErrorOf } from "../../host/failure.ts"
import { type ReasonCode, reasons } from "../../host/reasons.ts"
import type { CallError, Envelope } from "../../host/types.ts"

interface Problem {
  readonly type: string
  readonly title: string
  readonly status: number
  readonly detail: string
  readonly code: string
  readonly hint: string
  readonly errors?: readonly { readonly path: string; readonly message: string; readonly fix: string }[]
}

export const problemType = "application/problem+json"

/** Thrown by a route: answered as problem details. */
class ProblemError extends Error {
  readonly problem: Problem
  readonly headers: Readonly<Record<string, string>>
  constructor(problem: Problem, headers: Readonly<Record<string, string>> = {}) {
    super(problem.detail)
    this.name = "ProblemError"
    this.problem = problem
    this.headers = headers
  }
}

const statusOf = (code: string): number => (Object.hasOwn(reasons, code) ? reasons[code as ReasonCode].status : 502)

/** Of a request to the API, where a reason's own words speak of a call. */
const words: Readonly<Partial<Record<string, { readonly title: string; readonly hint?: string }>>> = {
  input_invalid: { title: "the request is not what is asked for", hint: "GET /openapi.json tells what is asked for" },
  not_found: { title: "there is nothing by that name", hint: "GET /openapi.json lists what there is" },
  conflict: { title: "the request does not fit what is there", hint: "look at what is there, then ask anew" },
  auth_required: { title: "somebody must sign in first" },
  unauthorised: { title: "this caller may not do that", hint: "ask the operator for a token that may" },
  rate_limited: { title: "too many requests" },
  internal: { title: "the host or its daemon failed over the request" },
}

export const problemOf = (
  { code, message, hint }: Pick<CallError, "code" | "message" | "hint">,
  status = statusOf(code),
): Problem => ({
  type: `urn:caisson:reason:${code}`,
  title: words[code]?.title ?? (Object.hasOwn(reasons, code) ? reasons[code as ReasonCode].message : code),
  status,
  detail: message,
  code,
  hint,
})

const hinted = (hint: string | undefined): { readonly hint?: string } => (hint === undefined ? {} : { hint })

export const refuse = (
  code: ReasonCode,
  message: string,
  hint?: string,
  headers?: Readonly<Record<string, string>>,
  status?: number,
): ProblemError =>
  new ProblemError(
    problemOf(callErrorOf({ ok: false, code, message, details: {}, ...hinted(hint ?? words[code]?.hint) }), status),
    headers,
  )

/** What a verb of the host answered, or the problem that it told. */
export const orProblem = <T extends { readonly ok: boolean }>(answer: T): Extract<T, { ok: true }> => {
  if (answer.ok) return answer as Extract<T, { ok: true }>
  const { error } = answer as unknown as { error: CallError }
  const { faults } = error.details as { readonly faults?: Problem["errors"] }
  throw new ProblemError({ ...problemOf(error), ...(Array.isArray(faults) ? { errors: faults } : {}) })
}

export const statusOfEnvelope = (envelope: Envelope): number => (envelope.ok ? 200 : statusOf(envelope.error.code))

/** Why, where the answer is no call's: nothing was run, and no receipt tells of it. */
export const noCallError = (envelope: Envelope): CallError | undefined =>
  !envelope.ok && envelope.call === "none" ? envelope.error : undefined

interface Fault {
  readonly instancePath: string
  readonly keyword: string
  readonly message?: string
  readonly params?: Readonly<Record<string, unknown>>
}

const pathOf = ({ instancePath, keyword, params }: Fault): string => {
  const named = keyword === "required" ? params?.["missingProperty"] : params?.["additionalProperty"]
  return `${instancePath}${typeof named === "string" ? `/${named}` : ""}` || "/"
}
const fixOf = ({ keyword, params }: Fault): string => {
  if (keyword === "required") return "add it"
  if (keyword === "additionalProperties") return "leave it out, or correct its spelling"
  if (keyword === "type") return `make it ${String(params?.["type"])}`
  if (keyword === "enum")
    return `use one of ${(params?.["allowedValues"] as readonly unknown[] | undefined)?.map(String).join(", ") ?? "the values that are allowed"}`
  return "see GET /openapi.json"
}

const MOST_FAULTS = 20

/** Of an address that no route can be looked for. */
export const addressProblem = (): Problem =>
  refuse("input_invalid", "the address cannot be read", "GET /openapi.json lists what there is", {}, 400).problem

const ofFastify: Readonly<Record<string, readonly [ReasonCode, number, string]>> = {
  FST_ERR_CTP_BODY_TOO_LARGE: ["input_invalid", 413, "put large data into a workspace file and pass its path"],
  FST_ERR_CTP_INVALID_MEDIA_TYPE: ["input_invalid", 415, "send JSON, with `Content-Type: application/json`"],
  FST_ERR_CTP_EMPTY_JSON_BODY: [
    "input_invalid",
    400,
    "send a JSON object, or no `Content-Type` where there is no body",
  ],
  FST_ERR_CTP_INVALID_JSON_BODY: ["input_invalid", 400, "send a JSON object, without a `__proto__` in it"],
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: ["input_invalid", 400, "send as many bytes as Content-Length says"],
}

/** Of anything that a route threw; `undefined` for what nobody foresaw. */
export const thrownProblem = (error: FastifyError | Error): ProblemError | undefined => {
  if (error instanceof ProblemError) return error
  const { validation, code, validationContext = "body" } = error as FastifyError
  if (validation !== undefined) {
    const faults = (validation as readonly Fault[]).slice(0, MOST_FAULTS)
    const errors = faults.map((fault) => ({
      path: pathOf(fault),
      message: fault.message ?? "is not valid",
      fix: fixOf(fault),
    }))
    const said = errors.map(({ path, message }) => `${path} ${message}`).join("; ")
    const { problem } = refuse(
      "input_invalid",
      `the ${validationContext} is not what is asked for: ${said}`,
      errors[0]?.fix,
      {},
      400,
    )
    return new ProblemError({ ...problem, errors })
  }
  const known = typeof code === "string" ? ofFastify[code] : undefined
  if (known === undefined) return undefined
  return refuse(known[0], "the request's body cannot be read", known[2], {}, known[1])
}
