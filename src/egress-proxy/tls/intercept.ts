/**
 * Ends TLS at the proxy for one client connection and judges every HTTP request inside it.
 *
 * Guarantees: the client's SNI and every request's authority equal `name`, or nothing is forwarded; secrets go into
 * header values of requests that passed, on connections whose certificate was verified for `name`, and nowhere else;
 * a request is sent upstream only after its verdict was recorded. HTTP/1.1 only (h2 is not offered). Heads, waits and
 * pipelined requests are bounded. When `done` resolves, every socket and timer of this connection is gone; a dial that
 * is still under way then is destroyed as it completes. A callback that throws ends the connection, not the process.
 * Assumes: the name was approved; `upstream` dials only what was vetted for it; the hello is unread in `client`.
 * A secret that an upstream sends back is taken out of its response, as far as `secrets/scrub.ts` knows its spellings.
 */
import { type IncomingMessage, ServerResponse } from "node:http"
import { Socket } from "node:net"
import type { Duplex } from "node:stream"
import { createSecureContext, type SecureContext, TLSSocket, type TLSSocketOptions } from "node:tls"
import { guarded } from "../connection/boundary.ts"
import { abort, carriesTls } from "../connection/endpoint.ts"
import type { ReasonCode } from "../policy/reasons.ts"
import { createDecodingRoom, type DecodingRoom } from "../secrets/decoding-room.ts"
import { aheadBytes, createTurns, type Turns } from "../connection/turns.ts"
import type { Tape } from "../tape/words.ts"
import type { CapturedTokens } from "../tokens/captured.ts"
import type { Verdict } from "../types.ts"
import type { CallAuthority, Leaf } from "./authority.ts"
import { carrierOf, unmetered } from "./carrier.ts"
import { deniedResponse } from "./denied.ts"
import { judgeHead, type HeadVerdict, type InterceptRules, type Refusal } from "./intercept-request.ts"
import { relayRequest } from "./relay-request.ts"
import { relayWebSocket } from "./relay-websocket.ts"
import { reasonOf, type ServerLimits, sizeOf, strictServer } from "./strict-server.ts"
import { createUpstreamAgent } from "./upstream.ts"

interface InterceptedRequest {
  readonly protocol: "http" | "websocket"
  readonly method: string
  readonly safe: boolean
  /** placeholders that were replaced in its headers */
  readonly used: readonly string[]
}

interface InterceptFacts {
  readonly protocol: "http" | "websocket"
  readonly code: ReasonCode
  /** on an allow: what a rule set to `report` would have refused it with */
  readonly report?: ReasonCode
}

export interface InterceptOptions extends InterceptRules {
  /** the accepted connection, the bytes of its ClientHello still to be read */
  readonly client: Duplex
  readonly authority: CallAuthority
  /** dials raw TCP to what was vetted for `name`; called once for each upstream connection */
  readonly upstream: () => Promise<Duplex>
  /** records one verdict for each request; an allow that was not recorded is not acted on */
  readonly record: (facts: InterceptFacts) => { readonly recorded: boolean; readonly verdict: Verdict }
  /** when what is read is worked on, so that one caller's connections do not hold up another's */
  readonly turns?: Turns
  /** memory for undoing the encodings of bodies, shared with the caller's other connections */
  readonly decoding?: DecodingRoom
  /** the caller's own say on a request that passed the rules here: budgets, generations; `allowed` lets it pass */
  readonly judge?: (request: InterceptedRequest) => ReasonCode
  /** a method that `readOnlyHttp: enforce` would refuse was let through */
  readonly onReadOnlyReport?: (request: InterceptedRequest) => void
  /** trust anchors beside the public ones; keep one array, its context is cached */
  readonly verifyCa?: readonly string[]
  readonly limits?: Partial<InterceptLimits>
  /** keeps what passes; or what `upstream` gives answers from one, without TLS */
  readonly tape?: Tape
  /** holds what is captured; given with `capture` */
  readonly captured?: CapturedTokens
}

interface InterceptLimits extends ServerLimits {
  /** TLS handshake and first head; also from the end of a response to the end of the next head */
  readonly headMs: number
  /** upstream TLS handshake */
  readonly handshakeMs: number
  /** requests read ahead of their responses, and what their heads take in memory → the connection is closed */
  readonly pipelined: number
  readonly pipelinedBytes: number
  /** a body up to this size is searched whole before anything goes upstream */
  readonly heldBodyBytes: number
  /** bytes worked on in one turn of the event loop, where the caller gives no turns, and memory for decoding likewise */
  readonly turnBytes: number
  readonly decodingBytes: number
  /** what a request takes of those at least */
  readonly requestCost: number
}

const interceptLimits: InterceptLimits = Object.freeze({
  headBytes: 65_536,
  headerLines: 128,
  headMs: 60_000,
  idleMs: 120_000,
  handshakeMs: 15_000,
  pipelined: 32,
  pipelinedBytes: 131_072,
  heldBodyBytes: 65_536,
  turnBytes: 65_536,
  decodingBytes: 67_108_864,
  requestCost: 4_096,
})

/**
 * How the connection ended. `client_tls`: the handshake failed, mostly because the program does not trust the
 * authority. `unused`: it succeeded but no request came, which is how programs that check the certificate only
 * afterwards (Node) show the same.
 */
export type InterceptEnd =
  | { readonly end: "closed" }
  | { readonly end: "client_tls"; readonly code: string }
  | { readonly end: "sni_mismatch" }
  | { readonly end: "unused" }

export interface Interception extends AsyncDisposable {
  readonly done: Promise<InterceptEnd>
  destroy(): void
}

export function interceptTls(options: InterceptOptions): Interception {
  const limits = { ...interceptLimits, ...options.limits }
  const { client, name, authority, turns = createTurns(limits.turnBytes) } = options
  const { decoding = createDecodingRoom(limits.decodingBytes), tape } = options
  const agent = createUpstreamAgent({
    name,
    upstream: options.upstream,
    verifyCa: options.verifyCa,
    handshakeTimeoutMs: limits.handshakeMs,
    turns,
    plain: tape?.mode === "replay",
  })
  const beneath = client instanceof Socket ? carrierOf(client, unmetered, turns) : client
  // An error may come at any time; the close that follows is what counts.
  beneath.on("error", () => tls.destroy())
  const tls = new TLSSocket(
    beneath as Socket,
    {
      isServer: true,
      secureContext: contextFor(authority.leafFor(name)),
      ALPNProtocols: ["http/1.1"],
      highWaterMark: aheadBytes,
    } as TLSSocketOptions,
  )
  carriesTls(client, tls)
  let end: InterceptEnd = { end: "closed" }
  let secured = false
  let used = false
  let open = 0
  let ahead = 0
  let refused = false
  let deadline: NodeJS.Timeout | undefined
  const watch = (): void => {
    clearTimeout(deadline)
    deadline = setTimeout(() => tls.destroy(), limits.headMs)
  }
  watch()

  const judge = (request: IncomingMessage, upgrade: boolean): HeadVerdict => {
    const method = request.method ?? ""
    // A head is judged whole or not at all: of one with more lines than it keeps, the parser may leave out the rest.
    if (request.rawHeaders.length > 2 * limits.headerLines) return { ok: false, refusal: { code: "head_too_large" } }
    const head = {
      method,
      url: request.url ?? "",
      httpVersion: request.httpVersion,
      rawHeaders: request.rawHeaders,
      upgrade,
    }
    const passed = judgeHead(head, options)
    if (!passed.ok) return passed
    const facts = { protocol: passed.kind, method, safe: passed.safe, used: passed.used }
    const code = options.judge?.(facts) ?? "allowed"
    if (code !== "allowed") return { ok: false, refusal: { code } }
    const report = passed.reported ? ({ report: "read_only" } as const) : undefined
    if (!options.record({ protocol: passed.kind, code, ...report }).recorded) {
      return { ok: false, refusal: { code: "verdict_log_failed" } }
    }
    if (passed.reported) options.onReadOnlyReport?.(facts)
    return passed
  }

  const refuse = (response: ServerResponse, refusal: Refusal, protocol: "http" | "websocket"): void => {
    refused = true
    const { verdict } = options.record({ protocol, code: refusal.code })
    // Once a response is begun, or the connection is a WebSocket, closing is the only answer left.
    if (response.headersSent || response.destroyed || response.socket === null) {
      tls.destroy()
      return
    }
    const denied = deniedResponse(verdict, refusal.detail)
    response.writeHead(denied.status, denied.phrase, [...denied.headers])
    response.end(denied.body)
  }

  /** Not a word of goodbye: the client must not take what it has for the whole. */
  const breakOff = (): void => {
    abort(client as Socket)
    tls.destroy()
  }

  // Tokens that are captured meanwhile are among them from then on.
  const spellings = (): readonly Buffer[] => options.substitutions.spellingsFor(name)

  const { capture, captured } = options
  const tokenWork = new Set<Promise<unknown>>()
  /** Goes on without its client: what the provider gave out is kept whatever becomes of the connection. */
  const serveTokens = async (
    request: IncomingMessage,
    response: ServerResponse,
    head: Extract<HeadVerdict, { ok: true }>,
  ): Promise<Refusal | undefined> => {
    if (capture === undefined || captured === undefined) return { code: "internal" }
    const { relayTokens } = await import("./relay-tokens.ts")
    const { upstream, verifyCa } = options
    const work = relayTokens({
      request,
      response,
      head,
      captured,
      passId: capture.idToken === "pass",
      upstream: { name, upstream, verifyCa, handshakeTimeoutMs: limits.handshakeMs, turns },
      headBytes: limits.headBytes,
      turns,
      spellings,
    })
    tokenWork.add(work)
    return await work.finally(() => tokenWork.delete(work))
  }

  const serve = async (request: IncomingMessage, response: ServerResponse, expectsContinue: boolean): Promise<void> => {
    await turns.next(limits.requestCost + sizeOf(request))
    // What was sent ahead of a refusal is not looked at: the connection ends with it.
    if (response.destroyed || refused) return
    const head = judge(request, false)
    if (!head.ok) return refuse(response, head.refusal, "http")
    if (expectsContinue) response.writeContinue()
    if (head.forTokens) {
      const refusal = await serveTokens(request, response, head)
      return refusal === undefined ? undefined : refuse(response, refusal, "http")
    }
    const { placeholders } = options.substitutions
    const refusal = await relayRequest({
      request,
      response,
      head,
      agent,
      limits,
      placeholders,
      turns,
      decoding,
      breakOff,
      spellings: spellings(),
      tape,
      target: { host: name, port: options.port, secure: true },
    })
    if (refusal !== undefined) refuse(response, refusal, "http")
  }

  /** Requests that were sent ahead wait for the one before: in order, over one upstream connection. */
  let turn = Promise.resolve()
  const onRequest = (request: IncomingMessage, response: ServerResponse, expectsContinue: boolean): void => {
    clearTimeout(deadline)
    used = true
    open += 1
    const bytes = sizeOf(request)
    ahead += bytes
    if (open > limits.pipelined || (open > 1 && ahead > limits.pipelinedBytes)) {
      tls.destroy()
      return
    }
    let answered = false
    const onAnswered = (): void => {
      if (answered) return
      answered = true
      open -= 1
      ahead -= bytes
      if (open === 0 && !tls.destroyed) watch()
    }
    response.once("finish", onAnswered)
    response.once("close", onAnswered)
    turn = turn.then(() => serve(request, response, expectsContinue)).catch(() => void tls.destroy())
  }

  const onUpgrade = (request: IncomingMessage, socket: Duplex, early: Buffer): void => {
    clearTimeout(deadline)
    used = true
    // The parser has let go of the connection, so what was asked before cannot be answered in order any more.
    if (open > 0) {
      options.record({ protocol: "websocket", code: "upgrade_not_allowed" })
      tls.destroy()
      return
    }
    const response = new ServerResponse(request)
    response.assignSocket(socket as Socket)
    response.once("finish", () => tls.destroySoon())
    const head = judge(request, true)
    if (!head.ok) return refuse(response, head.refusal, "websocket")
    if (tape !== undefined) {
      tape.fault(`${name}: a WebSocket can neither be recorded nor replayed`)
      return refuse(response, { code: "not_recordable" }, "websocket")
    }
    const { placeholders } = options.substitutions
    relayWebSocket({
      request,
      response,
      client: tls,
      early,
      head,
      agent,
      limits,
      placeholders,
      turns,
      spellings: spellings(),
    })
      .then((refusal) => refusal !== undefined && refuse(response, refusal, "websocket"))
      .catch(() => tls.destroy())
  }

  const server = strictServer(limits)
  const broken = (): void => void tls.destroy()
  const onClientError = (error: NodeJS.ErrnoException, socket: Duplex): void => {
    if (!socket.writable || error.code === "ECONNRESET" || open > 0) return void socket.destroy()
    used = true
    const denied = deniedResponse(options.record({ protocol: "http", code: reasonOf(error) }).verdict, undefined)
    const lines = denied.headers.flatMap((text, at) => (at % 2 === 0 ? [`${text}: ${denied.headers[at + 1]}`] : []))
    socket.end(`HTTP/1.1 ${denied.status} ${denied.phrase}\r\n${lines.join("\r\n")}\r\n\r\n${denied.body}`)
  }
  const onRequestGuarded = guarded(onRequest, broken)
  server.on("request", (request, response) => onRequestGuarded(request, response, false))
  server.on("checkContinue", (request, response) => onRequestGuarded(request, response, true))
  server.on(
    "checkExpectation",
    guarded((_: IncomingMessage, response: ServerResponse) => refuse(response, { code: "bad_expect" }, "http"), broken),
  )
  server.on("upgrade", guarded(onUpgrade, broken))
  server.on("connect", guarded(onUpgrade, broken))
  server.on("clientError", guarded(onClientError, broken))

  const done = new Promise<InterceptEnd>((resolve) => {
    tls.on("error", (error: NodeJS.ErrnoException) => {
      if (!secured || error.code?.startsWith("ERR_SSL_TLSV1_ALERT") || error.code?.startsWith("ERR_SSL_SSLV3_ALERT")) {
        end = { end: "client_tls", code: error.code ?? "UNKNOWN" }
      }
    })
    // A half-close has no meaning before there is a session.
    tls.once("end", () => {
      if (!secured) tls.destroy()
    })
    tls.once("secure", () => {
      secured = true
      if (String((tls as TLSSocket & { servername?: unknown }).servername).toLowerCase() !== name) {
        end = { end: "sni_mismatch" }
        tls.destroy()
        return
      }
      server.emit("connection", tls)
    })
    const finish = (): void => {
      clearTimeout(deadline)
      if (!used && end.end === "closed") end = secured ? { end: "unused" } : { end: "client_tls", code: "ECONNRESET" }
      agent.destroy()
      client.destroy()
      tls.destroy()
      void Promise.allSettled(tokenWork).then(() => resolve(end))
    }
    tls.once("close", finish)
    client.once("close", finish)
  })
  client.on("error", () => tls.destroy())

  const destroy = (): void => void tls.destroy()
  return {
    done,
    destroy,
    async [Symbol.asyncDispose]() {
      destroy()
      await done
    },
  }
}

/** A context takes longer to make than a leaf; it goes when its leaf does. */
const contexts = new WeakMap<Leaf, SecureContext>()

function contextFor(leaf: Leaf): SecureContext {
  const known = contexts.get(leaf) ?? createSecureContext({ cert: leaf.cert, key: leaf.key, minVersion: "TLSv1.2" })
  contexts.set(leaf, known)
  return known
}
