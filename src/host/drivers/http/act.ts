/**
 * One attempt: the request is made, sent, followed where it is redirected, and its answer read.
 *
 * Guarantees: secrets are fetched when the request is made and put in nowhere else; every request, redirected ones
 * included, goes through the outlet and is judged there. What may have changed something and was not answered is told as
 * unknown, and is not invited to be repeated unless that does no harm.
 */
import type { HttpCall, JsonObject, ToolContract } from "../../../manifest/types.ts"
import { callErrorOf, type Failure, type Success } from "../../failure.ts"
import type { Desk, KindCall } from "../kind.ts"
import { exchange, type HttpAnswer, originText } from "./exchange.ts"
import { errorBodyBytes, maxRedirects } from "./limits.ts"
import { type Hop, redirected } from "./redirect.ts"
import { requestOf, type RequestSource } from "./request.ts"
import { readAnswer, startOf } from "./result.ts"
import { fetchSecrets, type HeldSecrets } from "./secrets.ts"
import { statusFailure } from "./status.ts"

export interface Deed {
  readonly of: KindCall
  readonly call: HttpCall
  readonly source: RequestSource
  /** a second request does no harm */
  readonly repeatable: boolean
}

/**
 * It never left, or the one service that was asked refused it by a status for that. One that is busy (503) is none: what
 * stands before a service says so as well of requests that it had passed on; nor is an answer that is no refusal.
 */
const isUndone = ({ sent, status }: JsonObject, hops: number): boolean =>
  hops === 0 && (sent === false || (typeof status === "number" && status >= 400 && status < 500))

/** The request was sent, and what came of it is not known. */
const inDoubt = (failure: Failure, { repeatable }: Deed, hops: number): Failure => {
  if (isUndone(failure.details, hops)) return { ...failure, undone: true }
  const isBroken = failure.code === "upstream_error" && failure.details["sent"] === true
  return { ...failure, retryable: repeatable && (failure.retryable ?? (isBroken || callErrorOf(failure).retryable)) }
}

/** How the service's own words about its refusal begin. */
const withBody = async (failure: Failure, answer: HttpAnswer, secrets: HeldSecrets): Promise<Failure> => {
  const start = await startOf(answer, secrets, errorBodyBytes)
  return start === "" ? failure : { ...failure, details: { ...failure.details, body: start } }
}

const unreadSoFar = (tool: ToolContract, report: string | undefined, method: string): readonly string[] =>
  report === undefined
    ? []
    : [
        `${method} was sent, and ${tool.id} declares no mutation of \`network:\` or \`external:\`; \`read_only_http: enforce\` would refuse it`,
      ]

const walk = async (deed: Deed, desk: Desk, first: Hop, secrets: HeldSecrets): Promise<Success | Failure> => {
  let hops = 0
  const end = await follow(deed, desk, first, secrets, (count) => {
    hops = count
  })
  return end.ok ? end : inDoubt(end, deed, hops)
}

const follow = async (
  deed: Deed,
  desk: Desk,
  first: Hop,
  secrets: HeldSecrets,
  redirectedTo: (hops: number) => void,
): Promise<Success | Failure> => {
  const { of, call } = deed
  let hop = first
  let report: string | undefined
  for (let hops = 0; ; hops += 1) {
    redirectedTo(hops)
    const early = await desk.pace.turn(deed.source.spec.rateLimit)
    if (early !== undefined) return early
    const made = await exchange(desk, hop.origin, hop.request)
    if (!made.ok) return made
    await using answer = made.value
    report ??= answer.report
    desk.note({ response_status: answer.status, ...(hops === 0 ? {} : { redirects: hops }) })
    const next = redirected(hop, answer, secrets)
    if (next !== undefined) {
      if (!next.ok) return next
      if (hops >= maxRedirects)
        return {
          ok: false,
          code: "upstream_error",
          message: `the service redirected more than ${maxRedirects} times`,
          retryable: false,
          details: { reason: "redirect" },
        }
      hop = next.value
      continue
    }
    const { auth } = of.driver.contract
    const failure = statusFailure(answer, {
      driver: of.driver.key,
      repeatable: deed.repeatable,
      now: Date.now(),
      ...(auth === undefined ? {} : { auth }),
    })
    if (failure !== undefined) {
      const { retry_after_ms: asked } = failure.details
      if (typeof asked === "number") await desk.pace.leaveAlone(asked)
      return await withBody(failure, answer, secrets)
    }
    const read = await readAnswer(answer, { desk, tool: of.tool, call, secrets })
    return read.ok ? { ...read, notes: [...read.notes, ...unreadSoFar(of.tool, report, call.method)] } : read
  }
}

export const act = async (deed: Deed, desk: Desk): Promise<Success | Failure> => {
  const { of, source } = deed
  const { port, secure } = source.spec.base
  const host = source.spec.base.host.replace(/^\[(.*)\]$/, "$1")
  const secrets = await fetchSecrets(desk, source.secrets, { driver: of.driver.key, host })
  if (!secrets.ok) return { ...secrets, undone: true }
  const { values } = secrets.value
  const secret = (name: string): string | undefined => (Object.hasOwn(values, name) ? values[name] : undefined)
  const request = requestOf(source, { input: of.input, context: of.context, secret, scope: source.scope })
  if (!request.ok) return { ...request, undone: true }
  desk.note({ request_size_bytes: request.value.body?.length ?? 0 })
  return walk(deed, desk, { origin: { host, port, secure }, request: request.value }, secrets.value)
}

/** The request as the driver writes it: no value of a call is in it. */
export const template = ({ spec, call }: Pick<RequestSource, "spec" | "call">): readonly [string, string] => [
  call.method,
  `${originText(spec.base)}${spec.base.path}${call.endpoint.text}`,
]

export const requestFacts = (source: RequestSource): JsonObject => ({
  url_template: template(source).join(" "),
  header_keys: source.call.headers.map(({ name }) => name).sort(),
})
