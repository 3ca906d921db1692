/**
 * A program that the host talks with while it runs, from its start to its end.
 *
 * Guarantees: resolves when the run is over, with its layer sealed, whatever either side does: a conversation that has its
 * answer ends the program (its input ends, then, after a while, the whole tree), and a program that is gone ends the
 * conversation. One that was cancelled is asked to stop, as far as the conversation does that, and ended as soon as it
 * has answered. What the tool prints is kept up to a cap, and a flood ends the run, also where nobody reads it.
 */
import type { CollectedSandbox, RunningSandbox, Unavailable } from "../../../../sandbox/backend.ts"
import { withOutput } from "../../../../sandbox/collect.ts"
import { capture, type Capture } from "../../../../sandbox/process/capture.ts"
import type { CallTool, ConversationCommand, Elicit, Review } from "../../../drivers/kind.ts"
import type { Tell } from "../../../events.ts"
import type { Failure, Success } from "../../../failure.ts"
import { hearOut, noAnswer, partFrom } from "./hear-out.ts"

interface ConverseOptions {
  readonly outputBytes: number
  readonly signal: AbortSignal
  readonly tell: Tell
  /** absent: there is nothing to review */
  readonly review?: Review
  readonly elicit?: Elicit
  readonly callTool?: CallTool
}

type Answered = { readonly ok: true; readonly exited: CollectedSandbox; readonly answer: Success | Failure }

const unreviewed: Review = () => Promise.reject(new TypeError("there is nothing to review in this talk"))

/** How a program ended badly by itself, told with the failure that it may have caused. */
const withEnd = (answer: Success | Failure, { ending }: CollectedSandbox): Success | Failure => {
  if (answer.ok) return answer
  if (ending.by === "exit" && ending.code !== 0) return { ...answer, details: { exit: ending.code, ...answer.details } }
  if (ending.by === "signal") return { ...answer, details: { signal: ending.signal, ...answer.details } }
  return answer
}

interface Ending {
  readonly answer: Success | Failure
  readonly isGone: boolean
  readonly isCancelled: boolean
  readonly outputBytes: number
  readonly stdout?: Capture | undefined
  readonly stderr: Capture
}

/** The run ends, and is told with what it answered and printed. */
export const endTalk = async (
  running: RunningSandbox,
  { answer, isGone: wasGone, isCancelled, outputBytes, stdout, stderr }: Ending,
): Promise<Answered | Unavailable> => {
  const { exited, isGone } = await partFrom(running, { isGone: wasGone, isCancelled })
  if (!exited.ok) return exited
  await Promise.all([stdout?.ended, stderr.ended])
  const collected = withOutput(exited, { stdout, stderr, outputBytes })
  // Whatever it answered to a cancel, the call is one that was cancelled, and is over.
  if (isCancelled) Object.assign(collected, { ending: { by: "cancelled" } })
  return { ok: true, exited: collected, answer: isGone ? withEnd(answer, collected) : answer }
}

export const converse = async (
  running: RunningSandbox,
  command: ConversationCommand,
  { outputBytes, signal, tell, review = unreviewed, elicit, callTool }: ConverseOptions,
): Promise<Answered | Unavailable> => {
  const flood = (): void => running.stop({ by: "limit", limit: "output" })
  const stderr = capture(running.stderr, outputBytes, flood)
  const stdout = running.pipes === undefined ? undefined : capture(running.stdout, outputBytes, flood)
  const { answer = noAnswer, isGone } = await hearOut(
    running,
    (heard) =>
      command.converse({
        stdin: running.stdin,
        ...(running.pipes === undefined ? { stdout: running.stdout } : { pipes: running.pipes }),
        signal: heard,
        tell,
        review,
        ...(elicit === undefined ? {} : { elicit }),
        ...(callTool === undefined ? {} : { callTool }),
      }),
    signal,
  )
  return await endTalk(running, { answer, isGone, isCancelled: signal.aborted, outputBytes, stdout, stderr })
}
