/**
 * What every conversation with a running program has in common: it is heard until it has its answer or is gone, and then
 * it is ended.
 *
 * Guarantees: `hearOut` resolves whatever either side does, and after it the conversation's signal is aborted: nothing of
 * it goes on. `partFrom` resolves when the run is over: its input ends, then, after a while, the whole tree; at once
 * where the call was cancelled.
 */
import type { ExitedSandbox, RunningSandbox, Unavailable } from "../../../../sandbox/backend.ts"
import type { Failure } from "../../../failure.ts"
import { hostLimits } from "../../../limits.ts"
import { settledWithin } from "../settled-within.ts"

export const noAnswer: Failure = {
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

interface Heard<T> {
  /** what it answered, or that it broke; absent where it never did */
  readonly answer?: T | Failure
  /** the run was over first */
  readonly isGone: boolean
}

/** `signal`: aborted when nobody waits for the answer any longer. */
export const hearOut = async <T>(
  running: RunningSandbox,
  talk: (signal: AbortSignal) => Promise<T>,
  signal: AbortSignal,
): Promise<Heard<T>> => {
  const unheard = new AbortController()
  let answer: T | Failure | undefined
  const answering = Promise.resolve()
    .then(() => talk(AbortSignal.any([signal, unheard.signal])))
    .catch(broken)
    .then((settled) => {
      answer = settled
    })
  const over = running.exited.then(
    () => "over" as const,
    () => "over" as const,
  )
  const isGone = (await Promise.race([answering, over])) === "over"
  if (isGone && !(await settledWithin(answering, hostLimits.lastWordMs.value))) {
    unheard.abort()
    await settledWithin(answering, hostLimits.lastWordMs.value)
  }
  unheard.abort()
  return answer === undefined ? { isGone } : { isGone, answer }
}

interface Parted {
  readonly exited: ExitedSandbox | Unavailable
  /** it ended by itself */
  readonly isGone: boolean
}

export const partFrom = async (
  running: RunningSandbox,
  { isGone: isOver, isCancelled }: { readonly isGone: boolean; readonly isCancelled: boolean },
): Promise<Parted> => {
  if (isCancelled) running.stop({ by: "cancelled" })
  running.stdin.end()
  running.pipes?.toTool.end()
  for (const stream of [running.stdout, running.pipes?.fromTool]) stream?.removeAllListeners("readable").resume()
  const isGone = isOver || (await settledWithin(running.exited, hostLimits.goodbyeMs.value))
  if (!isGone) running.stop({ by: "signal", signal: "SIGKILL" })
  return { exited: await running.exited, isGone }
}
