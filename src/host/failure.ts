/**
 * How every part of the host says that a call cannot go on, and how its caller reads it.
 *
 * Guarantees: the code is in the reason table or a tool's own `domain:code`; the message names what is wrong and
 * never carries the value of an input. Does not: decide class, exit code or status; the reason table does.
 */
import type { JsonObject, JsonValue } from "../manifest/types.ts"
import { type ErrorClass, type ReasonCode, reasons } from "./reasons.ts"

export interface Failure {
  readonly ok: false
  readonly code: ReasonCode | `${string}:${string}`
  readonly message: string
  /** what the caller or author can do; absent: the table's hint for the code */
  readonly hint?: string
  /** absent: the table's answer for the code; a tool's own code is not retryable */
  readonly retryable?: boolean
  readonly details: JsonObject
  /** what was asked is known not to have been done: it was never sent, or was refused */
  readonly undone?: true
  /** that people were asked about it, and until when they may answer */
  readonly request?: { readonly id: string; readonly expires: string }
  /** for the receipt alone; the caller is not told */
  readonly evidence?: JsonObject
  /** it says that the driver's login is gone, or perhaps that; for the host alone */
  readonly expiry?: "expired" | "perhaps" | undefined
  /** it says that the login is good and does not reach so far; for the host alone */
  readonly lacks?: readonly string[]
}

/** What came of a call that went well. */
export interface Success {
  readonly ok: true
  readonly value: JsonValue
  readonly notes: readonly string[]
  /** the end of what the program said beside its value; absent where it said nothing, or the value holds it */
  readonly stderr?: string
}

/** The envelope's form. */
export interface CallError {
  readonly code: ReasonCode | `${string}:${string}`
  readonly class: ErrorClass
  readonly message: string
  readonly retryable: boolean
  readonly hint: string
  readonly details: JsonObject
}

export const isReasonCode = (code: string): code is ReasonCode => Object.hasOwn(reasons, code)

/** A hint of the table's that names what is not there is none. */
const UNSAID = "it said nothing on its standard error; `details` has what is known of it"
const hintOf = (hint: string, details: JsonObject): string =>
  hint.includes("`details.stderr`") && typeof details["stderr"] !== "string" ? UNSAID : hint

/** The envelope's form of a failure, with class and hint from the reason table. */
export const callErrorOf = (failure: Failure): CallError => {
  const { code, message, details } = failure
  const row = isReasonCode(code) ? reasons[code] : undefined
  return {
    code,
    class: row?.class ?? "tool",
    message,
    retryable: failure.retryable ?? row?.retryable ?? false,
    hint:
      failure.hint ??
      (row === undefined ? "read `details` and the driver's documentation of this code" : hintOf(row.hint, details)),
    details,
  }
}
