/**
 * A program that the host talks with while it runs, from its start to its end.
 *
 * Guarantees: resolves when the run is over, with its layer sealed, whatever either side does: a conversation that has its
 * answer ends the program (its input ends, then, after a while, the whole tree), and a program that is gone ends the
 * conversation. One that was cancelled is asked to stop, as far as the conversation does that, and ended as soon as it
 * has answered. What the tool prints is kept up to a cap, and a flood ends the run, also where nobody reads it.
 */
import type { CollectedSandbox, RunningSandbox, Unavailable } from "../../../sandbox/backend.ts"
import { withOutput } from "../../../sandbox/collect.ts"
import { capture } from "../../../sandbox/process/capture.ts"
import type { ConversationCommand, Elicit, Review, Session } from "../../drivers/kind.ts"
import type { Tell } from "../../events.ts"
import type { Failure, Success } from "../../failure.ts"
import { hostLimits } from "../../limits.ts"
import { settledWithin } from "./settled-within.ts"

interface ConverseOptions {
  readonly outputBytes: number
  readonly signal: AbortSignal
  readonly tell: Tell
  /** absent: there is nothing to review */
  readonly review?: Review
  readonly elicit?: Elicit
}

type Answered = { readonly ok: true; readonly exited: CollectedSandbox; readonly answer: Success | Failure }

const unreviewed: Review = () => Promise.reject(new TypeError("there is nothing to review in this talk"))

const noAnswer: Failure = {
  ok: false,
  code: "upstream_error",
  message: "the program ended without an answer",
  details: {},
}

const broken = (error: unknown): Failure => ({
  ok: false,
  code: "internal",
  message: `the host's side of the conversation failed: ${error instanceof Error ? error.message : String(error)}`,
  details: {},
})

/** How a program ended badly by itself, told with the failure that it may have caused. */
const withEnd = (answer: Success | Failure, { ending }: CollectedSandbox): Success | Failure => {
  if (answer.ok) return answer
  if (ending.by === "exit" && ending.code !== 0) return { ...answer, details: { exit: ending.code, ...answer.details } }
  if (ending.by === "signal") return { ...answer, details: { signal: ending.signal, ...answer.details } }
  return answer
}

export const converse = async (
  running: RunningSandbox,
  command: ConversationCommand,
  { outputBytes, signal, tell, review = unreviewed, elicit }: ConverseOptions,
): Promise<Answered | Unavailable> => {
  const flood = (): void => running.stop({ by: "limit", limit: "output" })
  const stderr = capture(running.stderr, outputBytes, flood)
  const stdout = running.pipes === undefined ? undefined : capture(running.stdout, outputBytes, flood)
  const unheard = new AbortController()
  const session: Session = {
    stdin: running.stdin,
    ...(running.pipes === undefined ? { stdout: running.stdout } : { pipes: running.pipes }),
    signal: AbortSignal.any([signal, unheard.signal]),
    tell,
    review,
    ...(elicit === undefined ? {} : { elicit }),
  }
  let answer: Success | Failure = noAnswer
  const answering = Promise.resolve()
    .then(() => command.converse(session))
    .catch(broken)
    .then((settled) => {
      answer = settled
    })
  const over = running.exited.then(
    () => "over" as const,
    () => "over" as const,
  )
  const isOverFirst = (await Promise.race([answering, over])) === "over"
  if (isOverFirst && !(await settledWithin(answering, hostLimits.lastWordMs.value))) {
    unheard.abort()
    await settledWithin(answering, hostLimits.lastWordMs.value)
  }
  unheard.abort()
  // Whatever it answered to a cancel, the call is one that was cancelled, and is over.
  const isCancelled = signal.aborted
  if (isCancelled) running.stop({ by: "cancelled" })
  running.stdin.end()
  running.pipes?.toTool.end()
  for (const stream of [running.stdout, running.pipes?.fromTool]) stream?.removeAllListeners("readable").resume()
  const isGone = isOverFirst || (await settledWithin(running.exited, hostLimits.goodbyeMs.value))
  if (!isGone) running.stop({ by: "signal", signal: "SIGKILL" })
  const exited = await running.exited
  if (!exited.ok) return exited
  await Promise.all([stdout?.ended, stderr.ended])
  const collected = withOutput(exited, { stdout, stderr, outputBytes })
  if (isCancelled) Object.assign(collected, { ending: { by: "cancelled" } })
  return { ok: true, exited: collected, answer: isGone ? withEnd(answer, collected) : answer }
}
