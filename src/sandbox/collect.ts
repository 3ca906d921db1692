/**
 * A one-shot run: feed its input, keep what it prints up to a cap, wait for its end.
 *
 * Guarantees: memory is bounded by the cap; output beyond it is drained and counted, and a flood ends the run as a
 * limit. Resolves when the run is over and both streams are read.
 */
import type {
  Captured,
  CollectedSandbox,
  Denial,
  ExitedSandbox,
  Job,
  PreparedSandbox,
  RunningSandbox,
  Unavailable,
} from "./backend.ts"
import { capture, type Capture } from "./process/capture.ts"

interface CollectOptions {
  /** absent: the caller feeds it */
  readonly stdin?: Uint8Array
  /** bytes of stdout and of stderr kept, each */
  readonly outputBytes: number
}

/** What ends a line of input, and the input, where a person types it. */
const LINE_FEED = 10
const END_OF_INPUT = "\x04"

const feed = ({ stdin, terminal }: RunningSandbox, bytes: Uint8Array): void => {
  if (terminal === undefined) {
    stdin.end(bytes)
    return
  }
  // A terminal has no end; its driver makes one of this byte, where it stands at the start of a line.
  if (bytes.length === 0) return
  stdin.write(bytes)
  stdin.write(bytes.at(-1) === LINE_FEED ? END_OF_INPUT : END_OF_INPUT + END_OF_INPUT)
}

/** What stderr holds of a program that never ran is the sandbox's own words on why. */
const endingWith = (ending: ExitedSandbox["ending"], stderr: Capture): ExitedSandbox["ending"] => {
  if (ending.by !== "infrastructure" || ending.started !== false) return ending
  const said = Buffer.from(stderr.result().bytes).toString("utf8", 0, 600).trim()
  return said === "" ? ending : { ...ending, message: `${ending.message}: ${said}` }
}

const flooded = (outputBytes: number): Denial => ({
  layer: "limit",
  reason: "output",
  target: `${outputBytes} bytes of output`,
  count: 1,
})

export const collect = async (
  running: RunningSandbox,
  { stdin, outputBytes }: CollectOptions,
): Promise<CollectedSandbox | Unavailable> => {
  const flood = (): void => running.stop({ by: "limit", limit: "output" })
  const stdout = capture(running.stdout, outputBytes, flood)
  const stderr = capture(running.stderr, outputBytes, flood)
  if (stdin !== undefined) feed(running, stdin)
  const exited = await running.exited
  if (!exited.ok) return exited
  await Promise.all([stdout.ended, stderr.ended])
  return withOutput(exited, { stdout, stderr, outputBytes })
}

const nothing: Captured = Object.freeze({ bytes: new Uint8Array(), truncated: false, total: 0 })

/** The run's end together with what was kept of its streams, both read to their ends. */
export const withOutput = (
  exited: ExitedSandbox,
  { stdout, stderr, outputBytes }: { stdout?: Capture | undefined; stderr: Capture; outputBytes: number },
): CollectedSandbox => {
  const ending = endingWith(exited.ending, stderr)
  const floods = ending.by === "limit" && ending.limit === "output" ? [flooded(outputBytes)] : []
  return Object.assign(exited, {
    ending,
    denied: [...exited.denied, ...floods],
    stdout: stdout?.result() ?? nothing,
    stderr: stderr.result(),
  })
}

/** Start a job and collect it. */
export const runOnce = async (
  prepared: PreparedSandbox,
  job: Job,
  options: CollectOptions,
  cancel: AbortSignal,
): Promise<CollectedSandbox | Unavailable> => {
  const running = await prepared.start(job, cancel)
  return running.ok ? collect(running, options) : running
}
