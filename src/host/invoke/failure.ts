/**
 * How the functions of this folder say that a call cannot go on.
 *
 * Guarantees: the code is in the reason table or a tool's own `domain:code`; the message names what is wrong and
 * never carries the value of an input. Does not: decide class, exit code or status; the reason table does.
 */
import type { JsonObject } from "../../manifest/types.ts"
import { type ReasonCode, reasons } from "../reasons.ts"
import type { FailedManifest } from "../registry/types.ts"
import type { CallError } from "../types.ts"

export interface Failure {
  readonly ok: false
  readonly code: ReasonCode | `${string}:${string}`
  readonly message: string
  /** what the caller or author can do; absent: the table's hint for the code */
  readonly hint?: string
  /** absent: the table's answer for the code; a tool's own code is not retryable */
  readonly retryable?: boolean
  readonly details: JsonObject
  /** for the receipt alone; the caller is not told */
  readonly evidence?: JsonObject
}

export const isReasonCode = (code: string): code is ReasonCode => Object.hasOwn(reasons, code)

/** What was asked for is in a manifest that did not load: the file, its first fault, and how to mend it. */
export const brokenManifest = ({ file, diagnostics }: FailedManifest): Failure => {
  const fault = diagnostics.find((one) => one.severity === "error") ?? diagnostics[0]
  const where = fault === undefined || fault.path === "" ? "" : `${fault.path}: `
  return {
    ok: false,
    code: "manifest_invalid",
    message: `the manifest ${file} is invalid: ${where}${fault?.message ?? "it did not load"}`,
    ...(fault === undefined ? {} : { hint: fault.fix }),
    details: { file, path: fault?.path ?? "" },
  }
}

/** The envelope's form of a failure, with class and hint from the reason table. */
export const callErrorOf = (failure: Failure): CallError => {
  const { code, message, details } = failure
  const row = isReasonCode(code) ? reasons[code] : undefined
  return {
    code,
    class: row?.class ?? "tool",
    message,
    retryable: failure.retryable ?? row?.retryable ?? false,
    hint: failure.hint ?? row?.hint ?? "read `details` and the driver's documentation of this code",
    details,
  }
}
