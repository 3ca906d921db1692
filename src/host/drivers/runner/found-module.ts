/** A module that was found, with what runs it and what it must be shown. Types alone. */
import type { Interpreter } from "./interpreter.ts"
import type { ModuleSpec } from "./request.ts"

export interface FoundModule {
  readonly module: ModuleSpec
  readonly interpreter: Interpreter
  /** host path → path inside, the interpreter's own left out */
  readonly bundles: Readonly<Record<string, string>>
  /** changes when the module does */
  readonly edition: string
  /** of its package, where that is known */
  readonly version?: string
}
