/**
 * How a refusal looks to an HTTP client: status, `x-caisson-denied`, `Proxy-Status`, and a JSON body that says what to declare.
 *
 * Guarantees: the same reason code in header, body and verdict; only canonical values are echoed, never raw bytes of
 * the request. Upstreams cannot send these headers: `x-caisson-*` and `proxy-*` are stripped from every response, so a
 * 502 of the proxy is told from the site's.
 */
import { explainDenial } from "./explain.ts"
import { addressText } from "./options.ts"
import { type ReasonCode, reasons } from "./reasons.ts"
import type { Verdict } from "../types.ts"

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
  const { reason, host, port } = verdict
  const target = host === undefined ? "-" : port === undefined ? host : addressText(host, port)
  const { message, hint } = explainDenial({ reason, target })
  const said = {
    layer: "egress",
    reason,
    message: detail === undefined ? message : `${message}: ${detail}`,
    host: verdict.host ?? null,
    port: verdict.port ?? null,
    rule: verdict.rule ?? null,
    hint,
  }
  return `${JSON.stringify(said)}\n`
}

/** Many programs print the phrase and nothing else: it says whose answer this is. */
export const denialPhrase = (code: ReasonCode): string =>
  `${phrases[reasons[code].status] ?? "Refused"} (caisson: ${code})`

/** The kinds of error of RFC 9209. */
const errors: Readonly<Partial<Record<ReasonCode, string>>> = {
  dns_failure: "dns_error",
  connect_failed: "connection_refused",
  connect_timeout: "connection_timeout",
  upstream_error: "connection_terminated",
  upstream_timeout: "http_response_timeout",
  upstream_tls: "tls_certificate_error",
  idle_timeout: "connection_read_timeout",
  too_many_connections: "connection_limit_reached",
  mixed_answer: "destination_ip_prohibited",
}
const byClass = {
  allow: "proxy_internal_error",
  deny: "http_request_denied",
  malformed: "http_request_error",
  infrastructure: "proxy_internal_error",
} as const

/** `Proxy-Status`, by which an answer of a proxy is told from one of the site; like ours, no upstream can send it. */
export function proxyStatus(code: ReasonCode): string {
  const error =
    errors[code] ?? (code.startsWith("resolved_") ? "destination_ip_prohibited" : byClass[reasons[code].class])
  return `caisson; error=${error}; details="${code}"`
}

export function denialResponse(
  verdict: Verdict,
  options: { readonly keepAlive: boolean; readonly headOnly: boolean },
): Buffer {
  const code = verdict.reason as ReasonCode
  const { status } = reasons[code]
  const body = denialBody(verdict)
  const lines = [
    `HTTP/1.1 ${status} ${denialPhrase(code)}`,
    `x-caisson-denied: ${code}`,
    `proxy-status: ${proxyStatus(code)}`,
    "content-type: application/json",
    `content-length: ${Buffer.byteLength(body)}`,
    "cache-control: no-store",
    ...(status === 405 ? ["allow: GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS, CONNECT"] : []),
    ...(options.keepAlive ? [] : ["connection: close"]),
  ]
  return Buffer.from(`${lines.join("\r\n")}\r\n\r\n${options.headOnly ? "" : body}`)
}
