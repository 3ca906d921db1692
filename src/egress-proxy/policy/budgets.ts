/**
 * What one call may use in all: bytes each way, requests, connections, distinct names.
 *
 * Guarantees: the n-th unit passes and the n+1-th is refused, with the budget's name. Counting survives policy
 * updates: a new policy changes the limits, not what was used.
 */
import type { EgressBudgets } from "../types.ts"

export type BudgetName = "bytesOut" | "bytesIn" | "requests" | "connections" | "distinctNames"

/** Unlimited but for names: a wildcard is the one entry that a sandbox can spell in endless ways. */
export const defaultBudgets: EgressBudgets = Object.freeze({
  bytesOut: Number.POSITIVE_INFINITY,
  bytesIn: Number.POSITIVE_INFINITY,
  requests: Number.POSITIVE_INFINITY,
  connections: Number.POSITIVE_INFINITY,
  distinctNames: 1_000,
  connectTimeoutMs: 10_000,
  idleTimeoutMs: 300_000,
})

export interface BudgetMeter {
  /** Counts one more request for this host; the name of the budget that forbids it. */
  request(limits: EgressBudgets, host: string): BudgetName | undefined
  connection(limits: EgressBudgets): BudgetName | undefined
  bytesOut(limits: EgressBudgets, bytes: number): BudgetName | undefined
  bytesIn(limits: EgressBudgets, bytes: number): BudgetName | undefined
  readonly used: Readonly<Record<BudgetName, number>>
}

export function createBudgetMeter(): BudgetMeter {
  const used: Record<BudgetName, number> = { bytesOut: 0, bytesIn: 0, requests: 0, connections: 0, distinctNames: 0 }
  const names = new Set<string>()
  const take = (name: BudgetName, limit: number, amount: number): BudgetName | undefined => {
    if (used[name] + amount > limit) return name
    used[name] += amount
    return undefined
  }
  return {
    used,
    request(limits, host) {
      if (names.has(host)) return take("requests", limits.requests, 1)
      if (used.requests >= limits.requests) return "requests"
      const over = take("distinctNames", limits.distinctNames, 1)
      if (over !== undefined) return over
      names.add(host)
      return take("requests", limits.requests, 1)
    },
    connection: (limits) => take("connections", limits.connections, 1),
    bytesOut: (limits, bytes) => take("bytesOut", limits.bytesOut, bytes),
    bytesIn: (limits, bytes) => take("bytesIn", limits.bytesIn, bytes),
  }
}
