/**
 * What came of a function, as the call's outcome.
 *
 * Guarantees: an exception is told by the names of its classes, and is an expired login where the driver says so
 * (`expiry.detect: exception:Name` or `http_status:N`); its words are in the details and not in the message, since they may
 * hold what the caller gave. A stream's parts are told as they come; what it comes to is what its iterator returned, else
 * the list of its parts where the contract's output is one, else the last of them. Pure but for what it tells.
 */
import type { AuthSpec, JsonValue, SdkCall, ToolContract } from "../../../manifest/types.ts"
import type { Tell } from "../../events.ts"
import type { Failure, Success } from "../../failure.ts"
import { extract } from "../../invoke/extract.ts"
import { expirySign } from "../expiry.ts"
import type { RunnerAnswer, Thrown } from "../runner/talk.ts"

export interface Asked {
  readonly key: string
  readonly tool: ToolContract
  readonly auth: AuthSpec | undefined
  readonly sdk: SdkCall
}

const thrownFailure = ({ key, auth }: Asked, thrown: Thrown): Failure => {
  const { names, message, where, status } = thrown
  const [name = "Error"] = names
  const details = {
    exception: name,
    classes: [...names],
    message,
    ...(status === undefined ? {} : { status }),
  }
  if (where === "load")
    return { ok: false, code: "tool_unavailable", message: `the module of ${key} cannot be loaded: ${name}`, details }
  if (where === "resolve")
    return { ok: false, code: "function_ref_unresolvable", message: `${key}: ${message}`, details }
  if (where === "result")
    return name === "ResultTooLarge"
      ? { ok: false, code: "limit_exceeded", message: `${key}: ${message}`, details: { limit: "result" } }
      : { ok: false, code: "output_parse_failed", message: `the result of ${key} has no form in JSON`, details }
  const sign = expirySign(auth, { classes: names, status })
  if (sign === "expired")
    return {
      ok: false,
      code: "auth_required",
      message: `${key} is no longer signed in (${name})`,
      details,
      expiry: sign,
    }
  if (status === 429) return { ok: false, code: "rate_limited", message: `${key} was told to wait (429)`, details }
  return {
    ok: false,
    code: "upstream_error",
    message: `the function of ${key} threw ${name}`,
    hint: "read `details.message`",
    ...(status !== undefined && status >= 500 ? { retryable: true } : {}),
    details,
    ...(sign === undefined ? {} : { expiry: sign }),
  }
}

/** The parts of a stream, told and kept as they come. */
export class Parts {
  readonly #asked: Asked
  readonly #tell: Tell
  readonly #kept: JsonValue[] = []
  readonly #isList: boolean
  constructor(asked: Asked, tell: Tell) {
    this.#asked = asked
    this.#tell = tell
    const { type } = asked.tool.outputs
    this.#isList = type === "array" || (Array.isArray(type) && (type as readonly JsonValue[]).includes("array"))
  }
  readonly add = (value: JsonValue): void => {
    const taken = extract(value, this.#asked.sdk.extract)
    if (taken === undefined) return
    if (!this.#isList) this.#kept.length = 0
    this.#kept.push(taken)
    this.#tell({ type: "progress", value: taken })
  }
  /** What they come to, where the function itself left it open. */
  result(): JsonValue {
    return this.#isList ? this.#kept : (this.#kept.at(-1) ?? null)
  }
}

export const outcomeOf = (asked: Asked, answer: RunnerAnswer, parts: Parts): Success | Failure => {
  const { key, sdk } = asked
  if (answer.ok) {
    const isStream = answer.streamed || sdk.streaming?.mode === "callback"
    if (isStream) return { ok: true, value: answer.value ?? parts.result(), notes: [] }
    const value = extract(answer.value, sdk.extract)
    if (value !== undefined) return { ok: true, value, notes: [] }
    return {
      ok: false,
      code: "output_invalid",
      message: `the result of ${key} has nothing where \`result_extract\` looks`,
      hint: "correct `result_extract` in the driver",
      details: {},
    }
  }
  if (answer.kind === "thrown") return thrownFailure(asked, answer.thrown)
  return {
    ok: false,
    code: answer.kind === "limit" ? "limit_exceeded" : "upstream_error",
    message: `the program of ${key} gave no answer: ${answer.message}`,
    details: { reason: answer.kind, ...(answer.kind === "limit" ? { limit: "answer" } : {}) },
  }
}
