/**
 * A program that runs in a sandbox of either backend, its streams in our hands.
 *
 * Guarantees: the streams end with the run; whoever does not read them loses what they hold when the run is disposed of.
 * What was not seen to end does not keep them open. Where the program has a terminal, that is its input and output.
 */
import type { Duplex, Readable, Writable } from "node:stream"
import type { Ending, ExitedSandbox, Glance, RunningSandbox, Unavailable } from "../backend.ts"
import type { Terminal } from "./terminal.ts"

interface RunningProgramOptions {
  readonly streams: { readonly stdin: Writable; readonly stdout: Readable; readonly stderr: Readable }
  /** the private ones, where the sandbox was made with them */
  readonly pipes: RunningSandbox["pipes"]
  readonly terminal: Terminal | undefined
  readonly cancel: AbortSignal
  readonly exited: Promise<ExitedSandbox | Unavailable>
  /** once exited: are its processes gone, as far as anybody knows? */
  readonly settled: () => boolean
  /** `over`: the run has ended, and nothing is there to be signalled */
  readonly signal: (name: NodeJS.Signals, over: () => boolean) => Promise<unknown>
  readonly stop: (ending: Ending) => void
  readonly glance: () => Promise<Glance>
  readonly reach: (port: number) => Promise<Duplex | undefined>
}

export class RunningProgram implements RunningSandbox {
  readonly ok = true
  readonly stdin: Writable
  readonly stdout: Readable
  readonly stderr: Readable
  readonly terminal?: { resize(columns: number, rows: number): void }
  readonly pipes?: { readonly toTool: Writable; readonly fromTool: Readable }
  readonly exited: Promise<ExitedSandbox | Unavailable>
  readonly #options: RunningProgramOptions
  #over = false
  constructor(options: RunningProgramOptions) {
    this.#options = options
    const { streams, pipes, terminal, cancel } = options
    this.stdin = terminal?.input ?? streams.stdin
    this.stdout = terminal?.output ?? streams.stdout
    this.stderr = streams.stderr
    if (terminal !== undefined) {
      this.terminal = terminal
      streams.stdin.destroy()
      streams.stdout.destroy()
    }
    if (pipes !== undefined) this.pipes = pipes
    const onCancel = (): void => this.stop({ by: "cancelled" })
    cancel.addEventListener("abort", onCancel, { once: true })
    if (cancel.aborted) onCancel()
    this.exited = options.exited.finally(() => {
      this.#over = true
      cancel.removeEventListener("abort", onCancel)
      streams.stdin.destroy()
      pipes?.toTool.destroy()
      terminal?.hangUp()
      // Processes that are still there would keep the streams from ending.
      if (!options.settled()) this.#close()
    })
    // Whoever waits for it hears of it; nobody has to.
    this.exited.catch(() => undefined)
  }
  signal(name: NodeJS.Signals): void {
    void this.#options.signal(name, () => this.#over).catch(() => undefined)
  }
  async glance(): Promise<Glance> {
    if (this.#over) throw new Error("the run is over")
    return this.#options.glance()
  }
  async reach(port: number): Promise<Duplex | undefined> {
    if (this.#over) return undefined
    const connection = await this.#options.reach(port)
    // Whoever closes first, the other end's errors are told to whoever holds it, or to nobody.
    connection?.on("error", () => undefined)
    if (connection === undefined || !this.#over) return connection
    connection.destroy()
    return undefined
  }
  stop(ending: Ending): void {
    this.#options.stop(ending)
  }
  #close(): void {
    const { streams, pipes, terminal } = this.#options
    for (const stream of [...Object.values(streams), ...Object.values(pipes ?? {})]) stream.destroy()
    terminal?.close()
  }
  async [Symbol.asyncDispose](): Promise<void> {
    if (!this.#over) this.stop({ by: "cancelled" })
    const exited = await this.exited.catch(() => undefined)
    if (exited?.ok === true) await exited.discard()
    this.#close()
  }
}
