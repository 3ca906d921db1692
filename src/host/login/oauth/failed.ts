/**
 * What went wrong between this host and a provider, as a login tells it. Pure.
 *
 * Guarantees: a refusal of the provider's is told apart from one that could not be asked and from a mistake in what was
 * configured; no text of an answer is told beside the error's own code, and that only where it is a plain word.
 */
import type { FlowFailed } from "../flow.ts"
import { NotAsked } from "../../drivers/fetch-over.ts"

export const isFailed = (value: object): value is FlowFailed => "ok" in value && value.ok === false

const plain = (code: unknown): string =>
  typeof code === "string" && /^[A-Za-z0-9_.-]{1,64}$/.test(code) ? code : "an error"

/** Mistakes of whoever wrote the settings: trying again changes nothing. */
const OURS = new Set([
  "invalid_client",
  "unauthorized_client",
  "unsupported_grant_type",
  "invalid_scope",
  "invalid_request",
  "invalid_target",
  "unsupported_response_type",
])
const THEIRS = new Set(["server_error", "temporarily_unavailable"])

const refusal = (code: unknown, status: number | undefined): FlowFailed => {
  const word = plain(code)
  if (THEIRS.has(word) || (status !== undefined && (status >= 500 || status === 429)))
    return {
      ok: false,
      why: "unreachable",
      message: `the provider could not serve the request (${word})`,
      fix: "try again later",
    }
  if (OURS.has(word))
    return {
      ok: false,
      why: "broken",
      message: `the provider does not take this host's request (${word})`,
      fix: "mend client, scopes and endpoints of the login in caisson.yaml or AUTH.md",
    }
  if (word === "expired_token") return { ok: false, why: "timed-out", message: "the code was not entered in time" }
  return { ok: false, why: "refused", message: `the provider refused (${word})` }
}

const codeOf = (error: object, key: "code" | "error"): unknown => (error as Record<string, unknown>)[key]

/** Whatever was thrown on the way. A bug stays one. */
export const failureOf = (error: unknown, signal: AbortSignal, deadlineMs: number): FlowFailed => {
  if (signal.aborted)
    return Date.now() >= deadlineMs
      ? { ok: false, why: "timed-out", message: "the login was not done in time" }
      : { ok: false, why: "cancelled", message: "the login was cancelled" }
  if (error instanceof NotAsked) {
    const { code, message, hint } = error.failure
    return {
      ok: false,
      why: code === "egress_denied" ? "broken" : "unreachable",
      message,
      ...(hint === undefined ? {} : { fix: hint }),
    }
  }
  if (!(error instanceof Error)) throw error
  const code = codeOf(error, "code")
  if (code === "OAUTH_RESPONSE_BODY_ERROR" || code === "OAUTH_AUTHORIZATION_RESPONSE_ERROR")
    return refusal(codeOf(error, "error"), (error as { status?: number }).status)
  if (code === "OAUTH_WWW_AUTHENTICATE_CHALLENGE") return refusal("invalid_client", undefined)
  if (typeof code === "string" && code.startsWith("OAUTH_")) {
    const status = (error as { cause?: { status?: unknown } }).cause?.status
    if (typeof status === "number" && status >= 500) return refusal(undefined, status)
    return {
      ok: false,
      why: "broken",
      message: `the provider's answer does not hold to the protocol (${plain(code)})`,
      fix: "see that issuer and endpoints of the login are the provider's own",
    }
  }
  throw error
}
