/**
 * Carries one request to a token endpoint, and its answer back with placeholders in the place of the tokens.
 *
 * Guarantees: the client hears of an answer only after what it gave out was kept by its owner, durably. Once the request is
 * on its way it is carried to its end whatever becomes of the client, on a connection of its own, within a bound. Of all who
 * would use the same owner's tokens to renew them, one does at a time, with the newest. Bodies are whole and bounded, either
 * way; none of a refused answer passes.
 * Resolves to the refusal to answer with, or undefined where the response was given or the client is gone.
 */
import { type IncomingMessage, request as httpRequest, type ServerResponse } from "node:http"
import { Readable } from "node:stream"
import { inTurns, type Turns } from "../connection/turns.ts"
import { isBrokenOff } from "../connection/whole-end.ts"
import { everyHeader } from "../http/framing.ts"
import { isFinal, responseLength } from "../http/respond.ts"
import { scrubbed } from "../secrets/scrub.ts"
import { readAnswer } from "../tokens/answer.ts"
import type { CapturedTokens } from "../tokens/captured.ts"
import { asksForTokens } from "../tokens/endpoint.ts"
import { loginOf, type TokenTurn, withLogin } from "../tokens/held.ts"
import { captureLimits } from "../tokens/limits.ts"
import { turnBack } from "../tokens/request.ts"
import { flatten, valuesOf } from "./headers.ts"
import { type HeadVerdict, misuse, type Refusal } from "./intercept-request.ts"
import { answerHeaders, decodingFor, isToTheEnd } from "./relay-answer.ts"
import { createUpstreamAgent, UpstreamFailure, type UpstreamTls } from "./upstream.ts"

interface RelayedTokens {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly head: Extract<HeadVerdict, { ok: true }>
  readonly captured: CapturedTokens
  readonly passId: boolean
  readonly upstream: UpstreamTls
  readonly headBytes: number
  readonly turns: Turns
  /** how the tokens and secrets of this host may be spelled in its answers, at the moment of asking */
  readonly spellings: () => readonly Buffer[]
}

interface Answer {
  readonly message: IncomingMessage
  readonly body: Buffer
}
interface Ready {
  readonly answer: Answer
  readonly body: Buffer
}

const refused = (code: Refusal["code"], detail: string): Refusal => ({ code, detail })
const isRefusal = (value: object): value is Refusal => "code" in value

export async function relayTokens(relayed: RelayedTokens): Promise<Refusal | undefined> {
  const { request, response, head, captured } = relayed
  if ((head.encoding ?? "identity").trim().toLowerCase() !== "identity")
    return refused("unsearchable_body", "send a request for tokens without Content-Encoding")
  const body = await bodyOf(request, relayed.turns)
  if (body === undefined) return void response.destroy()
  if (body === "too-large")
    return refused("unsearchable_body", "the body of a request for tokens is larger than the cap")
  const ready = await captured.underWay(exchange(relayed, body))
  if (isRefusal(ready)) return ready
  if (response.destroyed) return undefined
  answerWith(relayed, ready)
  return undefined
}

async function bodyOf(request: IncomingMessage, turns: Turns): Promise<Buffer | "too-large" | undefined> {
  const chunks: Buffer[] = []
  let size = 0
  try {
    for await (const chunk of inTurns(request, turns)) {
      size += chunk.length
      if (size > captureLimits.requestBytes) return "too-large"
      chunks.push(chunk)
    }
  } catch {
    return undefined
  }
  return Buffer.concat(chunks)
}

async function exchange(relayed: RelayedTokens, body: Buffer): Promise<Ready | Refusal> {
  const { request, head, captured, passId } = relayed
  const type = valuesOf(head.headers, "content-type").join(",")
  const first = turnBack(body, type, captured.logins)
  if (!first.ok) return misuse("body", first.placeholder)
  const turn = first.used.length === 0 ? undefined : await captured.turn()
  if (first.used.length > 0 && turn === undefined) return busy
  await using held = turn
  // Another call may have renewed them since: what is sent is the newest, and nobody else sends it meanwhile.
  if (held !== undefined) captured.set(held.logins)
  const back = held === undefined ? first : turnBack(body, type, held.logins)
  if (!back.ok) return misuse("body", back.placeholder)
  const answer = await answered(relayed, back.body)
  if (isRefusal(answer)) return answer
  const status = answer.message.statusCode ?? 0
  const asked = asksForTokens(request.url ?? "", type, body)
  const contentType = answer.message.headers["content-type"] ?? ""
  const read = readAnswer({ status, contentType, body: answer.body, asked }, passId)
  if (!read.ok) return refused("token_answer", read.reason)
  if (read.tokens.length === 0) return { answer, body: answer.body }
  if (held !== undefined) return await kept(relayed, held, { answer, read, renews: back.login?.id })
  await using own = await captured.turn()
  return own === undefined ? busy : await kept(relayed, own, { answer, read, renews: undefined })
}

const busy = refused("token_answer", "others use or keep tokens of this owner for too long")

/** Durable first, and told afterwards. */
async function kept(
  { captured }: RelayedTokens,
  turn: TokenTurn,
  came: {
    readonly answer: Answer
    readonly read: Extract<ReturnType<typeof readAnswer>, { ok: true }>
    readonly renews: string | undefined
  },
): Promise<Ready | Refusal> {
  const { answer, read, renews } = came
  const before = renews === undefined ? undefined : turn.logins.find(({ id }) => id === renews)
  const login = loginOf(read.tokens, before, { now: Date.now(), expiresIn: read.expiresIn })
  const next = withLogin(turn.logins, login)
  const isKept = await turn.keep(next, login)
  captured.set(next)
  return isKept ? { answer, body: read.with(login) } : refused("token_answer", "its tokens could not be kept")
}

/** what spoke of the body as it came */
const ofOldBody = new Set(["content-length", "content-encoding", "etag", "content-md5", "digest", "content-digest"])
const isKeptHeader = (name: string): boolean =>
  !ofOldBody.has(name) && name !== "repr-digest" && name !== "accept-ranges"

function answerWith({ response, spellings }: RelayedTokens, { answer, body }: Ready): void {
  const status = answer.message.statusCode ?? 502
  const found = spellings()
  const headers = answerHeaders(answer.message, "none").filter(([name]) => isKeptHeader(name.toLowerCase()))
  const clean = Buffer.from(scrubbed(body.toString("latin1"), found), "latin1")
  response.sendDate = false
  response.writeHead(status, scrubbed(answer.message.statusMessage ?? "", found), [
    ...flatten(headers).map((text) => scrubbed(text, found)),
    ...(status === 204 ? [] : ["Content-Length", String(clean.length)]),
  ])
  response.end(clean)
}

const maxInterim = 16

/** The whole answer, decoded; bounded in bytes and time, and not in the hands of the client. */
async function answered(relayed: RelayedTokens, body: Buffer): Promise<Answer | Refusal> {
  const { request, head, upstream: tls, headBytes, turns } = relayed
  const agent = createUpstreamAgent(tls)
  const method = request.method ?? "GET"
  const hasBody = head.body.kind !== "none"
  const upstream = httpRequest({
    agent,
    method,
    path: request.url ?? "/",
    headers: flatten([...head.headers, ...(hasBody ? ([["Content-Length", String(body.length)]] as const) : [])]),
    maxHeaderSize: headBytes,
    insecureHTTPParser: false,
  })
  upstream.maxHeadersCount = everyHeader
  let timedOut = false
  let interim = 0
  const timer = setTimeout(() => {
    timedOut = true
    upstream.destroy()
  }, captureLimits.answerMs)
  upstream.on("information", () => {
    interim += 1
    if (interim > maxInterim) upstream.destroy()
  })
  try {
    const message = await new Promise<IncomingMessage>((resolve, reject) => {
      upstream.once("response", resolve)
      upstream.on("error", reject)
      upstream.once("close", () => reject(new Error("closed without an answer")))
      upstream.end(body)
    })
    if (responseLength(message) === undefined || !isFinal(message)) return { code: "upstream_error" }
    const decoding = decodingFor(message, method)
    if (decoding === undefined) return refused("token_answer", "its content encoding cannot be undone")
    const { socket } = message
    const raw = await gathered(inTurns(message, turns))
    if (raw === undefined) return refused("token_answer", "it is larger than the cap")
    if (isToTheEnd(message, method) && isBrokenOff(socket)) return { code: "upstream_error" }
    if (decoding === "none") return { message, body: raw }
    const plain = await gathered(inTurns(Readable.from([raw]).pipe(decoding.create()), turns)).catch(() => null)
    if (plain === null) return refused("token_answer", "it does not decode as its content encoding")
    return plain === undefined ? refused("token_answer", "it decodes to more than the cap") : { message, body: plain }
  } catch (error) {
    if (timedOut) return { code: "upstream_timeout" }
    return error instanceof UpstreamFailure ? { code: error.reason, detail: error.code } : { code: "upstream_error" }
  } finally {
    clearTimeout(timer)
    upstream.destroy()
    agent.destroy()
  }
}

async function gathered(chunks: AsyncIterable<Buffer>): Promise<Buffer | undefined> {
  const all: Buffer[] = []
  let size = 0
  for await (const chunk of chunks) {
    size += chunk.length
    if (size > captureLimits.answerBytes) return undefined
    all.push(chunk)
  }
  return Buffer.concat(all)
}
