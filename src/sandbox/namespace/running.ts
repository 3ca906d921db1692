/**
 * A program that runs in the launcher's hands, its streams in ours.
 *
 * Guarantees: the bytes of its streams go between the program and this process alone, with the pipes' own back-pressure.
 * A run that was told to stop ends for its caller also where the launcher hangs: its processes then count as not seen to
 * end, so that nothing they wrote is used.
 */
import type { Socket } from "node:net"
import type { Ending, RunningSandbox, Unavailable } from "../backend.ts"
import { RunningProgram } from "../process/running-program.ts"
import type { Terminal } from "../process/terminal.ts"
import { waitFor } from "../set-up.ts"
import { LauncherEnded, LauncherGone } from "./conversation.ts"
import { Exited } from "./exited.ts"
import { openPipeStreams } from "../process/pipe-streams.ts"
import type { Launched } from "./launch.ts"
import { LAUNCHER } from "./launcher/limits.ts"
import type { GlanceAnswer, PrepareAnswer, ReachAnswer, Refusal, Request, RunAnswer } from "./launcher/protocol.ts"

/** Our ends of the program's streams; the private ones where the sandbox was made with them. */
export interface ProgramStreams {
  readonly stdin: Socket
  readonly stdout: Socket
  readonly stderr: Socket
  readonly toTool?: Socket
  readonly fromTool?: Socket
}

/** While the launcher, process `pid`, holds them under these numbers. */
export const openStreams = (pid: number, fds: PrepareAnswer["streams"], privatePipes: boolean): ProgramStreams => {
  const usual = {
    stdin: { fd: fds.stdin, writable: true },
    stdout: { fd: fds.stdout, writable: false },
    stderr: { fd: fds.stderr, writable: false },
  }
  if (!privatePipes) return openPipeStreams(pid, usual)
  const own = { toTool: { fd: fds.toTool, writable: true }, fromTool: { fd: fds.fromTool, writable: false } }
  return openPipeStreams(pid, { ...usual, ...own })
}

type RunRequest = Extract<Request, { op: "run" }>
interface RunningOptions {
  readonly launched: Launched
  readonly request: RunRequest
  readonly streams: ProgramStreams
  readonly terminal: Terminal | undefined
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
      const watch = launched.watch(() => {
        if (heard && runs) return
        givenUp.resolve(unseen(ending))
      })
      answered.then(watch.stop, watch.stop)
    },
  }
}

const running = (options: RunningOptions, { answered, stop }: AskedRun): RunningProgram => {
  const { launched, request } = options
  const { stdin, stdout, stderr, toTool, fromTool } = options.streams
  const { sandbox } = request
  let settled = true
  return new RunningProgram({
    streams: { stdin, stdout, stderr },
    pipes: toTool === undefined || fromTool === undefined ? undefined : { toTool, fromTool },
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
    glance: async () => {
      const { written, denied } = (await launched.ask({ op: "glance", sandbox })) as GlanceAnswer
      return { written, denied }
    },
    reach: async (port) => {
      const asked = launched.ask({ op: "reach", sandbox, port }) as Promise<ReachAnswer>
      return (await asked.catch(() => undefined))?.connection
    },
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
