/**
 * Which accounts a call is debited to. Pure.
 *
 * Guarantees: an account's name says all that divides it from others, so that no two budgets share one by accident; a
 * stretch of time begins where the calendar says (UTC), so that a clock that is set back meets what it counted there.
 */
import type { Budget, BudgetPart, BudgetSpan } from "../config/call-settings.ts"
import type { GovernanceRule } from "../../manifest/types.ts"
import type { SpendAccount } from "../store/store.ts"

const HOUR = 3_600_000
const DAY = 24 * HOUR
/** Longer than the longest stretch of time, and then some for a clock that is wrong by weeks. */
export const KEEP_MS = 100 * DAY

const beginOf = (span: BudgetSpan, atMs: number): number => {
  if (span === "hour") return Math.floor(atMs / HOUR) * HOUR
  if (span === "day") return Math.floor(atMs / DAY) * DAY
  const at = new Date(atMs)
  return Date.UTC(at.getUTCFullYear(), at.getUTCMonth())
}
export const endOf = (span: BudgetSpan, atMs: number): number => {
  if (span === "hour") return beginOf(span, atMs) + HOUR
  if (span === "day") return beginOf(span, atMs) + DAY
  const at = new Date(atMs)
  return Date.UTC(at.getUTCFullYear(), at.getUTCMonth() + 1)
}

/** Whose call, on what: `workspace` is the id that the data folder issued, or `none`. */
export type Spender = Readonly<Record<BudgetPart, string>>

const fitsTool = (pattern: string | undefined, tool: string): boolean =>
  pattern === undefined || (pattern.endsWith("*") ? tool.startsWith(pattern.slice(0, -1)) : tool === pattern)

const accountOf = (budget: Budget, who: Spender, atMs: number): SpendAccount => {
  const { user = "*", tool = "*", per, each, calls, units } = budget
  return {
    subject: JSON.stringify(["budget", per, user, tool, ...each.map((part) => [part, who[part]])]),
    sinceMs: beginOf(per, atMs),
    most: { ...(calls === undefined ? {} : { calls }), ...(units === undefined ? {} : { units }) },
  }
}

export const budgetsFor = (budgets: readonly Budget[], who: Spender): readonly Budget[] =>
  budgets.filter(({ user, tool }) => (user === undefined || user === who.user) && fitsTool(tool, who.tool))

/** In the order of `budgets`; behind them, what a metered call costs is counted whatever the budgets are. */
export const accountsOf = (
  budgets: readonly Budget[],
  who: Spender,
  units: number,
  atMs: number,
): readonly SpendAccount[] => [
  ...budgets.map((budget) => accountOf(budget, who, atMs)),
  ...(units > 0
    ? [{ subject: JSON.stringify(["use", who.user, who.workspace, who.tool]), sinceMs: beginOf("day", atMs) }]
    : []),
]

/** Of a rule that allows so many calls an hour or a day; one that speaks of money is counted by nobody. */
export const accountsOfRule = ({ slug, budget }: GovernanceRule, atMs: number): readonly SpendAccount[] | undefined => {
  if (budget === undefined || budget.maxAmountCents !== undefined) return undefined
  const spans = [
    ["hour", budget.maxPerHour],
    ["day", budget.maxPerDay],
  ] as const
  const accounts = spans.flatMap(([span, calls]) =>
    calls === undefined
      ? []
      : [{ subject: JSON.stringify(["rule", slug, span]), sinceMs: beginOf(span, atMs), most: { calls } }],
  )
  return accounts.length === 0 ? undefined : accounts
}
