/**
 * ARuntime's words for errors and this host's codes, both ways. Pure.
 *
 * A driver may use either; a contract of ARuntime is told its own (`details.spelled`) beside the code.
 */
import type { JsonObject } from "../../manifest/types.ts"
import type { ReasonCode } from "../reasons.ts"

const CODES: Readonly<Record<string, ReasonCode>> = {
  "input.invalid": "input_invalid",
  "permission.denied": "unauthorised",
  "approval.required": "approval_required",
  "rate.exceeded": "rate_limited",
  "dependency.unavailable": "upstream_error",
  "timeout.before-submit": "timeout",
  "timeout.unknown-commit": "timeout",
  "partial-effect": "partial_effect",
  "compensation.failed": "compensation_failed",
  "output.invalid": "output_invalid",
}

/** The host's code for a word of ARuntime; any other word is itself. */
export const codeOfWord = (word: string): string => (Object.hasOwn(CODES, word) ? (CODES[word] as string) : word)

const WORDS: Readonly<Record<string, string>> = {
  input_invalid: "input.invalid",
  input_unsupported: "input.invalid",
  unauthorised: "permission.denied",
  policy_violation: "permission.denied",
  undeclared_write: "permission.denied",
  undeclared_exec: "permission.denied",
  egress_denied: "permission.denied",
  secret_misuse: "permission.denied",
  approval_required: "approval.required",
  approval_denied: "approval.required",
  approval_expired: "approval.required",
  rate_limited: "rate.exceeded",
  overloaded: "rate.exceeded",
  budget_exceeded: "rate.exceeded",
  upstream_error: "dependency.unavailable",
  tool_unavailable: "dependency.unavailable",
  no_route: "dependency.unavailable",
  auth_required: "dependency.unavailable",
  conflict: "conflict",
  partial_effect: "partial-effect",
  compensation_failed: "compensation.failed",
  output_invalid: "output.invalid",
  output_parse_failed: "output.invalid",
}

/** ARuntime's word for a code of the host; it has none for some. */
export const aruntimeWord = (code: string, details: JsonObject): string | undefined => {
  if (code === "timeout") return details["commit"] === "unknown" ? "timeout.unknown-commit" : "timeout.before-submit"
  return Object.hasOwn(WORDS, code) ? WORDS[code] : undefined
}
