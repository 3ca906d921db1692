/**
 * Loaded manifests → one frozen registry: tools first, then drivers, then the binding (AIP-30 principle 9).
 *
 * Guarantees: never fails; a manifest that did not load is listed in `failed`, a driver that does not bind stays in
 * `drivers` with a refusal. `id@major` is the identity; what two folders claim is settled by `ownership.ts`, two claims
 * within one folder are both refused. Self-declared policy tags count as verified only where the operator vouches for the
 * folder or the driver (obligation 39).
 * Does not: read files; `registry.ts` does.
 */
import { buildCatalogue, contentOf, findAction } from "../../manifest/read/catalogue.ts"
import { shown } from "../../manifest/values/diagnostics.ts"
import { deepFreeze } from "../../manifest/values/freeze.ts"
import type {
  Diagnostic,
  DriverContract,
  GrantsPolicy,
  LoadResult,
  PolicyContract,
  SecretEntry,
  ToolContract,
} from "../../manifest/types.ts"
import { majorOf } from "../../manifest/schema/version.ts"
import { unevaluated } from "../access/policy.ts"
import { checkExecuteKeys } from "../../manifest/contracts/binding.ts"
import { bindDriver, type CheckEntry, refusalOf } from "./bind.ts"
import { type Ceiling, contractAbove, driverAbove } from "./ceiling.ts"
import { changedNarrowing, narrowingKey, narrowingsOf } from "./narrowing.ts"
import { settleOwnership } from "./ownership.ts"
import { actionReach, driverReach, type Reach, toolReach } from "./reach.ts"
import { type Widening, widenings } from "./widening.ts"
import type { FailedManifest, Narrowings, Refusal, RegisteredDriver, RegisteredReach, Registry } from "./types.ts"

/** In the operator's order of folders. */
export interface LoadedManifest {
  readonly result: LoadResult
  /** the operator vouches for what the drivers of its folder say of themselves */
  readonly trusted: boolean
  /** which folder it came from: of two claims in one, neither holds. Absent: each by itself, the earlier one holds */
  readonly folder?: string
  /** the program that embeds this host handed it over */
  readonly given?: true
}

export interface SnapshotOptions {
  /** policy tags the operator verified, by driver `id` or `id@major` */
  readonly verifiedTags?: Readonly<Record<string, readonly string[]>>
  /** what drivers narrowed when they were registered last: a change needs a new major (obligation 33) */
  readonly known?: Narrowings
  /** how far each key reached when it was first registered: to reach further needs a new major */
  readonly first?: ReadonlyMap<string, Reach>
  /** what the operator lets nothing go beyond */
  readonly ceiling?: Ceiling
  readonly check?: CheckEntry
  /** what was said before anything was read */
  readonly said?: readonly Diagnostic[]
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

const widenedNote = (file: string, key: string, before: Reach, now: Reach, wider: Widening): Diagnostic => ({
  severity: "error",
  rule: "widened-without-major",
  file,
  path: wider.path,
  message: `${key} was registered first as ${before.version}, and as ${now.version} reaches further: \`${shown(wider.example)}\` passes now (before: ${shown(wider.before, 200)}; now: ${shown(wider.now, 200)})`,
  fix: `raise its version to ${Number(before.version.split(".")[0]) + 1}.0.0, or take it back`,
})

/** What each kind is remembered by, and what is held against it. */
class Reaches {
  readonly #first: ReadonlyMap<string, Reach>
  readonly #vouched: ReadonlySet<string>
  readonly #all: RegisteredReach[] = []
  constructor(first: ReadonlyMap<string, Reach> | undefined, vouched: ReadonlySet<string>) {
    this.#first = first ?? new Map<string, Reach>()
    this.#vouched = vouched
  }
  get all(): readonly RegisteredReach[] {
    return this.#all
  }
  /** Why it reaches further than it may; where it does not, it is remembered. */
  take(kind: string, name: string, { file }: { readonly file: string }, reach: Reach): readonly Diagnostic[] {
    const vouched = this.#vouched.has(file)
    // One that nobody vouches for is remembered by its file, so that it cannot hold another one to what it did.
    const key = vouched ? `${kind} ${name}` : `${kind} ${name} ${file}`
    const before = this.#first.get(key)
    const wider = before === undefined ? [] : widenings(before, reach)
    if (before === undefined || wider.length === 0) this.#all.push({ key, vouched, reach })
    return before === undefined ? [] : wider.map((each) => widenedNote(file, `${kind} ${name}`, before, reach, each))
  }
}

/** An action that fell below its own floors is not there for any tool. */
const heldActions = (results: readonly LoadResult[], reaches: Reaches, ceiling: Ceiling): readonly LoadResult[] =>
  results.map((result) => {
    if (!result.ok || result.manifest.kind !== "action") return result
    const { id, version, source } = result.manifest
    const above = contractAbove(result.manifest, ceiling)
    const wider =
      above.length > 0
        ? above
        : reaches.take("action", `${id}@${majorOf(version)}`, source, actionReach(result.manifest))
    if (wider.length === 0) return result
    const diagnostics = [...result.diagnostics, ...wider]
    return { ok: false, file: source.file, kind: "action", diagnostics, claims: { id, tools: [] } }
  })

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
  { tools, secrets }: { readonly tools: readonly ToolContract[]; readonly secrets: readonly SecretEntry[] },
  options: SnapshotOptions,
  reaches: Reaches,
  diagnostics: Diagnostic[],
): RegisteredDriver => {
  const key = keyOf(contract)
  const { verifiedTags: verified = {} } = options
  const tags = [contract.id, key].flatMap((ref) => (Object.hasOwn(verified, ref) ? (verified[ref] ?? []) : []))
  const verifiedTags = vouched ? contract.policyTags : contract.policyTags.filter((tag) => tags.includes(tag))
  const bound = bindDriver(contract, tools, options.check)
  const changed = narrowingRefusal(contract, vouched, options.known)
  const unbound = executeRefusal(contract)
  const fault = bound.refusal ?? unbound?.refusal ?? (changed === undefined ? undefined : refusalOf([changed]))
  const above = driverAbove(contract, options.ceiling ?? {}, secrets)
  const isFree = fault === undefined && above.length === 0
  const wider = isFree ? reaches.take("driver", key, contract.source, driverReach(contract)) : above
  diagnostics.push(
    ...bound.diagnostics,
    ...(unbound === undefined ? [] : [unbound.said]),
    ...(changed === undefined ? [] : [changed]),
    ...wider,
  )
  const refusal = fault ?? refusalOf(wider)
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

/** Policies that the operator vouches for and that hold nobody to anything: broken, or claimed by two files at once. */
const lostAmong = (loaded: readonly LoadedManifest[], held: readonly PolicyContract[]): readonly string[] => {
  const contents = new Set(held.map(contentOf))
  return loaded.flatMap(({ result, trusted }) => {
    if (!trusted) return []
    if (!result.ok) return result.kind === "policy" ? [result.file] : []
    const { manifest } = result
    return manifest.kind === "policy" && !contents.has(contentOf(manifest)) ? [manifest.source.file] : []
  })
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
  const settled = settleOwnership(loaded)
  const { owns } = settled
  const trusted = loaded.flatMap(({ result, trusted: by }) => (by && result.ok ? [result.manifest.source.file] : []))
  const reaches = new Reaches(options.first, new Set(trusted))
  const results = heldActions(settled.results, reaches, options.ceiling ?? {})
  const catalogue = buildCatalogue(results, owns)
  const diagnostics: Diagnostic[] = [...(options.said ?? []), ...catalogue.diagnostics]
  const tools = catalogue.tools.toSorted(inOrder).filter((tool) => {
    const above = contractAbove(tool, options.ceiling ?? {})
    const wider = above.length > 0 ? above : reaches.take("tool", keyOf(tool), tool.source, toolReach(tool))
    diagnostics.push(...wider)
    return wider.length === 0
  })
  const said = [...diagnostics]
  const failed = results.flatMap((result) => failedOf(result, said))
  const vouchedFor = new Set<unknown>(
    loaded.flatMap(({ result, trusted }): readonly unknown[] => {
      if (!trusted || !result.ok) return []
      return result.manifest.kind === "secrets" ? result.manifest.secrets : [result.manifest]
    }),
  )
  const given = new Set<unknown>(
    loaded.flatMap(({ result, given: isGiven }) => (isGiven === true && result.ok ? [result.manifest] : [])),
  )
  const grants = catalogue.policies.filter((policy): policy is GrantsPolicy => policy.dialect === "grants")
  diagnostics.push(...grants.flatMap((policy) => grantsNotes(policy, vouchedFor.has(policy))))
  const drivers = catalogue.drivers.toSorted(inOrder).map((contract): RegisteredDriver => {
    const among = { tools, secrets: catalogue.secrets }
    const made = register(contract, vouchedFor.has(contract), owns(contract), among, options, reaches, diagnostics)
    return given.has(contract) ? Object.freeze({ ...made, given: true }) : made
  })
  const vouchedPolicies = catalogue.policies.filter((policy) => vouchedFor.has(policy))
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
    vouchedSecrets: Object.freeze(catalogue.secrets.filter((entry) => vouchedFor.has(entry))),
    actions: catalogue.actions,
    policies: catalogue.policies,
    vouchedPolicies: Object.freeze(vouchedPolicies),
    lostPolicies: Object.freeze(lostAmong(loaded, vouchedPolicies)),
    failed: deepFreeze(failed),
    diagnostics: deepFreeze(diagnostics),
    narrowings: deepFreeze(narrowingsOf(drivers)),
    reaches: deepFreeze(reaches.all),
    tool: (ref: string) => toolsNamed(ref)[0],
    toolsNamed,
    driver: (ref: string) => driversNamed(ref)[0],
    action: (ref: string) => findAction(ref, catalogue.actions, owns),
    driversFor: (tool: ToolContract) =>
      drivers.filter((driver) => driver.contract.implements.some((entry) => entry.tool === tool.id)),
  })
}
