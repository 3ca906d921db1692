/**
 * Loaded manifests → one frozen registry: tools first, then drivers, then the binding (AIP-30 principle 9).
 *
 * Guarantees: never fails; a manifest that did not load is listed in `failed`, a driver that does not bind stays in
 * `drivers` with a refusal. `id@major` is the identity; what two folders claim is settled by `ownership.ts`, two claims
 * within one folder are both refused. Self-declared policy tags count as verified only where the operator vouches for the folder or the driver (obligation 39).
 * Does not: read files; `registry.ts` does.
 */
import { buildCatalogue, findAction } from "../../manifest/read/catalogue.ts"
import { shown } from "../../manifest/values/diagnostics.ts"
import { deepFreeze } from "../../manifest/values/freeze.ts"
import type { Diagnostic, DriverContract, GrantsPolicy, LoadResult, ToolContract } from "../../manifest/types.ts"
import { unevaluated } from "../access/policy.ts"
import { checkExecuteKeys } from "../../manifest/contracts/binding.ts"
import { bindDriver, type CheckEntry, refusalOf } from "./bind.ts"
import { changedNarrowing, narrowingKey, narrowingsOf } from "./narrowing.ts"
import { settleOwnership } from "./ownership.ts"
import type { FailedManifest, Narrowings, Refusal, RegisteredDriver, Registry } from "./types.ts"

/** In the operator's order of folders. */
export interface LoadedManifest {
  readonly result: LoadResult
  /** the operator vouches for what the drivers of its folder say of themselves */
  readonly trusted: boolean
  /** which folder it came from: of two claims in one, neither holds. Absent: each by itself, the earlier one holds */
  readonly folder?: string
}

export interface SnapshotOptions {
  /** policy tags the operator verified, by driver `id` or `id@major` */
  readonly verifiedTags?: Readonly<Record<string, readonly string[]>>
  /** what drivers narrowed when they were registered last: a change needs a new major (obligation 33) */
  readonly known?: Narrowings
  readonly check?: CheckEntry
}

const keyOf = (contract: { readonly id: string; readonly major: number }): string => `${contract.id}@${contract.major}`

const narrowingRefusal = (
  contract: DriverContract,
  vouched: boolean,
  known: Narrowings = {},
): Diagnostic | undefined => {
  const changed = changedNarrowing(narrowingKey(contract, vouched), contract, known)
  if (changed === undefined) return undefined
  return {
    severity: "error",
    rule: "narrowing-needs-major",
    file: contract.source.file,
    path: "version",
    message: `it narrows \`${changed}\` otherwise than when ${keyOf(contract)} was registered`,
    fix: `raise the driver's version to ${contract.major + 1}.0.0, or restore its \`schema_narrowing\``,
  }
}

/** A driver with functions of its own has one for each tool it implements, and no other (AIP-30 rule 3). */
const executeRefusal = (
  contract: DriverContract,
): { readonly refusal: Refusal; readonly said: Diagnostic } | undefined => {
  const keys = contract.code?.execute
  const [first] = keys === undefined ? [] : checkExecuteKeys(contract, keys)
  if (first === undefined) return undefined
  const reason =
    first.missing === "execute"
      ? `it implements \`${first.tool}\` and has no function for it in \`execute\``
      : `\`execute\` has a function for \`${shown(first.tool)}\`, which it does not implement`
  const fix = "make the keys of `execute` equal to the tools in `implements`"
  return {
    refusal: { code: "execute_binding_mismatch", reason, fix },
    said: {
      severity: "error",
      rule: "execute_binding_mismatch",
      file: contract.source.file,
      path: "execute",
      message: reason,
      fix,
    },
  }
}

const register = (
  contract: DriverContract,
  vouched: boolean,
  ownsId: boolean,
  tools: readonly ToolContract[],
  options: SnapshotOptions,
  diagnostics: Diagnostic[],
): RegisteredDriver => {
  const key = keyOf(contract)
  const { verifiedTags: verified = {} } = options
  const tags = [contract.id, key].flatMap((ref) => (Object.hasOwn(verified, ref) ? (verified[ref] ?? []) : []))
  const verifiedTags = vouched ? contract.policyTags : contract.policyTags.filter((tag) => tags.includes(tag))
  const bound = bindDriver(contract, tools, options.check)
  const changed = narrowingRefusal(contract, vouched, options.known)
  const unbound = executeRefusal(contract)
  diagnostics.push(
    ...bound.diagnostics,
    ...(unbound === undefined ? [] : [unbound.said]),
    ...(changed === undefined ? [] : [changed]),
  )
  const refusal = bound.refusal ?? unbound?.refusal ?? (changed === undefined ? undefined : refusalOf([changed]))
  const bindings = refusal === undefined ? bound.bindings : []
  return Object.freeze({
    key,
    contract,
    vouched,
    ownsId,
    verifiedTags,
    bindings,
    ...(refusal === undefined ? {} : { refusal }),
  })
}

/** Grants bind calls where the operator vouches for them; elsewhere that they do not is said by name. */
const grantsNotes = (policy: GrantsPolicy, vouched: boolean): readonly Diagnostic[] =>
  vouched
    ? unevaluated(policy)
    : [
        {
          severity: "warning",
          rule: "policy-not-enforced",
          file: policy.source.file,
          path: "schema",
          message: `grants (AIP-38) hold where the operator vouches for them; the policy ${policy.id} holds nobody back`,
          fix: "name its folder under `manifests` in caisson.yaml",
        },
      ]

type Identified = { readonly id: string; readonly major: number }
const inOrder = (a: Identified, b: Identified): number => (a.id < b.id ? -1 : a.id > b.id ? 1 : a.major - b.major)

/** `id@major`, or `id`: the majors of the folder that owns the id, the highest first. */
const finder =
  <R>(all: readonly R[], contract: (each: R) => Identified, owns: (each: R) => boolean) =>
  (ref: string): readonly R[] => {
    const exact = all.find((each) => keyOf(contract(each)) === ref)
    return exact === undefined ? all.filter((each) => contract(each).id === ref && owns(each)).toReversed() : [exact]
  }

/** A manifest that did not load, or that the checks across manifests refused. */
const failedOf = (result: LoadResult, all: readonly Diagnostic[]): readonly FailedManifest[] => {
  if (!result.ok) {
    const { file, kind, diagnostics, claims = { tools: [] } } = result
    return [{ file, kind, diagnostics, claims }]
  }
  const { manifest } = result
  if (manifest.kind !== "tool" && manifest.kind !== "driver") return []
  const { id, kind, source } = manifest
  const diagnostics = all.filter((one) => one.severity === "error" && one.file === source.file)
  const tools = kind === "driver" ? manifest.implements.map((entry) => entry.tool) : []
  return diagnostics.length === 0 ? [] : [{ file: source.file, kind, diagnostics, claims: { id, tools } }]
}

export const buildRegistry = (loaded: readonly LoadedManifest[], options: SnapshotOptions = {}): Registry => {
  const { results, owns } = settleOwnership(loaded)
  const catalogue = buildCatalogue(results, owns)
  const diagnostics: Diagnostic[] = [...catalogue.diagnostics]
  const failed = results.flatMap((result) => failedOf(result, catalogue.diagnostics))
  const vouchedFor = new Set<unknown>(
    loaded.flatMap(({ result, trusted }) => (trusted && result.ok ? [result.manifest] : [])),
  )
  const grants = catalogue.policies.filter((policy): policy is GrantsPolicy => policy.dialect === "grants")
  diagnostics.push(...grants.flatMap((policy) => grantsNotes(policy, vouchedFor.has(policy))))
  const tools = catalogue.tools.toSorted(inOrder)
  const drivers = catalogue.drivers
    .toSorted(inOrder)
    .map((contract) => register(contract, vouchedFor.has(contract), owns(contract), tools, options, diagnostics))
  const toolsNamed = finder(tools, (each) => each, owns)
  const driversNamed = finder(
    drivers,
    (each) => each.contract,
    (each) => each.ownsId,
  )
  return Object.freeze({
    tools: Object.freeze(tools),
    drivers: Object.freeze(drivers),
    secrets: catalogue.secrets,
    actions: catalogue.actions,
    policies: catalogue.policies,
    vouchedPolicies: Object.freeze(catalogue.policies.filter((policy) => vouchedFor.has(policy))),
    failed: deepFreeze(failed),
    diagnostics: deepFreeze(diagnostics),
    narrowings: deepFreeze(narrowingsOf(drivers)),
    tool: (ref: string) => toolsNamed(ref)[0],
    toolsNamed,
    driver: (ref: string) => driversNamed(ref)[0],
    action: (ref: string) => findAction(ref, catalogue.actions, owns),
    driversFor: (tool: ToolContract) =>
      drivers.filter((driver) => driver.contract.implements.some((entry) => entry.tool === tool.id)),
  })
}
