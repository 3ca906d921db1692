/**
 * A program that runs in the launcher's hands, its streams in ours.
 *
 * Guarantees: the bytes of its streams go between the program and this process alone, with the pipes' own back-pressure.
 * The streams end with the run; whoever does not read them loses what they hold when the run is disposed of.
 */
import { Socket } from "node:net"
import type { Readable, Writable } from "node:stream"
import type { Ending, ExitedSandbox, RunningSandbox, Unavailable } from "../backend.ts"
import type { Terminal } from "../process/terminal.ts"
import { Exited } from "./exited.ts"
import type { Handles, Launched } from "./launch.ts"
import type { Refusal, Request, RunAnswer, StreamRole } from "./protocol.ts"

const streamOf = (handles: Handles, role: StreamRole): Socket => {
  const writable = role === "stdin" || role === "to-tool"
  // Not read before somebody wants it: a stream that nobody listens to yet must not end unheard.
  const options = { handle: handles.get(role), readable: !writable, writable, manualStart: true }
  const stream = new Socket(options as ConstructorParameters<typeof Socket>[0])
  // A program that closed its end, or is gone, is no error of ours.
  stream.on("error", () => undefined)
  // While it was parked it was no reason to stay alive.
  stream.ref()
  return stream
}

type RunRequest = Extract<Request, { op: "run" }>
interface RunningOptions {
  readonly launched: Launched
  readonly request: RunRequest
  readonly handles: Handles
  readonly terminal: Terminal | undefined
  readonly privatePipes: boolean
  readonly cancel: AbortSignal
  /** the run is over; its layer is not */
  readonly ended: () => void
}

class Running implements RunningSandbox {
  readonly ok = true
  readonly stdin: Writable
  readonly stdout: Readable
  readonly stderr: Readable
  readonly terminal?: { resize(columns: number, rows: number): void }
  readonly pipes?: { readonly toTool: Writable; readonly fromTool: Readable }
  readonly exited: Promise<ExitedSandbox | Unavailable>
  readonly #options: RunningOptions
  readonly #streams: Socket[]
  constructor(options: RunningOptions, answered: Promise<RunAnswer | Refusal>) {
    this.#options = options
    const { handles, terminal, privatePipes, request, launched } = options
    const [stdin, stdout, stderr] = (["stdin", "stdout", "stderr"] as const).map((role) => streamOf(handles, role)) as [
      Socket,
      Socket,
      Socket,
    ]
    this.#streams = [stdin, stdout, stderr]
    this.stdin = terminal?.input ?? stdin
    this.stdout = terminal?.output ?? stdout
    this.stderr = stderr
    if (terminal !== undefined) {
      this.terminal = terminal
      stdin.destroy()
      stdout.destroy()
    }
    if (privatePipes) {
      const [toTool, fromTool] = [streamOf(handles, "to-tool"), streamOf(handles, "from-tool")]
      this.pipes = { toTool, fromTool }
      this.#streams.push(toTool, fromTool)
    }
    const onCancel = (): void => this.stop({ by: "cancelled" })
    options.cancel.addEventListener("abort", onCancel, { once: true })
    if (options.cancel.aborted) onCancel()
    this.exited = answered
      .then((answer) => {
        // Processes that are still there would keep the streams from ending.
        if (answer.ok && answer.writes === undefined) this.#close()
        return answer.ok ? new Exited(launched, request.sandbox, answer) : answer
      })
      .finally(() => {
        options.cancel.removeEventListener("abort", onCancel)
        stdin.destroy()
        this.pipes?.toTool.destroy()
        terminal?.hangUp()
        options.ended()
      })
    // Whoever waits for it hears of it; nobody has to.
    this.exited.catch(() => undefined)
  }
  signal(name: NodeJS.Signals): void {
    const { launched, request } = this.#options
    void launched.ask({ op: "signal", sandbox: request.sandbox, signal: name }).catch(() => undefined)
  }
  stop(ending: Ending): void {
    const { launched, request } = this.#options
    void launched.ask({ op: "stop", sandbox: request.sandbox, ending }).catch(() => undefined)
  }
  async [Symbol.asyncDispose](): Promise<void> {
    this.stop({ by: "cancelled" })
    const exited = await this.exited.catch(() => undefined)
    if (exited?.ok === true) await exited.discard()
    this.#close()
  }
  #close(): void {
    for (const stream of this.#streams) stream.destroy()
    this.#options.terminal?.close()
  }
}

/** Ask for the run; answers when it has begun. */
export const startRun = async (options: RunningOptions): Promise<RunningSandbox | Unavailable> => {
  const begun = Promise.withResolvers<"begun">()
  const answered = options.launched.ask(options.request, () => begun.resolve("begun")) as Promise<RunAnswer | Refusal>
  const running = new Running(options, answered)
  try {
    const first = await Promise.race([begun.promise, answered])
    if (first === "begun" || first.ok) return running
    await running[Symbol.asyncDispose]()
    return first
  } catch (error) {
    await running[Symbol.asyncDispose]()
    throw error
  }
}
