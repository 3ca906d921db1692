/**
 * What a call is debited to: the operator's budgets, its user's account of metered tools, and rules that allow so many.
 *
 * Guarantees: debited in one step before anything of the call runs, all accounts or none; what was debited is not given back
 * where the call fails later. Where nothing counts a call, nothing is written. A store that cannot be had refuses.
 */
import { tenantOf } from "../../access/caller.ts"
import { accountsOf, accountsOfRule, budgetsFor, endOf, KEEP_MS, type Spender } from "../../access/spending.ts"
import { budgetedRules } from "../../access/decide.ts"
import { accessPolicyOf } from "../../access/policy.ts"
import { workspaceId } from "../../data/workspaces.ts"
import type { Failure } from "../../failure.ts"
import { type SpendAccount, type SpendResult, StoreUnavailable } from "../../store/store.ts"
import type { HostCore } from "../core.ts"
import type { Admitted } from "../steps.ts"

type Debited = Pick<Admitted, "caller" | "tool" | "folder" | "request">

const spenderOf = (core: HostCore, { caller, tool, folder, request }: Debited): Spender => ({
  user: caller.user,
  workspace: request.workspace === undefined ? "none" : workspaceId(core.data, folder.identity),
  tool: tool.id,
})

const debit = async (
  core: HostCore,
  { caller }: Debited,
  accounts: readonly SpendAccount[],
  units: number,
  atMs: number,
  look = false,
): Promise<SpendResult> =>
  (await core.store()).spend({ tenant: tenantOf(caller), accounts, units, forgetMs: atMs - KEEP_MS, look })

const unavailable = (error: unknown): Failure => {
  if (!(error instanceof StoreUnavailable)) throw error
  return {
    ok: false,
    code: "internal",
    message: `nothing was run, because its budget could not be looked at: ${error.message}`,
    hint: error.fix,
    details: { commit: "none" },
  }
}

/** Of the rules that allow so many calls, those that this one was debited to, by their slugs. */
export const debitRules = async (core: HostCore, call: Admitted): Promise<ReadonlySet<string> | Failure> => {
  const { tool, action } = call
  const policy = accessPolicyOf(core.registry, core.config)
  const atMs = Date.now()
  const within = new Set<string>()
  try {
    for (const rule of budgetedRules(policy, { tool, ...(action === undefined ? {} : { action }) })) {
      const accounts = accountsOfRule(rule, atMs)
      if (accounts !== undefined && (await debit(core, call, accounts, 0, atMs)).ok) within.add(rule.slug)
    }
    return within
  } catch (error) {
    return unavailable(error)
  }
}

const pay = async (core: HostCore, call: Debited, units: number, look: boolean): Promise<Failure | undefined> => {
  const who = spenderOf(core, call)
  const budgets = budgetsFor(core.config.budgets, who)
  const atMs = Date.now()
  const accounts = accountsOf(budgets, who, units, atMs)
  if (accounts.length === 0) return undefined
  try {
    const spent = await debit(core, call, accounts, units, atMs, look)
    if (spent.ok) return undefined
    const budget = budgets[spent.index]
    const { per = "day", calls, units: most, each = [] } = budget ?? {}
    const ends = new Date(endOf(per, atMs)).toISOString()
    const what = calls !== undefined && spent.used.calls + 1 > calls ? `${calls} calls` : `${most ?? 0} units`
    const whose = each.length === 0 ? "" : ` for this ${each.join(" and ")}`
    return {
      ok: false,
      code: "budget_exceeded",
      message: `the budget of ${what} a ${per}${whose} has no room for this call; nothing was run`,
      hint: `wait until ${ends}, or raise the budget in \`budgets\` of caisson.yaml`,
      details: { per, until: ends, used: { ...spent.used }, cost: units },
    }
  } catch (error) {
    return unavailable(error)
  }
}

/** `units`: what the driver that serves the call costs. Undefined: it is paid for. */
export const debitCall = (core: HostCore, call: Debited, units: number): Promise<Failure | undefined> =>
  pay(core, call, units, false)

/** Whether it could be paid for now, before anybody is asked about it; nothing is debited. */
export const hasRoom = (core: HostCore, call: Debited, units = 0): Promise<Failure | undefined> =>
  core.config.budgets.length === 0 ? Promise.resolve(undefined) : pay(core, call, units, true)
