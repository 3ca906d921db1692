/**
 * Carries one judged request upstream and its response back.
 *
 * Guarantees: each part of the body is searched for placeholders before it is forwarded; a body of known, small size
 * is searched whole before anything goes upstream at all; a misuse found later cuts the upstream request short, so
 * that it never completes. Response heads lose hop-by-hop and control headers; bodies stream with backpressure. A
 * response whose framing two readers could see differently, or with a transfer coding beside `chunked`, is refused.
 * A response that breaks off is broken off to the client too, never completed. A request is sent a second time only
 * when it is safe, has no body, and met a connection that had died while idle.
 * Resolves to the refusal to answer with, or undefined where the response was begun or the client is gone.
 */
import {
  type Agent,
  type ClientRequest,
  type IncomingMessage,
  request as httpRequest,
  type ServerResponse,
} from "node:http"
import { pipeline } from "node:stream/promises"
import type { Transform } from "node:stream"
import { createBodyScanner, type BodyScanner, decoderFor } from "../secrets/body.ts"
import { scrubbed, scrubStream } from "../secrets/scrub.ts"
import type { HeaderPair } from "../secrets/substitute.ts"
import { inTurns, type Turns } from "../turns.ts"
import { emptyBody, everyHeader } from "../http/framing.ts"
import { crossing } from "../http/hop-by-hop.ts"
import { isFinal, responseLength } from "../http/respond.ts"
import { isBrokenOff } from "./carrier.ts"
import { flatten, pairsOf } from "./headers.ts"
import { type HeadVerdict, type Refusal, refusalOf } from "./intercept-request.ts"
import { UpstreamFailure } from "./upstream.ts"

/** interim (1xx) responses to one request; they are not passed on */
const maxInterim = 16

export interface RelayLimits {
  readonly headBytes: number
  readonly idleMs: number
  readonly heldBodyBytes: number
}

export interface RelayedRequest {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly head: Extract<HeadVerdict, { ok: true }>
  readonly agent: Agent
  readonly limits: RelayLimits
  readonly placeholders: readonly string[]
  readonly turns: Turns
  /** how the secrets of this host may be spelled in its responses, from which they are taken out */
  readonly spellings: readonly Buffer[]
  /** ends the client's connection so that it looks broken, not finished */
  readonly breakOff: () => void
}

export async function relayRequest(relayed: RelayedRequest): Promise<Refusal | undefined> {
  const { request, response, head, limits } = relayed
  using scanner = createBodyScanner({ placeholders: relayed.placeholders, encoding: head.encoding })
  const { body } = head
  const held: Buffer[] = []
  const hold = body.kind === "none" || (body.kind === "length" && body.bytes <= limits.heldBodyBytes)
  try {
    if (hold) {
      for await (const chunk of inTurns(request, relayed.turns)) {
        const refusal = refusalOf(await scanner.push(chunk))
        if (refusal !== undefined) return refusal
        held.push(chunk)
      }
      const refusal = body.kind === "none" ? undefined : refusalOf(await scanner.end())
      if (refusal !== undefined) return refusal
    }
  } catch {
    // The client broke off in the middle of its body.
    response.destroy()
    return undefined
  }
  const retriable = body.kind === "none" && head.safe
  const first = await exchange(relayed, hold ? held : scanner)
  const last = first === "died-idle" && retriable ? await exchange(relayed, held) : first
  return last === "died-idle" ? { code: "upstream_error" } : last
}

/** One attempt. `died-idle`: a reused connection was closed before a byte of the response came. */
async function exchange(
  relayed: RelayedRequest,
  body: readonly Buffer[] | BodyScanner,
): Promise<Refusal | "died-idle" | undefined> {
  const { request, response, head, agent, limits } = relayed
  if (response.destroyed) return undefined
  const upstream = httpRequest({
    agent,
    method: request.method ?? "GET",
    path: request.url ?? "/",
    headers: flatten([...head.headers, ...framingHeaders(relayed)]),
    timeout: limits.idleMs,
    maxHeaderSize: limits.headBytes,
    insecureHTTPParser: false,
  })
  upstream.maxHeadersCount = everyHeader
  const abandon = (): void => void upstream.destroy()
  response.once("close", abandon)
  let timedOut = false
  let answering = false
  let interim = 0
  upstream.on("information", () => {
    interim += 1
    if (interim > maxInterim) upstream.destroy()
  })
  let stopped: Refusal | undefined
  upstream.once("timeout", () => {
    timedOut = true
    upstream.destroy()
  })
  const answered = answerOf(upstream)
  const sent = send(upstream, request, body, relayed.turns).then((refusal) => {
    stopped = refusal
    if (refusal !== undefined) upstream.destroy()
  })
  try {
    const answer = await answered
    answering = true
    // A transfer coding other than chunked would hide the body from the search for secrets.
    if (responseLength(answer) === undefined || !isFinal(answer)) {
      upstream.destroy()
      return { code: "upstream_error" }
    }
    const decoders = decodersFor(answer, request.method ?? "")
    if (decoders === undefined) {
      upstream.destroy()
      return { code: "upstream_error", detail: "its content encoding cannot be searched for the secret" }
    }
    const { spellings } = relayed
    response.sendDate = false
    response.writeHead(
      answer.statusCode ?? 502,
      scrubbed(answer.statusMessage ?? "", spellings),
      flatten(answerHeaders(answer, decoders.length > 0)).map((text) => scrubbed(text, spellings)),
    )
    // One that goes on for as long as it likes begins at once; its first bytes may be long in coming.
    if (answer.headers["content-length"] === undefined) response.flushHeaders()
    const { socket } = answer
    const came = inTurns(answer, relayed.turns)
    const [decoder] = decoders
    const scrub = scrubStream(spellings)
    if (decoder === undefined) await pipeline(came, scrub, response, { end: false })
    else await pipeline(came, decoder, scrub, response, { end: false })
    if (isToTheEnd(answer, request.method ?? "") && isBrokenOff(socket)) {
      relayed.breakOff()
      return undefined
    }
    const finished = new Promise<void>((resolve) => response.once("finish", resolve).once("close", resolve))
    response.end()
    await finished
    // An upstream may answer before it has read the body; what it did not ask for is not sent.
    if (!request.complete) upstream.destroy()
    return undefined
  } catch (error) {
    upstream.destroy()
    await sent
    if (stopped !== undefined) return stopped
    if (response.headersSent || response.destroyed) {
      relayed.breakOff()
      return undefined
    }
    if (timedOut) return { code: "upstream_timeout" }
    if (error instanceof UpstreamFailure) return { code: error.reason, detail: error.code }
    return upstream.reusedSocket && !answering && interim === 0 ? "died-idle" : { code: "upstream_error" }
  } finally {
    response.off("close", abandon)
  }
}

/** Does only the end of the connection tell where this response ends? */
const isToTheEnd = (answer: IncomingMessage, method: string): boolean =>
  answer.headers["content-length"] === undefined &&
  answer.headers["transfer-encoding"] === undefined &&
  !isBodiless(answer, method)

/** There is nothing to decode, whatever its headers say of an encoding. */
const isBodiless = ({ headers, statusCode }: IncomingMessage, method: string): boolean =>
  method === "HEAD" || statusCode === 204 || statusCode === 304 || headers["content-length"] === "0"

/** What undoes the encoding of the body, nothing where there is none; undefined where nothing here does. */
function decodersFor(answer: IncomingMessage, method: string): readonly Transform[] | undefined {
  const encoding = (answer.headers["content-encoding"] ?? "").trim().toLowerCase()
  if (encoding === "" || encoding === "identity" || isBodiless(answer, method)) return []
  const decoder = decoderFor(encoding)
  return decoder === undefined ? undefined : [decoder]
}

const ofEncoded: ReadonlySet<string> = new Set(["content-encoding", "content-length"])
const ofBody: ReadonlySet<string> = new Set(["content-length"])
const noHeader: ReadonlySet<string> = new Set()

/** A length that no longer holds stays behind, and so does one of a body that there never is. */
function answerHeaders(answer: IncomingMessage, decoded: boolean): readonly HeaderPair[] {
  const behind = decoded ? ofEncoded : answer.statusCode === 204 ? ofBody : noHeader
  return crossing(pairsOf(answer.rawHeaders)).filter(([name]) => !behind.has(name.toLowerCase()))
}

function answerOf(upstream: ClientRequest): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    upstream.once("response", resolve)
    upstream.on("error", reject)
    upstream.once("close", () => reject(new Error("closed without a response")))
  })
}

/** Sends the body; resolves to a refusal when something in it must not go out. Never rejects. */
async function send(
  upstream: ClientRequest,
  request: IncomingMessage,
  body: readonly Buffer[] | BodyScanner,
  turns: Turns,
): Promise<Refusal | undefined> {
  if (!("push" in body && "dispose" in body)) {
    upstream.end(Buffer.concat(body as readonly Buffer[]))
    return undefined
  }
  try {
    for await (const chunk of inTurns(request, turns)) {
      const refusal = refusalOf(await body.push(chunk))
      if (refusal !== undefined) return refusal
      if (upstream.destroyed) return undefined
      if (!upstream.write(chunk)) await drained(upstream)
    }
    const refusal = refusalOf(await body.end())
    if (refusal === undefined) upstream.end()
    return refusal
  } catch {
    upstream.destroy()
    return undefined
  }
}

const drained = (upstream: ClientRequest): Promise<void> =>
  new Promise((resolve) => {
    const done = (): void => {
      upstream.off("drain", done)
      upstream.off("close", done)
      resolve()
    }
    upstream.once("drain", done)
    upstream.once("close", done)
  })

function framingHeaders({ head, request }: RelayedRequest): readonly HeaderPair[] {
  if (head.body.kind === "length") return [["Content-Length", String(head.body.bytes)]]
  if (head.body.kind === "chunked") return [["Transfer-Encoding", "chunked"]]
  return emptyBody(request.method ?? "")
}
