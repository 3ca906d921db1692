/** Why a host could not start: thrown by `createHost`, with a reason code for exit status and a way to mend it. */
import type { Diagnostic } from "../../manifest/types.ts"
import type { ReasonCode } from "../reasons.ts"

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
