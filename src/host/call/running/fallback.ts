/**
 * Whether a call that one driver failed goes on to the next one. Pure.
 *
 * Guarantees: only where the contract asks for retries at all, the failure says that another try may help, a second run
 * does no harm (C-23), nobody pinned the driver and there is time left; never after a violation, a refusal by the
 * effects' judge, or a cancel. That one service knows a request by its key says nothing of the next one, to which it would
 * be new. The drivers of one call are bounded.
 */
import { callErrorOf } from "../../failure.ts"
import { hostLimits } from "../../limits.ts"
import type { Judged, PassedOver } from "../steps.ts"

export const passOver = (judged: Judged, elapsedMs: number): readonly PassedOver[] | undefined => {
  const { verdict, attempt, tool, pin, passedOver = [], driver, attempts, signal, nesting } = judged
  if (verdict.ok || attempt.outcome.ok || verdict.code !== attempt.outcome.code) return undefined
  if (pin !== undefined || signal.aborted || !callErrorOf(verdict).retryable) return undefined
  if ((tool.retry?.maxAttempts ?? 1) < 2 || elapsedMs >= tool.timeoutMs) return undefined
  if ((!tool.idempotent && tool.mutates.length > 0) || nesting?.mayHaveChanged === true) return undefined
  if (passedOver.length + 1 >= hostLimits.driversOfACall.value) return undefined
  return [...passedOver, { driver: driver.key, code: verdict.code, attempts }]
}
