/** A definition that was refused: every fault of it, each with its path and its fix. */
import type { Diagnostic } from "../manifest/types.ts"

export class ManifestError extends Error {
  readonly code = "manifest_invalid"
  readonly diagnostics: readonly Diagnostic[]
  constructor(what: string, diagnostics: readonly Diagnostic[]) {
    super(
      `${what}: ${diagnostics
        .filter((each) => each.severity === "error")
        .map((each) => `${each.path === "" ? "" : `${each.path}: `}${each.message} (${each.fix})`)
        .join("; ")}`,
    )
    this.name = "ManifestError"
    this.diagnostics = diagnostics
  }
}
