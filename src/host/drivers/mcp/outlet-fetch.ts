/**
 * `fetch` for the official client's HTTP transports, which goes the way of the call's outlet and no other.
 *
 * Guarantees: every request goes to the origin of the driver's own address, is dialled and judged by the outlet, and proves
 * its host by TLS; another origin is refused here. What comes back is bounded, all answers of a call together. A failure to
 * send is kept as it was told, for whoever tells how the call ended. Redirects are not followed here.
 */
import { Readable } from "node:stream"
import type { FetchLike } from "@modelcontextprotocol/client"
import type { Failure } from "../../failure.ts"
import { hostLimits } from "../../limits.ts"
import { exchange, type HttpAnswer } from "../http/exchange.ts"
import { headerText, retryAfterMs } from "../http/status.ts"
import type { Desk } from "../kind.ts"
import type { Challenge } from "../resource.ts"
import { readChallenge } from "./read-challenge.ts"

export interface OutletFetch {
  readonly fetch: FetchLike
  /** why the last request that failed was not sent or not answered */
  failure(): Failure | undefined
  /** what the server said when it refused the last request, where it did */
  refused(): Challenge | undefined
  /** how long the server asked to be left alone, where it did, in milliseconds */
  askedMs(): number | undefined
}

/** Statuses that have no body. */
const BARE = new Set([101, 204, 205, 304])

const headersOf = ({ headers }: HttpAnswer): Headers => {
  const made = new Headers()
  for (const [name, value] of Object.entries(headers))
    for (const each of typeof value === "string" ? [value] : (value ?? [])) made.append(name, each)
  return made
}

class NotSent extends Error {}

interface FetchOptions {
  /** what proves who asks */
  readonly bearer?: string
  /** bytes of all answers together */
  readonly most?: number
}

export const outletFetch = (
  desk: Pick<Desk, "signal" | "outlet" | "note">,
  server: URL,
  { bearer, most = hostLimits.mcpBytes.value }: FetchOptions = {},
): OutletFetch => {
  let failure: Failure | undefined
  let refused: Challenge | undefined
  let asked: number | undefined
  let left = most
  const refuse = (why: Failure): never => {
    failure = why
    throw new NotSent(why.message)
  }
  const tooMuch = (): Failure => ({
    ok: false,
    code: "limit_exceeded",
    message: `the server was left: it wrote more than ${most} bytes; nothing was committed`,
    details: { limit: "mcp" },
  })
  const bounded = async function* (answer: HttpAnswer, signal: AbortSignal): AsyncGenerator<Uint8Array> {
    const stop = (): void => void answer[Symbol.asyncDispose]()
    signal.addEventListener("abort", stop, { once: true })
    try {
      for await (const chunk of answer.body as AsyncIterable<Uint8Array>) {
        left -= chunk.length
        if (left < 0) refuse(tooMuch())
        yield chunk
      }
    } finally {
      signal.removeEventListener("abort", stop)
      await answer[Symbol.asyncDispose]()
    }
  }
  const ask: FetchLike = async (to, init = {}) => {
    const url = new URL(to)
    if (url.origin !== server.origin)
      refuse({
        ok: false,
        code: "egress_denied",
        message: `the server sends its client to another place (${url.origin.slice(0, 100)}), where a driver does not follow`,
        details: { target: url.host.slice(0, 100), reason: "other_origin" },
      })
    const { body: text = null, signal: own = null } = init
    const signal = own === null ? desk.signal : AbortSignal.any([desk.signal, own])
    const named = new Headers(init.headers)
    if (bearer !== undefined) named.set("authorization", `Bearer ${bearer}`)
    const headers = [...named]
    if (text !== null && typeof text !== "string") throw new TypeError("a message is sent as text")
    const secure = url.protocol === "https:"
    const made = await exchange(
      { ...desk, signal },
      { secure, host: url.hostname, port: url.port === "" ? (secure ? 443 : 80) : Number(url.port) },
      {
        method: init.method ?? "GET",
        path: `${url.pathname}${url.search}`,
        headers,
        ...(text === null ? {} : { body: Buffer.from(text) }),
      },
    )
    if (!made.ok) return refuse(made)
    const answer = made.value
    const { status } = answer
    desk.note({ response_status: status })
    // What no `Response` holds.
    if (!(status >= 200 && status <= 599)) {
      await answer[Symbol.asyncDispose]()
      refuse({
        ok: false,
        code: "upstream_error",
        message: `the server answered with the status ${status}, which is none`,
        details: { status },
      })
    }
    if (status >= 400) asked = retryAfterMs(headerText(answer, "retry-after"), Date.now()) ?? asked
    // A session that is ended, or a stream that is not there, says nothing of the call.
    if (init.method === "POST" || status === 401) refused = readChallenge(status, headersOf(answer))
    if (BARE.has(status)) {
      await answer[Symbol.asyncDispose]()
      return new Response(null, { status, headers: headersOf(answer) })
    }
    const stream = Readable.toWeb(Readable.from(bounded(answer, signal), { objectMode: false })) as ReadableStream
    return new Response(stream, { status, headers: headersOf(answer) })
  }
  return { fetch: ask, failure: () => failure, refused: () => refused, askedMs: () => asked }
}
