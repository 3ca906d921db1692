/**
 * How far a tool, a driver or an action reaches, as plain JSON: what a later version of the same major is held to. Pure.
 *
 * Guarantees: everything that lets a call do more, or asks less before it, is a part here, each with the order that says
 * what is wider; what a driver narrows for one tool is a part of that tool. What is not a question of reach (texts,
 * schemas, costs, versions of packages) is none.
 */
import { identityOf, reachFor, startedWith } from "../drivers/kind-reach.ts"
import type { ActionContract, DriverContract, Implementation, ToolContract } from "../../manifest/types.ts"

/** A value, and the order in which it widens. */
export type Part =
  /** grows with each name */
  | { readonly as: "names"; readonly of: readonly string[] }
  /** shrinks with each name: denials, obligations */
  | { readonly as: "bounds"; readonly of: readonly string[] }
  /** hosts, as egress entries; `any`: not bounded here */
  | { readonly as: "hosts"; readonly of: readonly string[] | "any" }
  /** paths, as globs of a sandbox */
  | { readonly as: "paths"; readonly of: readonly string[] }
  /** effects, as `class:scope` */
  | { readonly as: "effects"; readonly of: readonly string[] }
  /** a limit; absent: none */
  | { readonly as: "most"; readonly of?: number }
  /** a floor: risk, the rank of an approval */
  | { readonly as: "least"; readonly of: number; readonly text: string }
  /** what is there in one major stays */
  | { readonly as: "same"; readonly of: string }

export interface Reach {
  readonly version: string
  readonly digest: string
  /** by the path of the field */
  readonly parts: Readonly<Record<string, Part>>
}

const KINDS = ["cli", "http", "mcp", "sdk", "builtin"]
const RANK = { auto: 0, "on-mutate": 1, policy: 1, always: 2 } as const

const names = (of: readonly string[]): Part => ({ as: "names", of: [...of].sort() })
const bounds = (of: readonly string[]): Part => ({ as: "bounds", of: [...of].sort() })
const paths = (of: readonly string[]): Part => ({ as: "paths", of })
const most = (of: number | undefined): Part => (of === undefined ? { as: "most" } : { as: "most", of })
const least = (of: number, text = String(of)): Part => ({ as: "least", of, text })
const same = (of: unknown): Part => ({ as: "same", of: JSON.stringify(of) })

const approval = ({ approval: given }: Pick<ToolContract, "approval">): Part =>
  given.class === "policy"
    ? // Another policy is another question.
      { as: "bounds", of: [`policy:${given.ref}`] }
    : least(RANK[given.class], given.class)

const hosts = (given: readonly string[] | undefined): Part => ({
  as: "hosts",
  of: given === undefined || given.includes("*") ? "any" : given,
})

const fromParts = (
  each: { readonly version: string; readonly source: { readonly digest: string } },
  parts: Reach["parts"],
): Reach => ({
  version: each.version,
  digest: each.source.digest,
  parts,
})

export const toolReach = (tool: ToolContract): Reach => {
  const { requires, driverConstraints: kinds } = tool
  return fromParts(tool, {
    mutates: { as: "effects", of: tool.mutates.map((each) => each.text) },
    "requires.network": hosts(requires.network),
    "requires.secrets": names(requires.secrets),
    "requires.tools": names(requires.tools),
    approval: approval(tool),
    risk_level: least(tool.riskLevel),
    timeout_ms: most(tool.timeoutMs),
    "retry.max_attempts": most(tool.retry?.maxAttempts ?? 1),
    idempotent: names(tool.idempotent ? ["true"] : []),
    "driver_constraints.forbid": bounds(kinds.forbid),
    "driver_constraints.require_kind": names(kinds.requireKind.length === 0 ? KINDS : kinds.requireKind),
    inputsFiles: names(Object.values(tool.inputsFiles ?? {}).map((file) => file.path)),
    outputsFiles: names(Object.values(tool.outputsFiles ?? {}).map((file) => file.path)),
  })
}

/** What a call of one tool gets, the driver's own narrowing of it counted. */
const entryParts = (driver: DriverContract, entry: Implementation): Reach["parts"] => {
  const at = `implements[${entry.tool}]`
  const { egress: to, sandbox } = reachFor(driver, entry)
  const egress: Part = { as: "hosts", of: to }
  const timeout = { [`${at}.timeout_override_ms`]: most(entry.timeoutMs ?? driver.timeoutMs) }
  if (sandbox === undefined) return { [`${at}.network.egress`]: egress, ...timeout }
  const { fs, exec, env } = sandbox
  return {
    [`${at}.network.egress`]: egress,
    ...timeout,
    [`${at}.sandbox.fs.read`]: paths([...fs.read, ...fs.write]),
    [`${at}.sandbox.fs.write`]: paths(fs.write),
    [`${at}.sandbox.fs.deny`]: bounds(fs.deny),
    [`${at}.sandbox.exec.allow`]: names(exec.allow ? ["true"] : []),
    [`${at}.sandbox.exec.spawn`]: names(exec.allow ? exec.spawn : []),
    [`${at}.sandbox.env.pass`]: names(env.pass),
  }
}

export const driverReach = (driver: DriverContract): Reach => {
  const { auth, limits, egressBudget: budget, runner } = driver
  return fromParts(driver, {
    kind: same(identityOf(driver)),
    "network.egress": { as: "hosts", of: driver.egress.map((each) => each.text) },
    region: names(driver.region),
    policy_tags: names(driver.policyTags),
    "auth.ref": names(auth?.ref === undefined ? [] : [auth.ref]),
    "auth.state.env": names(auth?.state.env ?? []),
    "auth.state.paths": paths(auth?.state.paths ?? []),
    "runner.limits.memory_mb": most(limits.memoryMb),
    "runner.limits.cpu_ms": most(limits.cpuMs),
    "runner.limits.timeout_ms": most(limits.timeoutMs),
    "metadata.limits.disk_mb": most(limits.diskMb),
    "metadata.limits.pids": most(limits.pids),
    "metadata.limits.output_bytes": most(limits.outputBytes),
    "metadata.egress_budget.bytes_out": most(budget?.bytesOut),
    "metadata.egress_budget.bytes_in": most(budget?.bytesIn),
    "metadata.egress_budget.requests": most(budget?.requests),
    "metadata.egress_budget.connections": most(budget?.connections),
    "metadata.egress_budget.distinct_names": most(budget?.distinctNames),
    "runner.needs.native": names(runner?.form === "inline" ? runner.needs.native : []),
    ...Object.fromEntries(Object.entries(startedWith(driver)).map(([path, of]) => [path, same(of)])),
    ...Object.assign({}, ...driver.implements.map((entry) => entryParts(driver, entry))),
  })
}

/** Tools were checked against its floors: none may fall, and what they could not know of needs a new major. */
export const actionReach = (action: ActionContract): Reach =>
  fromParts(action, {
    mutates: same(action.mutates.map((each) => each.text).sort()),
    risk_level: same(action.riskLevel),
    approval: approval(action),
    "requires.network": bounds(action.requires.network ?? []),
    "requires.secrets": bounds(action.requires.secrets),
    "requires.tools": bounds(action.requires.tools),
    fires_events: bounds(action.firesEvents),
  })
