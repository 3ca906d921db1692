/**
 * A refusal inside an intercepted connection, as an HTTP response.
 *
 * Guarantees: the same reason code in header, body and verdict; holds no value and no raw byte of the request.
 */
import { denialBody, denialPhrase, proxyStatus } from "../policy/denial.ts"
import { reasons, type ReasonCode } from "../policy/reasons.ts"
import type { Verdict } from "../types.ts"

interface DeniedResponse {
  readonly status: number
  readonly phrase: string
  readonly headers: readonly string[]
  readonly body: string
}

export function deniedResponse(verdict: Verdict, detail: string | undefined): DeniedResponse {
  const code = verdict.reason as ReasonCode
  const { status } = reasons[code]
  const body = denialBody(verdict, detail)
  const headers = [
    "x-caisson-denied",
    code,
    "proxy-status",
    proxyStatus(code),
    "content-type",
    "application/json",
    "cache-control",
    "no-store",
  ]
  headers.push("content-length", String(Buffer.byteLength(body)), "connection", "close")
  return { status, phrase: denialPhrase(code), headers, body }
}
