/**
 * Phase 5 of routing: the order of the drivers that live.
 *
 * Guarantees: a total order that does not depend on the order of registration: the contract's default, then cost
 * and cost class, then what the operator vouches for, then kind (builtin, sdk, http, mcp, cli), then the most recent passed health check, then id, then the higher major.
 */
import { declaredKind } from "../../manifest/kinds/body.ts"
import type { CostClass, DriverKind, ToolContract } from "../../manifest/types.ts"
import type { Candidate } from "./phases.ts"
import type { HealthStatus, ResolveInput } from "./types.ts"

const kindOrder: readonly DriverKind[] = ["builtin", "sdk", "http", "mcp", "cli"]

const classOrder: readonly CostClass[] = ["trivial", "metered", "expensive"]

/** Declared units; undefined when neither the entry nor the driver says. */
export const declaredCost = ({ driver, binding }: Pick<Candidate, "driver" | "binding">): number | undefined =>
  binding.implementation.costUnitsPerCall ?? driver.contract.costUnitsPerCall

const currencyOf = ({ driver, binding }: Pick<Candidate, "driver" | "binding">): string =>
  binding.implementation.currency ?? driver.contract.currency ?? "USD"

/** The entry's word, then the driver's, then the contract's. */
const costClassOf = ({ driver, binding }: Pick<Candidate, "driver" | "binding">, tool: ToolContract): CostClass =>
  binding.implementation.costClass ?? driver.contract.costClass ?? tool.costClass

/** Units of different currencies are not compared: those of the one that all declare count, else those in USD. */
const reference = ({ drivers, tool }: ResolveInput): string => {
  const declared = drivers.flatMap((driver) =>
    driver.bindings
      .filter((binding) => binding.tool.id === tool.id && declaredCost({ driver, binding }) !== undefined)
      .map((binding) => currencyOf({ driver, binding })),
  )
  const [only = "USD", more] = [...new Set(declared)]
  return more === undefined ? only : "USD"
}

/** A cost that is not declared, or not comparable, is that of its class: nothing if `trivial`, else dearer than any declared. */
const costOf = (candidate: Candidate, input: ResolveInput): number => {
  const units = currencyOf(candidate) === reference(input) ? declaredCost(candidate) : undefined
  if (units !== undefined) return units
  const free = costClassOf(candidate, input.tool) === "trivial" && declaredCost(candidate) === undefined
  return free ? 0 : Number.POSITIVE_INFINITY
}

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

const costText = (candidate: Candidate, input: ResolveInput): string => {
  const cost = costOf(candidate, input)
  if (Number.isFinite(cost)) return `${cost}`
  const elsewhere = declaredCost(candidate)
  return elsewhere === undefined ? "an undeclared amount" : `${elsewhere} in ${currencyOf(candidate)}`
}

const criteria: readonly Criterion[] = [
  {
    compare: (a, b, { tool }) => order(Number(isDefault(b, tool)), Number(isDefault(a, tool))),
    text: () => "the contract names it as default",
  },
  {
    compare: (a, b, input) => order(costOf(a, input), costOf(b, input)),
    text: (winner, loser, input) => `it costs ${costText(winner, input)} a call, this one ${costText(loser, input)}`,
  },
  {
    compare: (a, b, { tool }) =>
      order(classOrder.indexOf(costClassOf(a, tool)), classOrder.indexOf(costClassOf(b, tool))),
    text: (winner, loser, { tool }) =>
      `its cost class is ${costClassOf(winner, tool)}, that of this one ${costClassOf(loser, tool)}`,
  },
  {
    compare: (a, b) => order(Number(b.driver.vouched), Number(a.driver.vouched)),
    text: () => "the operator vouches for it, and not for this one",
  },
  {
    compare: (a, b) =>
      order(kindOrder.indexOf(declaredKind(a.driver.contract)), kindOrder.indexOf(declaredKind(b.driver.contract))),
    text: (winner, loser) =>
      `kind ${declaredKind(winner.driver.contract)} comes before ${declaredKind(loser.driver.contract)}`,
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
