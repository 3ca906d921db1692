/**
 * What each driver narrows, and whether a re-registration keeps to its major (obligation 33). Pure.
 *
 * Guarantees: a driver that is known under the same `id@major` and now drops other inputs or outputs of a tool is
 * reported; a tool that it newly implements or gives up is no change of narrowing. The record is plain JSON, for the
 * host to keep between runs.
 */
import type { DriverContract } from "../../manifest/types.ts"
import type { Narrowings, RegisteredDriver } from "./types.ts"

const joined = (one: readonly string[] = [], more: readonly string[] = []): readonly string[] =>
  [...new Set([...one, ...more])].toSorted()

const narrowingOf = (driver: DriverContract): Narrowings[string] => {
  const byTool = new Map<string, Narrowings[string][string]>()
  for (const { tool, dropInputs, dropOutputs } of driver.implements) {
    const before = byTool.get(tool)
    byTool.set(tool, { inputs: joined(before?.inputs, dropInputs), outputs: joined(before?.outputs, dropOutputs) })
  }
  return Object.fromEntries(byTool)
}

/** A driver that nobody vouches for is remembered by its file, so that it cannot hold another one to what it did. */
export const narrowingKey = (contract: DriverContract, vouched: boolean): string => {
  const key = `${contract.id}@${contract.major}`
  return vouched ? key : `${key} ${contract.source.file}`
}

export const narrowingsOf = (drivers: readonly RegisteredDriver[]): Narrowings =>
  Object.fromEntries(
    drivers
      .filter((driver) => driver.refusal === undefined)
      .map((driver) => [narrowingKey(driver.contract, driver.vouched), narrowingOf(driver.contract)]),
  )

/** The first tool whose narrowing differs from the one known for the same major. */
export const changedNarrowing = (key: string, driver: DriverContract, known: Narrowings): string | undefined => {
  const before = Object.hasOwn(known, key) ? known[key] : undefined
  if (before === undefined) return undefined
  const changed = Object.entries(narrowingOf(driver)).find(([tool, now]) => {
    const then = Object.hasOwn(before, tool) ? before[tool] : undefined
    const text = (each: typeof now): string => JSON.stringify([each.inputs, each.outputs])
    return then !== undefined && text(then) !== text(now)
  })
  return changed?.[0]
}
