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
import { createBodyScanner, type BodyScanner } from "../secrets/body.ts"
import type { DecodingRoom } from "../secrets/decoding-room.ts"
import { scrubbed } from "../secrets/scrub.ts"
import type { HeaderPair } from "../secrets/substitute.ts"
import { inTurns, type Turns } from "../connection/turns.ts"
import { emptyBody, everyHeader } from "../http/framing.ts"
import { isFinal, responseLength } from "../http/respond.ts"
import { isBrokenOff } from "../connection/whole-end.ts"
import { asksForTokens } from "../tokens/endpoint.ts"
import { flatten, pairsOf, valuesOf } from "./headers.ts"
import { type HeadVerdict, type Refusal, refusalOf } from "./intercept-request.ts"
import { answerHeaders, copyBody, decodingFor, isToTheEnd } from "./relay-answer.ts"
import { UpstreamFailure } from "./upstream.ts"
import { spyOn } from "../tape/spy.ts"
import type { Tape, TapeTarget } from "../tape/words.ts"

/** interim (1xx) responses to one request; they are not passed on */
const maxInterim = 16

interface RelayLimits {
  readonly headBytes: number
  readonly idleMs: number
  readonly heldBodyBytes: number
}

interface RelayedRequest {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly head: Extract<HeadVerdict, { ok: true }>
  readonly agent: Agent
  readonly limits: RelayLimits
  readonly placeholders: readonly string[]
  readonly turns: Turns
  readonly decoding: DecodingRoom
  /** how the secrets of this host may be spelled in its responses, from which they are taken out */
  readonly spellings: readonly Buffer[]
  /** hears what passes */
  readonly tape: Tape | undefined
  readonly target: TapeTarget
  /** ends the client's connection so that it looks broken, not finished */
  readonly breakOff: () => void
}

export async function relayRequest(relayed: RelayedRequest): Promise<Refusal | undefined> {
  const { request, response, head, limits } = relayed
  const { placeholders, turns, decoding: room } = relayed
  using scanner = createBodyScanner({ placeholders, encoding: head.encoding, turns, room })
  // Whoever waits for memory, or for a turn, waits for nothing once the client is gone.
  response.once("close", () => scanner.dispose())
  const { body } = head
  const held: Buffer[] = []
  const chunks = inTurns(request, turns)
  let hold = body.kind === "none" || (body.kind === "length" && body.bytes <= limits.heldBodyBytes)
  try {
    // Beside a token endpoint the beginning of any body is looked at, however long it says that it is.
    if (hold || head.nearTokens) {
      let size = 0
      while (hold || size < limits.heldBodyBytes) {
        const next = await chunks.next()
        if (next.done === true) {
          hold = true
          break
        }
        const step = await scanner.push(next.value)
        if (step.state !== "clean") return refusalOf(step)
        size += next.value.length
        held.push(next.value)
      }
      const type = valuesOf(head.headers, "content-type").join(",")
      if (head.nearTokens && asksForTokens("", type, Buffer.concat(held))) return { code: "token_endpoint" }
      const step = body.kind === "none" || !hold ? undefined : await scanner.end()
      if (step !== undefined && step.state !== "clean") return refusalOf(step)
    }
  } catch {
    // The client broke off in the middle of its body.
    response.destroy()
    return undefined
  }
  const retriable = body.kind === "none" && head.safe
  const first = await exchange(relayed, hold ? { held } : { held, chunks, scanner })
  const last = first === "died-idle" && retriable ? await exchange(relayed, { held }) : first
  return last === "died-idle" ? { code: "upstream_error" } : last
}

/** What was looked at already, and where there is more, what it comes from and how it is looked at. */
interface Outgoing {
  readonly held: readonly Buffer[]
  readonly chunks?: AsyncIterable<Buffer>
  readonly scanner?: BodyScanner
}

/** One attempt. `died-idle`: a reused connection was closed before a byte of the response came. */
async function exchange(relayed: RelayedRequest, body: Outgoing): Promise<Refusal | "died-idle" | undefined> {
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
  spyOn(relayed.tape, upstream, () => ({
    target: relayed.target,
    method: request.method ?? "GET",
    path: request.url ?? "/",
    headers: pairsOf(request.rawHeaders),
  }))
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
  const sent = send(upstream, body).then((refusal) => {
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
    const decoding = decodingFor(answer, request.method ?? "")
    if (decoding === undefined) {
      upstream.destroy()
      return { code: "upstream_error", detail: "its content encoding cannot be searched for the secret" }
    }
    const { spellings } = relayed
    response.sendDate = false
    response.writeHead(
      answer.statusCode ?? 502,
      scrubbed(answer.statusMessage ?? "", spellings),
      flatten(answerHeaders(answer, decoding)).map((text) => scrubbed(text, spellings)),
    )
    // One that goes on for as long as it likes begins at once; its first bytes may be long in coming.
    if (answer.headers["content-length"] === undefined) response.flushHeaders()
    const { socket } = answer
    await copyBody(answer, response, decoding, relayed)
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

function answerOf(upstream: ClientRequest): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    upstream.once("response", resolve)
    upstream.on("error", reject)
    upstream.once("close", () => reject(new Error("closed without a response")))
  })
}

/** Sends the body; resolves to a refusal when something in it must not go out. Never rejects. */
async function send(upstream: ClientRequest, { held, chunks, scanner }: Outgoing): Promise<Refusal | undefined> {
  if (chunks === undefined || scanner === undefined) {
    upstream.end(Buffer.concat(held))
    return undefined
  }
  try {
    if (held.length > 0 && !upstream.write(Buffer.concat(held))) await drained(upstream)
    for await (const chunk of chunks) {
      const step = await scanner.push(chunk)
      if (step.state !== "clean") return refusalOf(step)
      if (upstream.destroyed) return undefined
      if (!upstream.write(chunk)) await drained(upstream)
    }
    const last = await scanner.end()
    if (last.state !== "clean") return refusalOf(last)
    upstream.end()
    return undefined
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
