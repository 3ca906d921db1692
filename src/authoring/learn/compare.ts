/**
 * What runs of a tool needed, beside what its contract and driver allow: what is missing, and what was never used.
 *
 * Guarantees: pure. What is missing (widening) and what was not used (narrowing) are told apart, and neither is applied.
 */
import { globCovers } from "../../manifest/values/sandbox-globs.ts"
import type { Needs } from "./propose.ts"

/** What is declared now. */
export interface Declared {
  /** the contract's `workspace:` scopes and the driver's `fs.write`, relative to the workspace */
  readonly mutates: readonly string[]
  readonly write: readonly string[]
  readonly read: readonly string[]
  readonly egress: readonly string[]
  readonly spawn: readonly string[]
}

export type Field = "mutates" | "fs.write" | "fs.read" | "network.egress" | "exec.spawn"

export interface Change {
  readonly field: Field
  readonly value: string
  /** what showed it; of what was never used, the runs that did not */
  readonly receipts: readonly string[]
}

export interface Comparison {
  readonly widening: readonly Change[]
  readonly narrowing: readonly Change[]
}

/** `HOST` covers its two ports; `*.HOST` the names below it. */
const hostCovers = (wide: string, narrow: string): boolean => {
  const [name = "", port] = wide.replace(/^tcp:\/\//, "").split(/:(?=\d+$)/)
  const [host = "", at] = narrow.split(/:(?=\d+$)/)
  const isNamed = name.startsWith("*.") ? host.endsWith(name.slice(1)) : host === name
  return isNamed && (port === undefined ? at === "443" || at === "80" : port === at)
}

interface Used {
  readonly value: string
  readonly receipts: readonly string[]
}

const against = (
  field: Field,
  declared: readonly string[],
  used: readonly Used[],
  covers: (wide: string, narrow: string) => boolean,
  runs: readonly string[],
): Comparison => ({
  widening: used
    .filter(({ value }) => !declared.some((wide) => covers(wide, value)))
    .map(({ value, receipts }) => ({ field, value, receipts })),
  narrowing: declared
    .filter((wide) => !used.some(({ value }) => covers(wide, value)))
    .map((value) => ({ field, value, receipts: runs })),
})

const equal = (a: string, b: string): boolean => a === b

export const compare = (declared: Declared, { write, read, hosts, spawn, receipts }: Needs): Comparison => {
  const globs = (list: Needs["write"]): readonly Used[] =>
    list.map(({ glob, receipts: seen }) => ({ value: glob, receipts: seen }))
  const parts = [
    against("mutates", declared.mutates, globs(write), globCovers, receipts),
    against("fs.write", declared.write, globs(write), globCovers, receipts),
    ...(read === undefined ? [] : [against("fs.read", declared.read, globs(read), globCovers, receipts)]),
    against("network.egress", declared.egress, hosts, hostCovers, receipts),
    against("exec.spawn", declared.spawn, spawn, equal, receipts),
  ]
  return {
    widening: parts.flatMap(({ widening }) => widening),
    narrowing: parts.flatMap(({ narrowing }) => narrowing),
  }
}
