/**
 * The call's way out: which hosts, over which listeners, within which budgets.
 *
 * Guarantees: never wider than the driver, its entry for the tool, the contract and the operator's list together; no
 * entries means no network at all. Pure.
 */
import type { EgressBudgets, EgressPolicy } from "../../../egress-proxy/types.ts"
import { type EgressEntry, intersectEgress } from "../../../manifest/values/egress-entry.ts"
import type { DriverContract, ToolContract } from "../../../manifest/types.ts"
import type { NetworkChannelSpec } from "../../../sandbox/backend.ts"
import { egressBudgets } from "../../limits.ts"
import { mutatesOutside } from "../../access/decide.ts"
import type { HostCore } from "../core.ts"
import type { SignedIn } from "../steps.ts"

const PROXY_PORTS = [3128, 13_128, 23_128] as const

/** What the driver declares, for this tool, and the operator allows. A contract that requires none gets none (C-14). */
export const egressOf = (
  core: HostCore,
  tool: ToolContract,
  declared: readonly EgressEntry[],
): readonly EgressEntry[] => {
  if (tool.requires.network?.length === 0) return []
  const { allow } = core.config.egress
  return allow === undefined ? declared : intersectEgress(declared, allow)
}

/** Listeners for the proxy, the declared ports and names. */
export const channelFor = (entries: readonly EgressEntry[]): NetworkChannelSpec => {
  const ports = [...new Set(entries.flatMap((entry) => entry.ports))].sort((a, b) => a - b)
  return {
    proxyPort: PROXY_PORTS.find((port) => !ports.includes(port)) ?? PROXY_PORTS[0],
    transparentPorts: ports,
    dns: true,
  }
}

/** The host's budgets, or the operator's where there are any, narrowed by what the driver says it needs. */
const budgetsFor = (core: HostCore, declared: DriverContract["egressBudget"]): EgressBudgets => {
  const budgets: Record<string, number> = { ...egressBudgets, ...core.config.egress.budgets }
  for (const [name, most] of Object.entries(declared ?? {}))
    if (typeof most === "number" && name in budgets) budgets[name] = Math.min(budgets[name] as number, most)
  return budgets as unknown as EgressBudgets
}

export const policyFor = (
  core: HostCore,
  { tool, driver }: SignedIn,
  entries: readonly EgressEntry[],
  substitutions: EgressPolicy["substitutions"],
): EgressPolicy => ({
  entries,
  services: core.config.egress.services,
  private: core.config.egress.private,
  budgets: budgetsFor(core, driver.contract.egressBudget),
  readOnlyHttp: mutatesOutside(tool).length > 0 ? "off" : core.config.readOnlyHttp,
  substitutions,
})

/** What an installation may do: read from these hosts, as the operator's word maps them. */
export const readingFrom = (
  { config: { egress } }: Pick<HostCore, "config">,
  entries: readonly EgressEntry[],
): EgressPolicy => ({
  entries,
  services: egress.services,
  private: egress.private,
  budgets: egressBudgets,
  readOnlyHttp: "enforce",
  substitutions: [],
})
