/**
 * `fetch` for a provider, over the way out of a login.
 *
 * Guarantees: every request is dialled by the login's desk, so to declared hosts alone; TLS is verified; no redirect is followed;
 * an answer is bounded in bytes and ends with the login's time. What could not be asked is told apart from what was refused.
 */
import type { Dialled, HostedDial } from "../../egress-proxy/serve/hosted.ts"
import { portOf } from "../../manifest/values/address.ts"
import type { Failure } from "../failure.ts"
import { loginWebLimits } from "../limits.ts"
import { exchange } from "./http/exchange.ts"

/** How a login reaches its provider. */
interface Way {
  readonly signal: AbortSignal
  connect(to: HostedDial): Promise<Dialled>
}

/** The provider was not asked, or did not answer; nothing is known of the login. */
export class NotAsked extends Error {
  readonly failure: Failure
  constructor(failure: Failure) {
    super(failure.message)
    this.failure = failure
  }
}

const tooLong = (): Failure => ({
  ok: false,
  code: "upstream_error",
  message: `the provider's answer is longer than ${loginWebLimits.answerBytes.value} bytes`,
  details: {},
})

/** What no answer of HTTP has, and no `Response` holds. */
const oddStatus = (status: number): Failure => ({
  ok: false,
  code: "upstream_error",
  message: `the provider answered with the status ${status}, which is none`,
  details: {},
})

/** As oauth4webapi hands it over. */
interface Asked {
  readonly method?: string
  readonly headers?: Record<string, string>
  readonly body?: unknown
}

const bodyOf = (body: unknown): string | undefined => {
  if (body === undefined || body === null) return undefined
  if (typeof body === "string" || body instanceof URLSearchParams) return body.toString()
  throw new TypeError("a provider is sent forms and text")
}

const headersOf = (given: Record<string, string>, url: URL, body: string | undefined): [string, string][] => [
  ["host", url.host],
  ...Object.entries(given).filter(([name]) => !["host", "content-length"].includes(name.toLowerCase())),
  ...(body === undefined ? [] : [["content-length", String(Buffer.byteLength(body))] satisfies [string, string]]),
]

export const fetchOver =
  ({ connect, signal }: Way) =>
  async (address: string | URL, { method = "GET", headers = {}, body }: Asked = {}): Promise<Response> => {
    const url = new URL(address)
    const sent = bodyOf(body)
    const origin = {
      secure: url.protocol === "https:",
      host: url.hostname.replace(/^\[|\]$/g, ""),
      port: portOf(url),
    }
    const answered = await exchange({ outlet: { connect }, signal }, origin, {
      method,
      path: `${url.pathname}${url.search}`,
      headers: headersOf(headers, url, sent),
      ...(sent === undefined ? {} : { body: Buffer.from(sent) }),
    })
    if (!answered.ok) throw new NotAsked(answered)
    await using answer = answered.value
    if (!(answer.status >= 200 && answer.status <= 599)) throw new NotAsked(oddStatus(answer.status))
    const parts: Buffer[] = []
    let bytes = 0
    try {
      for await (const part of answer.body as AsyncIterable<Buffer>) {
        bytes += part.length
        if (bytes > loginWebLimits.answerBytes.value) throw new NotAsked(tooLong())
        parts.push(part)
      }
    } catch (error) {
      if (error instanceof NotAsked) throw error
      throw new NotAsked({
        ok: false,
        code: "upstream_error",
        message: `${url.hostname} broke off its answer`,
        details: {},
      })
    }
    const told = new Headers()
    for (const [name, value] of Object.entries(answer.headers))
      for (const each of [value ?? []].flat()) told.append(name, each)
    const isEmpty = [204, 205, 304].includes(answer.status)
    return new Response(isEmpty ? null : Buffer.concat(parts), { status: answer.status, headers: told })
  }
