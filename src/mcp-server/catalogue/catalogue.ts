/**
 * What one caller's client sees of the catalogue: tools, prompts and resources, each under one name.
 *
 * Guarantees: pure. A name leads to one contract. An id is always its own contract's name; a name that a contract chose
 * is its own where it is nobody's id, no finder's, and no other contract chose it; else it goes by its id. So no contract
 * can pass for another, whatever it writes; nor by an address of a resource, which is nobody's where two choose it. Order
 * is that of the names, the same each time.
 */
import type { ToolListing } from "../../host/types.ts"
import type { ToolContract } from "../../manifest/types.ts"
import { finderNames } from "./finder-names.ts"
import { type Shown, shownOf } from "./shown.ts"

export interface Entry {
  readonly name: string
  readonly contract: ToolContract
  readonly shown: Shown
  readonly listing: ToolListing
}
export interface Catalogue {
  readonly tools: ReadonlyMap<string, Entry>
  readonly prompts: ReadonlyMap<string, Entry>
  /** by address, or pattern of addresses */
  readonly resources: ReadonlyMap<string, Entry>
}

/** By id; of several majors the highest, which is what the id alone means. */
const newest = (listings: readonly ToolListing[]): ReadonlyMap<string, ToolListing> => {
  const of = new Map<string, ToolListing>()
  for (const listing of listings) {
    const { id, major } = listing.contract
    if ((of.get(id)?.contract.major ?? -1) < major) of.set(id, listing)
  }
  return of
}

const read = new WeakMap<ToolContract, Shown>()
/** Contracts are frozen: what one says is read once. */
const shownIn = (contract: ToolContract): Shown => {
  const known = read.get(contract)
  if (known !== undefined) return known
  const shown = shownOf(contract)
  read.set(contract, shown)
  return shown
}

const byName = (entries: readonly Entry[], keyOf: (entry: Entry) => string): ReadonlyMap<string, Entry> => {
  const sorted = entries.map((entry) => [keyOf(entry), entry] as const)
  sorted.sort(([one, a], [other, b]) =>
    one === other ? (a.contract.id < b.contract.id ? -1 : 1) : one < other ? -1 : 1,
  )
  const of = new Map<string, Entry>()
  for (const [key, entry] of sorted) if (!of.has(key)) of.set(key, entry)
  return of
}

export const catalogueOf = (listings: readonly ToolListing[], tags?: readonly string[]): Catalogue => {
  const all = newest(listings)
  const chosen = new Map<string, number>()
  const claimed = new Map<string, number>()
  for (const { contract } of all.values()) {
    const { name, uri } = shownIn(contract)
    if (name !== undefined) chosen.set(name, (chosen.get(name) ?? 0) + 1)
    if (uri !== undefined) claimed.set(uri, (claimed.get(uri) ?? 0) + 1)
  }
  /** An address that two contracts choose is neither's: they go as the tools that they are. */
  const asIs = (shown: Shown): Shown =>
    shown.uri !== undefined && claimed.get(shown.uri) !== 1 ? { ...shown, as: "tool" } : shown
  const nameOf = (contract: ToolContract): string => {
    const { name } = shownIn(contract)
    if (name === undefined || finderNames.includes(name) || chosen.get(name) !== 1) return contract.id
    return all.has(name) && name !== contract.id ? contract.id : name
  }
  const entries = [...all.values()]
    .filter(({ contract }) => tags === undefined || contract.tags.some((tag) => tags.includes(tag)))
    .map((listing): Entry => {
      const { contract } = listing
      return { name: nameOf(contract), contract, shown: asIs(shownIn(contract)), listing }
    })
  const those = (as: Shown["as"]): readonly Entry[] => entries.filter(({ shown }) => shown.as === as)
  return {
    tools: byName(those("tool"), ({ name }) => name),
    prompts: byName(those("prompt"), ({ name }) => name),
    resources: byName(those("resource"), ({ shown }) => shown.uri ?? ""),
  }
}

const isWaiting = (code: string): boolean => code === "auth_required" || code === "setup_required"
/** What can be served now: a tool whose drivers are all away would only fail. */
export const canServe = ({ listing: { availability } }: Entry): boolean =>
  availability.available || isWaiting(availability.code)

/** What can be called there: without a workspace nothing that changes files. */
export const canServeIn =
  (workspace: string | undefined) =>
  (entry: Entry): boolean =>
    canServe(entry) && (workspace !== undefined || entry.contract.mutates.every((scope) => scope.class !== "workspace"))
