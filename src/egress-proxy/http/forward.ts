/**
 * One request to one vetted upstream socket, and its response back. The socket is closed with it, unless it is kept.
 *
 * Guarantees: the request line, Host, and framing are written anew; the response is parsed by node:http with its
 * strict parser and a head cap, its framing checked again and written anew. An interim response passes only as the
 * 100 that the client asked for. A broken response is a 502 while nothing was sent, else a reset, never a quiet end.
 * Assumes: the request was judged and the socket came from the gate.
 */
import { type ClientRequest, request as httpRequest } from "node:http"
import type { BodyStep } from "../secrets/body.ts"
import { createBodyReader } from "./body.ts"
import type { Answer, Exchange, ForwardResult, Sent } from "./exchange.ts"
import { emptyBody, everyHeader } from "./framing.ts"
import type { Header } from "./head.ts"
import { drained, respond, unsent } from "./respond.ts"
import { upgrade } from "./websocket.ts"
import { spyOn } from "../tape/spy.ts"

export async function forward(exchange: Exchange): Promise<ForwardResult> {
  const { source, passage, upstream } = exchange
  const client = source.socket
  const headers = upstreamHeaders(exchange)
  if (!passage.out(headBytes(exchange.path, headers))) return unsent(passage)
  const request = httpRequest({
    createConnection: () => upstream as never,
    method: exchange.head.method,
    path: exchange.path,
    headers: headers.flat(),
    setHost: false,
    maxHeaderSize: exchange.limits.responseHeadBytes,
    insecureHTTPParser: false,
    joinDuplicateHeaders: false,
  })
  request.maxHeadersCount = everyHeader
  if (exchange.tape !== undefined) {
    const { tape, target } = exchange.tape
    const { method, headers: asked } = exchange.head
    spyOn(tape, request, () => ({ target, method, path: exchange.path, headers: asked }))
  }
  // Without an agent Node takes every connection for the last one's.
  request.shouldKeepAlive = exchange.keep
  request.once("socket", () => upstream.resume())
  // Node tells when the response was read to its end and the connection can carry another request.
  let free = false
  const onFree = () => {
    free = true
  }
  upstream.once("free", onFree)
  let kept = false
  const onClientGone = () => {
    request.destroy()
    exchange.scanner?.dispose()
  }
  client.once("close", onClientGone)
  const sent = sendBody(request, exchange)
  const answer = answered(request, exchange, sent)
  try {
    const first = await Promise.race([
      answer,
      sent.then((state): Answer | Promise<Answer> => (state.kind === "sent" ? answer : state)),
    ])
    if (first.kind === "failed") {
      request.destroy()
      return passage.refusal === undefined ? { ...first, state: "failed" } : unsent(passage)
    }
    if (first.kind === "upgrade") return await upgrade(exchange, first)
    const result = await respond(first.response, exchange, sent)
    kept = exchange.keep && free && result.state === "answered" && result.reusable && !passage.finished
    return kept ? { ...result, state: "answered", reusable: true, kept } : result
  } finally {
    client.off("close", onClientGone)
    upstream.off("free", onFree)
    passage.finish()
    if (!kept) upstream.destroy()
    source.interrupt()
    await sent
  }
}

function upstreamHeaders({ head, framing, host, headers, off, keep }: Exchange): Header[] {
  const lines: Header[] = [["Host", host], ...headers]
  if (framing.body.kind === "none" && !off.has("method.empty-body")) lines.push(...emptyBody(head.method))
  if (framing.body.kind === "bytes") lines.push(["Content-Length", String(framing.body.length)])
  if (framing.body.kind === "chunked") lines.push(["Transfer-Encoding", "chunked"])
  if (framing.websocket) lines.push(["Connection", "Upgrade"], ["Upgrade", "websocket"])
  else lines.push(["Connection", keep ? "keep-alive" : "close"])
  return lines
}

const headBytes = (first: string, headers: readonly Header[]): number =>
  headers.reduce((sum, [name, value]) => sum + name.length + value.length + 4, first.length + 16)

/** The first answer. Its time is counted from the end of the request: a long upload is bounded by its idle time. */
function answered(request: ClientRequest, exchange: Exchange, sent: Promise<Sent>): Promise<Answer> {
  const { framing, limits, source } = exchange
  return new Promise((resolve) => {
    let interim = 0
    let timedOut = false
    let settled = false
    let timer: NodeJS.Timeout | undefined
    const settle = (answer: Answer) => {
      settled = true
      clearTimeout(timer)
      resolve(answer)
    }
    void sent.then(() => {
      if (settled) return
      timer = setTimeout(() => {
        timedOut = true
        request.destroy()
      }, limits.responseHeadMs)
    })
    const fail = (error?: NodeJS.ErrnoException) => {
      const unanswered = !timedOut && interim === 0 && error?.code?.startsWith("HPE_") !== true
      settle({ kind: "failed", code: timedOut ? "upstream_timeout" : "upstream_error", unanswered })
    }
    request.on("error", fail)
    request.on("close", () => fail())
    request.on("information", ({ statusCode }) => {
      interim += 1
      if (interim > limits.interimResponses) {
        // What follows in the same segment is parsed all the same.
        fail()
        request.destroy()
      } else if (statusCode === 100 && framing.expectContinue && interim === 1)
        source.socket.write("HTTP/1.1 100 Continue\r\n\r\n")
    })
    request.on("response", (response) => settle({ kind: "response", response }))
    if (framing.websocket)
      request.on("upgrade", (response, _socket, early) => settle({ kind: "upgrade", response, early }))
  })
}

/** What a step of the search is refused with, if anything. */
function refused(step: BodyStep): Sent | undefined {
  if (step.state === "clean") return undefined
  // The client of an abandoned one is gone, and hears of no reason.
  return { kind: "failed", code: step.state === "misuse" ? "secret_misuse" : "unsearchable_body" }
}

async function sendBody(
  request: ClientRequest,
  { source, framing, limits, passage, turns, idleMs, scanner }: Exchange,
): Promise<Sent> {
  const body = createBodyReader(source, framing.body, limits)
  for (;;) {
    const piece = await body.next(idleMs)
    if (piece.state === "end") break
    if (piece.state === "bad") return { kind: "failed", code: piece.code }
    await turns.next(piece.cost)
    const found = scanner === undefined ? undefined : refused(await scanner.push(piece.bytes))
    if (found !== undefined) return found
    if (!passage.out(piece.bytes.length)) return { kind: "failed", code: "budget" }
    if (request.destroyed) return { kind: "failed", code: "upstream_error" }
    if (!request.write(piece.bytes)) await drained(request)
  }
  const found = scanner === undefined || framing.body.kind === "none" ? undefined : refused(await scanner.end())
  if (found !== undefined) return found
  request.end()
  source.watch()
  return { kind: "sent" }
}
