/** A call that was cancelled before its program ran, wherever it was then. */
import type { Failure } from "../../failure.ts"

export const cancelled: Failure = {
  ok: false,
  code: "cancelled",
  message: "the call was cancelled; nothing was committed",
  details: {},
}

/** The answer, or that the call was cancelled first; then nobody waits for the answer any longer. */
export const unlessCancelled = <T>(answer: Promise<T>, signal: AbortSignal): Promise<T | typeof cancelled> =>
  new Promise((resolve, reject) => {
    const onCancel = (): void => resolve(cancelled)
    answer.then(resolve, reject).finally(() => signal.removeEventListener("abort", onCancel))
    signal.addEventListener("abort", onCancel, { once: true })
    if (signal.aborted) onCancel()
  })
