/**
 * One attempt: the request is made, sent, followed where it is redirected, and its answer read.
 *
 * Guarantees: secrets are fetched when the request is made and put in nowhere else; every request, redirected ones
 * included, goes through the outlet and is judged there. What may have changed something and was not answered is told as
 * unknown, and is not invited to be repeated unless that does no harm.
 */
import type { HttpCall, JsonObject, ToolContract } from "../../../manifest/types.ts"
import { mutatesOutside } from "../../access/decide.ts"
import type { Failure, Success } from "../../failure.ts"
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

/** The request was sent, and what came of it is not known. */
const inDoubt = (failure: Failure, { of: { tool }, repeatable }: Deed): Failure => {
  const { sent, status } = failure.details
  if (sent !== true && !(typeof status === "number" && status >= 500 && status !== 503)) return failure
  const commit = mutatesOutside(tool).length > 0 ? { commit: "unknown" } : {}
  return {
    ...failure,
    retryable: repeatable && (failure.retryable ?? failure.code === "upstream_error"),
    details: { ...failure.details, ...commit },
  }
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
  const { of, call } = deed
  let hop = first
  let report: string | undefined
  for (let hops = 0; ; hops += 1) {
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
    if (failure !== undefined) return await withBody(failure, answer, secrets)
    const read = await readAnswer(answer, { desk, tool: of.tool, call, secrets })
    return read.ok ? { ...read, notes: [...read.notes, ...unreadSoFar(of.tool, report, call.method)] } : read
  }
}

export const act = async (deed: Deed, desk: Desk): Promise<Success | Failure> => {
  const { of, source } = deed
  const { port, secure } = source.spec.base
  const host = source.spec.base.host.replace(/^\[(.*)\]$/, "$1")
  const secrets = await fetchSecrets(desk, source.secrets, { driver: of.driver.key, host })
  if (!secrets.ok) return secrets
  const { values } = secrets.value
  const secret = (name: string): string | undefined => (Object.hasOwn(values, name) ? values[name] : undefined)
  const request = requestOf(source, { input: of.input, context: of.context, secret, scope: source.scope })
  if (!request.ok) return request
  desk.note({ request_size_bytes: request.value.body?.length ?? 0 })
  const end = await walk(deed, desk, { origin: { host, port, secure }, request: request.value }, secrets.value)
  return end.ok ? end : inDoubt(end, deed)
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
