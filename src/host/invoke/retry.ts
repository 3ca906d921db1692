/**
 * How long a call may take and whether a failed attempt is followed by another. Pure: no clock, no timer.
 *
 * Guarantees: the timeout is the least of all that speak (obligation 142); a retry only follows an error that says it
 * is retryable, on a call that is idempotent, mutates nothing, or carries an idempotency key (C-23), and never outlives
 * the call's timeout. Whoever asked to be left alone for a while is, or is not asked again.
 */
import type { DriverContract, Implementation, RetryRule, ToolContract } from "../../manifest/types.ts"
import { maxAttempts, maxBackoffMs } from "./limits.ts"

export interface Speakers {
  readonly tool: ToolContract
  readonly driver: DriverContract
  readonly implementation: Implementation
}

export interface EffectiveTimeout {
  readonly ms: number
  readonly from: "contract" | "driver" | "implementation" | "runner" | "host"
}

/** The least declared value; on a tie the contract is named first. */
export const effectiveTimeout = ({ tool, driver, implementation }: Speakers, hostMs?: number): EffectiveTimeout => {
  const spoken: [EffectiveTimeout["from"], number | undefined][] = [
    ["contract", tool.timeoutMs],
    ["driver", driver.timeoutMs],
    ["implementation", implementation.timeoutMs],
    ["runner", driver.limits.timeoutMs],
    ["host", hostMs],
  ]
  let least: EffectiveTimeout = { ms: tool.timeoutMs, from: "contract" }
  for (const [from, ms] of spoken) if (ms !== undefined && ms < least.ms) least = { ms, from }
  return least
}

export const once: RetryRule = Object.freeze({ maxAttempts: 1, backoff: "fixed", initialMs: 0 })

/** The nearest rule, capped by the contract's attempts where it names any, and by the host's always. */
export const effectiveRetry = ({ tool, driver, implementation }: Speakers): RetryRule => {
  const rule = implementation.retry ?? driver.retry ?? tool.retry
  if (rule === undefined) return once
  return {
    ...rule,
    maxAttempts: Math.max(1, Math.min(rule.maxAttempts, tool.retry?.maxAttempts ?? maxAttempts, maxAttempts)),
  }
}

/** The pause before each attempt after the first. */
export const backoffSchedule = (rule: RetryRule): readonly number[] =>
  Array.from({ length: Math.max(0, rule.maxAttempts - 1) }, (_, index) =>
    Math.min(maxBackoffMs, rule.backoff === "fixed" ? rule.initialMs : rule.initialMs * 2 ** index),
  )

export interface AttemptFailed {
  readonly tool: ToolContract
  readonly rule: RetryRule
  /** 1 for the first */
  readonly attempt: number
  readonly error: { readonly retryable: boolean }
  /** how long the other side asked to be left alone */
  readonly askedMs?: number
  readonly elapsedMs: number
  readonly timeoutMs: number
  readonly idempotencyKey?: boolean
}
type AfterFailure =
  | { readonly retry: true; readonly delayMs: number }
  | { readonly retry: false; readonly why: "not-retryable" | "not-safe-to-repeat" | "attempts-used" | "no-time-left" }

export const afterFailure = ({
  tool,
  rule,
  attempt,
  error,
  elapsedMs,
  timeoutMs,
  idempotencyKey,
  askedMs = 0,
}: AttemptFailed): AfterFailure => {
  if (!error.retryable) return { retry: false, why: "not-retryable" }
  if (!tool.idempotent && tool.mutates.length > 0 && idempotencyKey !== true)
    return { retry: false, why: "not-safe-to-repeat" }
  const ownMs = backoffSchedule(rule)[attempt - 1]
  if (ownMs === undefined) return { retry: false, why: "attempts-used" }
  const delayMs = Math.max(ownMs, askedMs)
  if (elapsedMs + delayMs >= timeoutMs) return { retry: false, why: "no-time-left" }
  return { retry: true, delayMs }
}
