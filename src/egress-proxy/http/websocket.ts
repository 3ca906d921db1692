/**
 * A WebSocket: an exchange that becomes a tunnel.
 *
 * Guarantees: it begins only when the upstream proves that it understood; an upstream that does not, answers a
 * request, and what the client sends next is judged as one.
 */
import { createHash } from "node:crypto"
import { relay } from "../relay/relay.ts"
import type { Answer, Exchange, ForwardResult } from "./exchange.ts"
import { passedHeaders } from "./framing.ts"
import { valuesOf } from "./head.ts"
import { headersOf, unsent } from "./respond.ts"

/** A WebSocket only begins when the upstream proves that it understood: status 101 and the digest of the key. */
export async function upgrade(
  exchange: Exchange,
  { response, early }: Extract<Answer, { kind: "upgrade" }>,
): Promise<ForwardResult> {
  const { source, head, upstream, passage, off } = exchange
  const key = valuesOf(head, "sec-websocket-key")[0] ?? ""
  const digest = createHash("sha1").update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest("base64")
  const proven =
    response.statusCode === 101 &&
    response.headers["sec-websocket-accept"] === digest &&
    response.headers.upgrade?.toLowerCase() === "websocket"
  if (!proven && !off.has("websocket.accept")) return { state: "failed", code: "upstream_error" }
  const lines = [
    "HTTP/1.1 101 Switching Protocols",
    "Connection: Upgrade",
    "Upgrade: websocket",
    ...passedHeaders(headersOf(response), off).map(([name, value]) => `${name}: ${value}`),
  ]
  const client = source.socket
  const answer = `${lines.join("\r\n")}\r\n\r\n`
  if (!passage.in(answer.length)) return unsent(passage)
  client.write(answer, "latin1")
  if (early.length > 0 && passage.in(early.length)) client.write(early)
  await relay({ client, upstream, passage, early: source.release() })
  return { state: "upgraded" }
}
