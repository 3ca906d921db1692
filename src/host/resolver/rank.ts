/**
 * Phase 5 of routing: the order of the drivers that live.
 *
 * Guarantees: a total order that does not depend on the order of registration: the contract's default, then cost, then
 * what the operator vouches for, then kind (builtin, sdk, http, mcp, cli), then the most recent passed health check, then id, then the higher major.
 */
import type { DriverKind, ToolContract } from "../../manifest/types.ts"
import type { Candidate } from "./phases.ts"
import type { HealthStatus, ResolveInput } from "./types.ts"

const kindOrder: readonly DriverKind[] = ["builtin", "sdk", "http", "mcp", "cli"]

/** Declared units; undefined when neither the entry nor the driver says. */
export const declaredCost = ({ driver, binding }: Candidate): number | undefined =>
  binding.implementation.costUnitsPerCall ?? driver.contract.costUnitsPerCall

/** An undeclared cost is the contract's class: nothing for `trivial`, else dearer than any that is declared. */
const costOf = (candidate: Candidate, tool: ToolContract): number =>
  declaredCost(candidate) ?? (tool.costClass === "trivial" ? 0 : Number.POSITIVE_INFINITY)

/** `id@major`, or `id` for the drivers of the folder that owns the id. */
export const matchesRef = ({ driver }: Pick<Candidate, "driver">, ref: string): boolean =>
  driver.key === ref || (driver.ownsId && driver.contract.id === ref)

const isDefault = (candidate: Candidate, tool: ToolContract): boolean =>
  tool.defaultImplementation !== undefined && matchesRef(candidate, tool.defaultImplementation)

const passedAt = (health: HealthStatus | undefined): number =>
  health?.ok === true ? health.at : Number.NEGATIVE_INFINITY
const order = (a: number, b: number): number => (a === b ? 0 : a < b ? -1 : 1)

interface Criterion {
  readonly compare: (a: Candidate, b: Candidate, input: ResolveInput) => number
  /** why the loser lost, after "NAME was preferred: " */
  readonly text: (winner: Candidate, loser: Candidate, input: ResolveInput) => string
}

const units = (cost: number): string => (Number.isFinite(cost) ? `${cost}` : "an undeclared amount")

const criteria: readonly Criterion[] = [
  {
    compare: (a, b, { tool }) => order(Number(isDefault(b, tool)), Number(isDefault(a, tool))),
    text: () => "the contract names it as default",
  },
  {
    compare: (a, b, { tool }) => order(costOf(a, tool), costOf(b, tool)),
    text: (winner, loser, { tool }) =>
      `it costs ${units(costOf(winner, tool))} a call, this one ${units(costOf(loser, tool))}`,
  },
  {
    compare: (a, b) => order(Number(b.driver.vouched), Number(a.driver.vouched)),
    text: () => "the operator vouches for it, and not for this one",
  },
  {
    compare: (a, b) =>
      order(kindOrder.indexOf(a.driver.contract.driverKind), kindOrder.indexOf(b.driver.contract.driverKind)),
    text: (winner, loser) =>
      `kind ${winner.driver.contract.driverKind} comes before ${loser.driver.contract.driverKind}`,
  },
  {
    compare: (a, b, { health }) => order(passedAt(health.get(b.driver.key)), passedAt(health.get(a.driver.key))),
    text: () => "its health check passed more recently",
  },
  {
    compare: (a, b) =>
      a.driver.contract.id < b.driver.contract.id ? -1 : a.driver.contract.id > b.driver.contract.id ? 1 : 0,
    text: () => "its id comes first",
  },
  {
    compare: (a, b) => order(b.driver.contract.major, a.driver.contract.major),
    text: () => "its major version is higher",
  },
]

export const rank = (candidates: readonly Candidate[], input: ResolveInput): readonly Candidate[] =>
  candidates.toSorted((a, b) => {
    for (const { compare } of criteria) {
      const found = compare(a, b, input)
      if (found !== 0) return found
    }
    return 0
  })

export const whyBehind = (winner: Candidate, loser: Candidate, input: ResolveInput): string => {
  const deciding = criteria.find(({ compare }) => compare(winner, loser, input) !== 0)
  return `${winner.driver.key} was preferred: ${deciding?.text(winner, loser, input) ?? "they are equal"}`
}

export const whyFirst = (winner: Candidate, others: number, input: ResolveInput): string => {
  if (input.call.pin !== undefined && matchesRef(winner, input.call.pin)) return "the call pins it"
  if (isDefault(winner, input.tool)) return "the contract's default"
  return others === 0 ? "the only driver left" : `first of ${others + 1} by cost, kind, health and id`
}
