/**
 * A response back to the client, its framing checked and written anew.
 *
 * Guarantees: a response whose length two readers could see differently is refused before a byte of it is sent; one
 * that breaks off resets the client. Hop-by-hop, proxy and our own headers of the upstream stay behind.
 * Assumes: node:http parsed the head in strict mode and within the cap.
 */
import { type IncomingMessage, STATUS_CODES } from "node:http"
import { abort } from "../connection/endpoint.ts"
import type { Passage } from "../relay/passages.ts"
import { inTurns } from "../connection/turns.ts"
import { isBrokenOff } from "../connection/whole-end.ts"
import type { Exchange, ForwardResult, Sent } from "./exchange.ts"
import { isLength, passedHeaders } from "./framing.ts"
import type { Header } from "./head.ts"

/** The framing of a response as its raw headers tell it, or nothing when two readers could differ. */
export function responseLength(response: IncomingMessage): { readonly length?: string } | undefined {
  const raw = headersOf(response)
  const all = (name: string) => raw.filter(([key]) => key.toLowerCase() === name).map(([, value]) => value)
  const lengths = all("content-length")
  const encodings = all("transfer-encoding")
  if (lengths.length + encodings.length > 1) return undefined
  if (encodings[0] !== undefined && encodings[0].toLowerCase() !== "chunked") return undefined
  if (lengths[0] !== undefined && !isLength(lengths[0])) return undefined
  return lengths[0] === undefined ? {} : { length: lengths[0] }
}

/** A final answer in a version of HTTP that is spoken here. */
export function isFinal({ statusCode = 0, httpVersion }: IncomingMessage): boolean {
  return statusCode >= 200 && statusCode <= 599 && (httpVersion === "1.1" || httpVersion === "1.0")
}

/** Nothing was sent to the client yet: a passage over its budget can still say so; one that was cut cannot. */
export const unsent = ({ refusal }: Passage): ForwardResult =>
  refusal === undefined ? { state: "broken" } : { state: "refused", verdict: refusal }

export function headersOf(response: IncomingMessage): Header[] {
  const headers: Header[] = []
  for (let at = 0; at + 1 < response.rawHeaders.length; at += 2)
    headers.push([response.rawHeaders[at] ?? "", response.rawHeaders[at + 1] ?? ""])
  return headers
}

export async function respond(
  response: IncomingMessage,
  exchange: Exchange,
  sent: Promise<Sent>,
): Promise<ForwardResult> {
  const { source, head, framing, passage, off } = exchange
  const client = source.socket
  const status = response.statusCode ?? 0
  const framed = responseLength(response)
  if ((framed === undefined && !off.has("response.framing")) || !isFinal(response))
    return { state: "failed", code: "upstream_error" }
  const bodiless = head.method === "HEAD" || status === 204 || status === 304
  const length = framed?.length
  const chunked = !bodiless && length === undefined && head.version === "1.1"
  const request = await Promise.race([sent, Promise.resolve({ kind: "pending" } as const)])
  const reusable = framing.keepAlive && request.kind === "sent" && (bodiless || chunked || length !== undefined)
  const lines = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? "Status"}`,
    ...passedHeaders(headersOf(response), off).map(([name, value]) => `${name}: ${value}`),
    ...(length === undefined || status === 204 ? [] : [`content-length: ${length}`]),
    ...(chunked ? ["transfer-encoding: chunked"] : []),
    ...(reusable ? [] : ["connection: close"]),
  ]
  const answer = `${lines.join("\r\n")}\r\n\r\n`
  if (!passage.in(answer.length)) return unsent(passage)
  client.write(answer, "latin1")
  const toTheEnd = !bodiless && length === undefined && response.headers["transfer-encoding"] === undefined
  // Node takes a reset for the end of a response that only an end delimits.
  const isWhole = () => response.complete && !(toTheEnd && isBrokenOff(exchange.upstream))
  const complete = await copyBody(response, exchange, chunked, isWhole)
  if (!complete) {
    abort(client)
    return { state: "broken" }
  }
  return { state: "answered", reusable }
}

async function copyBody(
  response: IncomingMessage,
  { source, passage, turns }: Exchange,
  chunked: boolean,
  isWhole: () => boolean,
): Promise<boolean> {
  const client = source.socket
  try {
    for await (const bytes of inTurns(response, turns)) {
      if (!passage.in(bytes.length) || client.destroyed) {
        response.destroy()
        return false
      }
      client.cork()
      if (chunked) client.write(`${bytes.length.toString(16)}\r\n`)
      let room = client.write(bytes)
      if (chunked) room = client.write("\r\n")
      client.uncork()
      if (!room) await drained(client)
    }
  } catch {
    return false
  }
  if (!response.closed) await new Promise((resolve) => response.once("close", resolve))
  const whole = isWhole()
  if (whole && chunked) client.write("0\r\n\r\n")
  return whole && !client.destroyed
}

/** There is room again, or there never will be. */
export const drained = (stream: NodeJS.EventEmitter & { readonly destroyed: boolean }): Promise<void> =>
  new Promise((resolve) => {
    if (stream.destroyed) return resolve()
    const done = () => {
      stream.off("drain", done)
      stream.off("close", done)
      resolve()
    }
    stream.once("drain", done)
    stream.once("close", done)
  })
