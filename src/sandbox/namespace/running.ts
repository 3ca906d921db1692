/**
 * A program that runs in the launcher's hands, its streams in ours.
 *
 * Guarantees: the bytes of its streams go between the program and this process alone, with the pipes' own back-pressure.
 * A run that was told to stop ends for its caller also where the launcher hangs: its processes then count as not seen to
 * end, so that nothing they wrote is used.
 */
import { Socket } from "node:net"
import type { Ending, RunningSandbox, Unavailable } from "../backend.ts"
import { RunningProgram } from "../process/running-program.ts"
import type { Terminal } from "../process/terminal.ts"
import { waitFor } from "../set-up.ts"
import { LauncherEnded, LauncherGone } from "./conversation.ts"
import { Exited } from "./exited.ts"
import type { Handles, Launched } from "./launch.ts"
import { LAUNCHER } from "./limits.ts"
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

/** A run as the launcher tells of it. */
interface AskedRun {
  readonly answered: Promise<RunAnswer | Refusal>
  /** it runs, or is over already */
  readonly begun: Promise<"begun" | RunAnswer | Refusal>
  stop(ending: Ending): void
}

const askRun = ({ launched, request }: RunningOptions): AskedRun => {
  const begun = Promise.withResolvers<"begun">()
  const givenUp = Promise.withResolvers<RunAnswer>()
  const began = performance.now()
  let runs = false
  const unseen = (ending: Ending): RunAnswer => ({
    ok: true,
    ending,
    denied: [],
    usage: { wallMs: performance.now() - began },
  })
  const asked = launched
    .ask(request, () => {
      runs = true
      begun.resolve("begun")
    })
    .catch((error: unknown) => {
      if (!(error instanceof LauncherEnded) && !(error instanceof LauncherGone)) throw error
      return unseen({ by: "infrastructure", message: error.message })
    }) as Promise<RunAnswer | Refusal>
  const answered = Promise.race([asked, givenUp.promise])
  return {
    answered,
    begun: Promise.race([begun.promise, answered]),
    stop(ending) {
      let heard = false
      launched.ask({ op: "stop", sandbox: request.sandbox, ending }).then(
        () => (heard = true),
        () => undefined,
      )
      const timer = setTimeout(() => {
        if (heard && runs) return
        givenUp.resolve(unseen(ending))
      }, LAUNCHER.stopMs)
      const over = (): void => clearTimeout(timer)
      answered.then(over, over)
    },
  }
}

const running = (options: RunningOptions, { answered, stop }: AskedRun): RunningProgram => {
  const { handles, launched, request } = options
  const { sandbox } = request
  const stream = (role: StreamRole): Socket => streamOf(handles, role)
  let settled = true
  return new RunningProgram({
    streams: { stdin: stream("stdin"), stdout: stream("stdout"), stderr: stream("stderr") },
    pipes: options.privatePipes ? { toTool: stream("to-tool"), fromTool: stream("from-tool") } : undefined,
    terminal: options.terminal,
    cancel: options.cancel,
    exited: answered
      .then((answer) => {
        if (!answer.ok) return answer
        settled = answer.writes !== undefined
        return new Exited(launched, sandbox, answer)
      })
      .finally(options.ended),
    settled: () => settled,
    signal: (name) => launched.ask({ op: "signal", sandbox, signal: name }),
    stop,
  })
}

/** Ask for the run; answers when it has begun. */
export const startRun = async (options: RunningOptions): Promise<RunningSandbox | Unavailable> => {
  const run = askRun(options)
  const program = running(options, run)
  try {
    // Cancelling stops the run, and so ends this wait too.
    const first = await waitFor(run.begun, { what: "the program was started", withinMs: LAUNCHER.beginMs })
    if (first === "begun" || first.ok) return program
    void program[Symbol.asyncDispose]()
    return first
  } catch (error) {
    await program[Symbol.asyncDispose]()
    throw error
  }
}
