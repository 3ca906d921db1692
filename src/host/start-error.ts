/** Why a host could not start: thrown by `createHost`, with a reason code for exit status and a way to mend it. */
import type { Diagnostic } from "../manifest/types.ts"
import { machineTrouble } from "./machine-trouble.ts"
import type { ReasonCode } from "./reasons.ts"

/** Whatever stopped the host while it was opening, in words: every one of them has a code, and so an envelope. */
export const startFailure = (error: unknown, data: string): HostStartError => {
  if (error instanceof HostStartError) return error
  const trouble = machineTrouble(error)
  if (trouble === undefined) {
    const failure = new HostStartError(
      "internal",
      `the host itself failed: ${error instanceof Error ? error.message : String(error)}`,
      "set CAISSON_DEBUG=1 for the stack, and CAISSON_DATA to an empty folder to see whether the data folder is the cause",
    )
    failure.cause = error
    if (error instanceof Error && error.stack !== undefined) failure.stack = error.stack
    return failure
  }
  return new HostStartError(
    "internal",
    `the data folder ${data} cannot be used: ${trouble.message}`,
    `${trouble.fix}, or set CAISSON_DATA to a folder elsewhere`,
  )
}

export class HostStartError extends Error {
  readonly code: ReasonCode
  readonly fix: string
  readonly diagnostics: readonly Diagnostic[]
  constructor(code: ReasonCode, message: string, fix: string, diagnostics: readonly Diagnostic[] = []) {
    super(message)
    this.name = "HostStartError"
    this.code = code
    this.fix = fix
    this.diagnostics = diagnostics
  }
}
