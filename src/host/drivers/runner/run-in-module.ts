/** A function of a driver's module run outside any call: what is asked, and what comes of it. Types alone. */
import type { JsonValue } from "../../../manifest/types.ts"
import type { Interpreter } from "./interpreter.ts"
import type { RunnerRequest } from "./request.ts"
import type { RunnerAnswer } from "./talk.ts"

export interface ModuleRun {
  readonly interpreter: Interpreter
  /** folders that it sees, beside the interpreter's: host path → path inside */
  readonly bundles: Readonly<Record<string, string>>
  /** the image that it runs on the root of; absent: as everything does here */
  readonly image?: string
  /** variables beside those of every sandbox */
  readonly env?: Readonly<Record<string, string>>
  readonly request: RunnerRequest
  /** files beside the shim's: path inside → content */
  readonly files?: Readonly<Record<string, Uint8Array>>
  readonly timeoutMs?: number
  /** hears what is streamed */
  readonly onEvent?: (value: JsonValue) => void
}
export type ModuleAnswer = (RunnerAnswer | NotRun) & {
  /** the end of what the module wrote to its standard error */
  readonly stderr?: string
}
/** `unsealed`: the machine cannot seal it, and it did not run; `ended`: by a limit or a cancel */
type NotRun = {
  readonly ok: false
  readonly kind: "unsealed" | "ended"
  readonly message: string
  readonly fix?: string
}
export type RunInModule = (run: ModuleRun, signal?: AbortSignal) => Promise<ModuleAnswer>
