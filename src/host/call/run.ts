/**
 * Step 6: run the program, and judge each run, until one stands.
 *
 * Guarantees: a failed attempt is repeated only where the contract's rules allow it (C-23), never after a violation,
 * never beyond the call's own deadline, and each attempt starts from the workspace as it was, and from
 * the driver's home as the attempt before left it. What earlier attempts were denied stays in the account.
 */
import { setTimeout as pause } from "node:timers/promises"
import { callErrorOf } from "../invoke/failure.ts"
import { afterFailure } from "../invoke/retry.ts"
import type { Denial } from "../../sandbox/backend.ts"
import { attempt } from "./attempt.ts"
import type { HostCore } from "./core.ts"
import { judge } from "./judge.ts"
import { keepHome, withHomes } from "./keep-home.ts"
import type { HomeOutcome, Judged, Sealed, Step } from "./steps.ts"

/** The same profile with what is left of the time. */
const within = (sealed: Sealed, leftMs: number): Sealed => ({
  ...sealed,
  profile: Object.freeze({
    ...sealed.profile,
    limits: Object.freeze({ ...sealed.profile.limits, wallMs: Math.max(1, Math.floor(leftMs)) }),
  }),
})

const cancelled: Step<never> = {
  ok: false,
  code: "cancelled",
  message: "the call was cancelled; nothing was committed",
  details: {},
}

export const run = async (core: HostCore, sealed: Sealed, scope: AsyncDisposableStack): Promise<Step<Judged>> => {
  await core.recover(sealed.workspace)
  const started = performance.now()
  let denied: readonly Denial[] = []
  let homes: readonly HomeOutcome[] = []
  for (let attempts = 1; ; attempts += 1) {
    if (sealed.signal.aborted) return cancelled
    const elapsed = performance.now() - started
    await using own = new AsyncDisposableStack()
    const made = await attempt(core, attempts === 1 ? sealed : within(sealed, sealed.timeout.ms - elapsed), own, denied)
    if (!made.ok) return made
    homes = [...homes, ...(await keepHome(made.value.exited))]
    const judged = withHomes(judge(core, { ...sealed, attempt: made.value, attempts, homes }))
    const again = nextTry(judged, performance.now() - started)
    if (again === undefined) {
      scope.use(own.move())
      return { ok: true, value: judged }
    }
    denied = made.value.denied
    await own.disposeAsync()
    await pause(again, undefined, { signal: sealed.signal }).catch(() => undefined)
  }
}

/** The pause before another attempt, or undefined when this one stands. */
const nextTry = (judged: Judged, elapsedMs: number): number | undefined => {
  const { verdict, attempt: made, tool, retry, attempts, timeout } = judged
  if (verdict.ok || made.outcome.ok || verdict.code !== made.outcome.code) return undefined
  const after = afterFailure({
    tool,
    rule: retry,
    attempt: attempts,
    error: callErrorOf(verdict),
    elapsedMs,
    timeoutMs: timeout.ms,
  })
  return after.retry ? after.delayMs : undefined
}
