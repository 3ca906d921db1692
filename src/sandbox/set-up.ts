/**
 * The wait for a step of set-up, the same for every backend.
 *
 * Guarantees: it ends with the step, when the call is cancelled, or at the step's deadline, whichever comes first. A step
 * that is not waited for any longer is not lost: what it still brings is let go of.
 * Does not: stop the step itself, which others may share.
 */
import type { Unavailable } from "./backend.ts"

interface Wait<T> {
  /** what is done meanwhile, as in "while …" */
  readonly what: string
  readonly cancel?: AbortSignal | undefined
  /** absent: the step has a deadline of its own */
  readonly withinMs?: number
  /** what came after all, and nobody waits for */
  readonly letGo?: (late: T) => unknown
}

export const cancelledWhile = (what: string): Unavailable => ({
  ok: false,
  control: "cancelled",
  message: `the call was cancelled while ${what}; nothing was run`,
  fix: "call again",
})
const late = (what: string, ms: number): Unavailable => ({
  ok: false,
  control: "set-up",
  message: `it took longer than ${ms / 1000} s while ${what}; nothing was run`,
  fix: "look for what holds the machine up (`dmesg`, load), then call again",
})

export const waitFor = <T>(step: Promise<T>, { what, cancel, withinMs, letGo }: Wait<T>): Promise<T | Unavailable> =>
  new Promise((resolve, reject) => {
    let waiting = true
    let timer: NodeJS.Timeout | undefined
    const end = (): boolean => {
      const was = waiting
      waiting = false
      clearTimeout(timer)
      cancel?.removeEventListener("abort", onCancel)
      return was
    }
    const give = (refusal: Unavailable): void => {
      if (end()) resolve(refusal)
    }
    const onCancel = (): void => give(cancelledWhile(what))
    step
      .then(
        async (value) => {
          if (end()) resolve(value)
          else await letGo?.(value)
        },
        (error: unknown) => {
          if (end()) reject(error)
        },
      )
      .catch(() => undefined)
    cancel?.addEventListener("abort", onCancel, { once: true })
    if (cancel?.aborted === true) onCancel()
    else if (withinMs !== undefined) timer = setTimeout(() => give(late(what, withinMs)), withinMs)
  })
