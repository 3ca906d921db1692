/** Why a host could not start: thrown by `createHost`, with a reason code for exit status and a way to mend it. */
import type { Diagnostic } from "../../manifest/types.ts"
import { machineTrouble } from "../data/machine-trouble.ts"
import type { ReasonCode } from "../reasons.ts"

/** What the machine would not do while the host was opening, in words; anything else is passed on as it is. */
export const startFailure = (error: unknown, data: string): unknown => {
  const trouble = machineTrouble(error)
  if (error instanceof HostStartError || trouble === undefined) return error
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
