/**
 * A program that runs in a container, its streams in our hands.
 *
 * Guarantees: see `../backend.ts`; the streams end with the run, and what nobody read of them is lost when it is
 * disposed of.
 */
import type { Readable, Writable } from "node:stream"
import type { Ending, ExitedSandbox, RunningSandbox, Unavailable } from "../backend.ts"
import { signalProgram } from "../process/signal.ts"
import type { Terminal } from "../process/terminal.ts"
import type { ParkedContainer } from "./container/parked.ts"

interface RunningOptions {
  readonly parked: ParkedContainer
  readonly terminal: Terminal | undefined
  readonly privatePipes: boolean
  /** aborted with an `Ending`, it ends the run */
  readonly stopped: AbortController
  readonly cancel: AbortSignal
  readonly exited: Promise<ExitedSandbox | Unavailable>
  /** once exited: every process of it was seen to be gone */
  readonly settled: () => boolean
}

export class Running implements RunningSandbox {
  readonly ok = true
  readonly stdin: Writable
  readonly stdout: Readable
  readonly stderr: Readable
  readonly terminal?: { resize(columns: number, rows: number): void }
  readonly pipes?: { readonly toTool: Writable; readonly fromTool: Readable }
  readonly exited: Promise<ExitedSandbox | Unavailable>
  readonly #options: RunningOptions
  #over = false
  constructor(options: RunningOptions) {
    this.#options = options
    const { terminal, cancel } = options
    const { input, out, err, toTool, fromTool } = options.parked.pipes
    options.parked.pipes.give()
    this.stdin = terminal?.input ?? input
    this.stdout = terminal?.output ?? out
    this.stderr = err
    if (terminal !== undefined) {
      this.terminal = terminal
      input.destroy()
      out.destroy()
    }
    if (options.privatePipes) this.pipes = { toTool, fromTool }
    else {
      toTool.destroy()
      fromTool.destroy()
    }
    const onCancel = (): void => this.stop({ by: "cancelled" })
    cancel.addEventListener("abort", onCancel, { once: true })
    if (cancel.aborted) onCancel()
    this.exited = options.exited.finally(() => {
      this.#over = true
      cancel.removeEventListener("abort", onCancel)
      input.destroy()
      toTool.destroy()
      terminal?.hangUp()
      // Processes that are still there would keep the streams from ending.
      if (!options.settled()) this.#close()
    })
    // Whoever waits for it hears of it; nobody has to.
    this.exited.catch(() => undefined)
  }
  signal(name: NodeJS.Signals): void {
    void signalProgram(name, { first: () => this.#options.parked.pid, over: () => this.#over }).catch(() => undefined)
  }
  stop(ending: Ending): void {
    this.#options.stopped.abort(ending)
  }
  #close(): void {
    for (const stream of [this.stdout, this.stderr, this.pipes?.fromTool]) stream?.destroy()
    this.#options.terminal?.close()
  }
  async [Symbol.asyncDispose](): Promise<void> {
    this.stop({ by: "cancelled" })
    const exited = await this.exited.catch(() => undefined)
    if (exited?.ok === true) await exited.discard()
    this.#close()
  }
}
