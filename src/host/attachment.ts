/** Who has a program's streams while it runs, beside the host: types alone. */
import type { RunningSandbox, Stdio } from "../sandbox/backend.ts"

/** Whoever takes a program's streams while it runs, for as long as it does. */
export interface Attachment {
  readonly stdio: Stdio
  /** it takes the input alone: what is printed is collected, and in the result */
  readonly collects?: true
  /** Called once, when it runs. What it returns is disposed of when the run is over. */
  attach(streams: AttachedStreams): AttachedEnd
}
export interface AttachedStreams extends Pick<RunningSandbox, "stdin" | "stdout" | "stderr" | "terminal"> {
  signal(name: NodeJS.Signals): void
}
export interface AttachedEnd extends Disposable {
  /** all that was printed is where it belongs */
  readonly drained: Promise<unknown>
}
