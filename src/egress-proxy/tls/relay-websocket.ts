/**
 * Carries a judged WebSocket handshake upstream and, once the upstream agrees, the two byte streams.
 *
 * Guarantees: nothing but the handshake goes upstream before its 101; the 101 must be for a WebSocket. Any other
 * answer is given to the client as an ordinary response, after which the connection ends. No extension is offered
 * upstream, so that messages of the client can be searched for placeholders; one that holds some is not passed on
 * and ends the connection. A half-close is passed on; either side's close, or its silence for `idleMs`, closes both.
 * Resolves when the connection is over, to the refusal to record or answer with, if any.
 */
import { type Agent, type IncomingMessage, request as httpRequest, type ServerResponse, STATUS_CODES } from "node:http"
import { type Duplex, Transform } from "node:stream"
import { pipeline } from "node:stream/promises"
import type { TLSSocket } from "node:tls"
import { attempt, guarded } from "../connection/boundary.ts"
import type { Turns } from "../connection/turns.ts"
import { createScrubber, scrubbed, scrubStream } from "../secrets/scrub.ts"
import { createMessageEnds, createWebSocketScanner } from "../secrets/websocket.ts"
import { everyHeader } from "../http/framing.ts"
import { crossing } from "../http/hop-by-hop.ts"
import { isFinal, responseLength } from "../http/respond.ts"
import { flatten, membersOf, pairsOf } from "./headers.ts"
import { type HeadVerdict, type Refusal, refusalOf } from "./intercept-request.ts"
import { UpstreamFailure } from "./upstream.ts"

interface RelayedWebSocket {
  readonly request: IncomingMessage
  /** for an answer other than 101 */
  readonly response: ServerResponse
  readonly client: TLSSocket
  /** bytes the client sent after its handshake */
  readonly early: Buffer
  readonly head: Extract<HeadVerdict, { ok: true }>
  readonly agent: Agent
  readonly limits: { readonly headBytes: number; readonly idleMs: number }
  readonly placeholders: readonly string[]
  /** how the secrets of this host may be spelled in what it sends, from which they are taken out */
  readonly spellings: readonly Buffer[]
  readonly turns: Turns
}

type Answer =
  | { readonly kind: "upgraded"; readonly head: IncomingMessage; readonly socket: Duplex; readonly early: Buffer }
  | { readonly kind: "response"; readonly head: IncomingMessage }

export async function relayWebSocket(relayed: RelayedWebSocket): Promise<Refusal | undefined> {
  const { request, response, client, head, agent, limits } = relayed
  const offered = head.headers.filter(([name]) => name.toLowerCase() !== "sec-websocket-extensions")
  const upstream = httpRequest({
    agent,
    method: "GET",
    path: request.url ?? "/",
    headers: flatten([...offered, ["Connection", "Upgrade"], ["Upgrade", "websocket"]]),
    timeout: limits.idleMs,
    maxHeaderSize: limits.headBytes,
    insecureHTTPParser: false,
  })
  upstream.maxHeadersCount = everyHeader
  const abandon = (): void => void upstream.destroy()
  client.once("close", abandon)
  let timedOut = false
  upstream.once("timeout", () => {
    timedOut = true
    upstream.destroy()
  })
  try {
    const answer = await new Promise<Answer>((resolve, reject) => {
      upstream.once("upgrade", (message, socket, early) => resolve({ kind: "upgraded", head: message, socket, early }))
      upstream.once("response", (message) => resolve({ kind: "response", head: message }))
      upstream.on("error", reject)
      upstream.once("close", () => reject(new Error("closed without a response")))
      upstream.end()
    })
    if (answer.kind === "upgraded") return await join(relayed, answer)
    if (answer.head.headers["content-encoding"] !== undefined) {
      upstream.destroy()
      return { code: "upstream_error", detail: "its content encoding cannot be searched for the secret" }
    }
    if (responseLength(answer.head) === undefined || !isFinal(answer.head)) {
      upstream.destroy()
      return { code: "upstream_error" }
    }
    const { spellings } = relayed
    const headers = flatten(crossing(pairsOf(answer.head.rawHeaders))).map((text) => scrubbed(text, spellings))
    response.writeHead(answer.head.statusCode ?? 502, scrubbed(answer.head.statusMessage ?? "", spellings), [
      ...headers,
      "Connection",
      "close",
    ])
    await pipeline(answer.head, scrubStream(spellings), response)
    return undefined
  } catch (error) {
    upstream.destroy()
    if (client.destroyed || response.headersSent) {
      client.destroy()
      return undefined
    }
    if (timedOut) return { code: "upstream_timeout" }
    return error instanceof UpstreamFailure ? { code: error.reason, detail: error.code } : { code: "upstream_error" }
  } finally {
    client.off("close", abandon)
  }
}

async function join(
  relayed: RelayedWebSocket,
  answer: Extract<Answer, { kind: "upgraded" }>,
): Promise<Refusal | undefined> {
  const { client, response, early, limits, placeholders, spellings, turns } = relayed
  const upstream = answer.socket as TLSSocket
  const pairs = pairsOf(answer.head.rawHeaders)
  if (answer.head.statusCode !== 101 || membersOf(pairs, "upgrade").join() !== "websocket") {
    upstream.destroy()
    return { code: "upstream_error" }
  }
  response.detachSocket(client)
  const lines = crossing(pairs).map(([name, value]) => `${scrubbed(`${name}: ${value}`, spellings)}\r\n`)
  client.write(
    `HTTP/1.1 101 ${STATUS_CODES[101]}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n${lines.join("")}\r\n`,
    "latin1",
  )
  const scrubber = createScrubber(spellings)
  const ends = createMessageEnds()
  const passBack = (came: Buffer): boolean => {
    const end = ends.push(came)
    // What is held back is not held beyond its message: the next one may never come.
    const whole = end === 0 ? [] : [scrubber.push(came.subarray(0, end)), scrubber.end()]
    const bytes = Buffer.concat([...whole, scrubber.push(came.subarray(end))])
    return bytes.length === 0 || client.write(bytes)
  }
  passBack(answer.early)
  return await new Promise<Refusal | undefined>((resolve) => {
    const scanner = createWebSocketScanner(placeholders)
    const finish = (refusal?: Refusal): void => {
      resolve(refusal)
      for (const socket of [client, upstream]) {
        if (refusal === undefined) socket.destroySoon()
        else socket.destroy()
      }
    }
    const gate = new Transform({
      transform(chunk: Buffer, _encoding, done) {
        const pass = (): void => {
          const refusal = placeholders.length === 0 ? undefined : refusalOf(scanner.push(chunk))
          if (refusal === undefined) done(null, chunk)
          else finish(refusal)
        }
        void turns.next(chunk.length).then(() => attempt(pass, () => finish({ code: "internal" })))
      },
    })
    for (const socket of [client, upstream]) {
      socket.removeAllListeners("timeout")
      socket.setTimeout(limits.idleMs, () => socket.destroy())
      socket.on("error", () => finish())
      socket.once("close", () => finish())
    }
    if (early.length > 0) gate.write(early)
    client.pipe(gate).pipe(upstream)
    const onMessage = (chunk: Buffer): void => {
      if (!passBack(chunk)) upstream.pause()
    }
    client.on("drain", () => upstream.resume())
    upstream.on(
      "data",
      guarded(onMessage, () => finish({ code: "internal" })),
    )
    upstream.once("end", () => client.end(scrubber.end()))
  })
}
