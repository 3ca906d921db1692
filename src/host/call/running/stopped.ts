/** What a run reached and was stopped at, counted together and told with the failure that it may have caused. Pure. */
import { explainDenial } from "../../../egress-proxy/policy/explain.ts"
import type { Denial } from "../../../sandbox/backend.ts"
import { hostLimits } from "../../limits.ts"
import type { Reached } from "../core.ts"
import type { Attempt } from "../steps.ts"

/** Rows for the same thing become one. */
export const mergeDenials = (...lists: readonly (readonly Denial[])[]): readonly Denial[] => {
  const merged = new Map<string, Denial>()
  for (const denial of lists.flat()) {
    const key = JSON.stringify([denial.layer, denial.reason, denial.target])
    merged.set(key, { ...denial, count: denial.count + (merged.get(key)?.count ?? 0) })
  }
  return [...merged.values()]
}

/** The same of hosts that it was let through to. */
export const mergeReached = (...lists: readonly (readonly Reached[])[]): readonly Reached[] => {
  const sums = new Map<string, Reached>()
  for (const one of lists.flat()) {
    const { count = 0, bytesOut = 0, bytesIn = 0 } = sums.get(one.target) ?? {}
    sums.set(one.target, {
      target: one.target,
      count: one.count + count,
      bytesOut: one.bytesOut + bytesOut,
      bytesIn: one.bytesIn + bytesIn,
    })
  }
  return [...sums.values()]
}

/** Hosts that were allowed and could not be reached: what the program took for a site's answer was the proxy's. */
export const withUnreachable = (outcome: Attempt["outcome"], failures: readonly Denial[]): Attempt["outcome"] => {
  if (outcome.ok || failures.length === 0) return outcome
  const unreachable = failures
    .slice(0, hostLimits.unreachable.value)
    .map(({ reason, target, count }) => ({ reason, target, count, ...explainDenial({ reason, target }) }))
  return { ...outcome, details: { ...outcome.details, unreachable } }
}
