/**
 * How a refusal looks to an HTTP client: status, `x-caisson-denied`, and a JSON body that says what to declare.
 *
 * Guarantees: the same reason code in header, body and verdict; only canonical values are echoed, never raw bytes of
 * the request. Upstreams cannot send this header: `x-caisson-*` is stripped from every response.
 */
import { type ReasonCode, reasons } from "./reasons.ts"
import type { Verdict } from "./types.ts"

/** The phrases of the statuses in the table of reasons. */
const phrases: Readonly<Record<number, string>> = {
  400: "Bad Request",
  403: "Forbidden",
  405: "Method Not Allowed",
  408: "Request Timeout",
  417: "Expectation Failed",
  429: "Too Many Requests",
  431: "Request Header Fields Too Large",
  500: "Internal Server Error",
  502: "Bad Gateway",
  503: "Service Unavailable",
  504: "Gateway Timeout",
}

/** What the client reads, one line of JSON. `detail` holds what the reason's own text leaves open. */
export function denialBody(verdict: Verdict, detail?: string): string {
  const { text, hint } = reasons[verdict.reason as ReasonCode]
  const said = {
    layer: "egress",
    reason: verdict.reason,
    message: detail === undefined ? text : `${text}: ${detail}`,
    host: verdict.host ?? null,
    port: verdict.port ?? null,
    rule: verdict.rule ?? null,
    hint,
  }
  return `${JSON.stringify(said)}\n`
}

export function denialResponse(
  verdict: Verdict,
  options: { readonly keepAlive: boolean; readonly headOnly: boolean },
): Buffer {
  const code = verdict.reason as ReasonCode
  const { status } = reasons[code]
  const body = denialBody(verdict)
  const lines = [
    `HTTP/1.1 ${status} ${phrases[status] ?? "Refused"}`,
    `x-caisson-denied: ${code}`,
    "content-type: application/json",
    `content-length: ${Buffer.byteLength(body)}`,
    "cache-control: no-store",
    ...(status === 405 ? ["allow: GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS, CONNECT"] : []),
    ...(options.keepAlive ? [] : ["connection: close"]),
  ]
  return Buffer.from(`${lines.join("\r\n")}\r\n\r\n${options.headOnly ? "" : body}`)
}
