/**
 * What an answer's status says about the call (AIP-31): 2xx is one, 401 and 403 ask for a login, 429 asks for patience,
 * 5xx may go better another time, the rest does not.
 *
 * Guarantees: a service that asks to be left alone for a while is told of in milliseconds, within a limit. Pure.
 */
import type { AuthSpec } from "../../../manifest/types.ts"
import type { Failure } from "../../failure.ts"
import { expirySign } from "../expiry.ts"
import type { HttpAnswer } from "./exchange.ts"
import { maxRetryAfterMs } from "./limits.ts"

export const headerText = ({ headers }: Pick<HttpAnswer, "headers">, name: string): string | undefined => {
  const value = headers[name]
  return typeof value === "string" ? value : value?.join(", ")
}

/** `Retry-After`: seconds, or a date. */
export const retryAfterMs = (value: string | undefined, now: number): number | undefined => {
  if (value === undefined) return undefined
  const text = value.trim()
  const ms = /^\d{1,9}$/.test(text) ? Number(text) * 1000 : /[A-Za-z]/.test(text) ? Date.parse(text) - now : Number.NaN
  return Number.isFinite(ms) ? Math.min(maxRetryAfterMs, Math.max(0, ms)) : undefined
}

interface Judged {
  readonly driver: string
  readonly auth?: AuthSpec
  /** a second request does no harm */
  readonly repeatable: boolean
  readonly now: number
}

/** Undefined: the answer is one. */
export const statusFailure = (
  answer: Pick<HttpAnswer, "status" | "headers">,
  { driver, auth, repeatable, now }: Judged,
): Failure | undefined => {
  const { status } = answer
  const waitMs = retryAfterMs(headerText(answer, "retry-after"), now)
  const details = { status, ...(waitMs === undefined ? {} : { retry_after_ms: waitMs }) }
  const sign = expirySign(auth, { status, header: (name) => headerText(answer, name) })
  if (sign === "expired" || status === 401 || status === 403)
    return {
      ok: false,
      code: "auth_required",
      message: `the service behind ${driver} does not take the login, or has none (${status})`,
      details: { driver, ...details },
      ...(sign === undefined ? {} : { expiry: sign }),
    }
  if (status >= 200 && status < 300) return undefined
  if (status === 429)
    return {
      ok: false,
      code: "rate_limited",
      message: `the service behind ${driver} has had too many requests (429)`,
      ...(waitMs === undefined ? {} : { hint: `try again in ${Math.ceil(waitMs / 1000)} s` }),
      details,
    }
  return {
    ok: false,
    code: "upstream_error",
    message: `the service behind ${driver} answered with status ${status}`,
    hint: "read `details.body`: it is what the service says",
    // What it did before it failed, nobody knows.
    retryable: status >= 500 && repeatable,
    details,
  }
}
