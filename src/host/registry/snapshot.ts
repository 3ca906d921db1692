/**
 * Loaded manifests → one frozen registry: tools first, then drivers, then the binding (AIP-30 principle 9).
 *
 * Guarantees: never fails; a manifest that did not load is listed in `failed`, a driver that does not bind stays in
 * `drivers` with a refusal. `id@major` is the identity: a folder named earlier keeps what it declares, so that a later
 * one can neither take over nor knock out a known tool; two claims within one folder are both refused. Self-declared
 * policy tags count as verified only where the operator vouches for the folder or the driver (obligation 39).
 * Does not: read files; `registry.ts` does.
 */
import { buildCatalogue } from "../../manifest/catalogue.ts"
import { deepFreeze } from "../../manifest/freeze.ts"
import type { Diagnostic, DriverContract, LoadResult, Manifest, ToolContract } from "../../manifest/types.ts"
import { bindDriver, type CheckEntry, refusalOf } from "./bind.ts"
import { changedNarrowing, narrowingsOf } from "./narrowing.ts"
import type { FailedManifest, Narrowings, RegisteredDriver, Registry } from "./types.ts"

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

/** Secrets are claimed slug by slug, within the catalogue. */
const claimOf = (manifest: Manifest): string | undefined => {
  if (manifest.kind === "secrets") return undefined
  if (manifest.kind === "policy") return `policy ${manifest.dialect}:${manifest.id}`
  const major = manifest.kind === "action" ? Number.parseInt(manifest.version, 10) : manifest.major
  return `${manifest.kind} ${manifest.id}@${major}`
}

const alreadyHeld = (manifest: Manifest, claim: string, holder: Manifest): LoadResult => {
  const diagnostic: Diagnostic = {
    severity: "error",
    rule: "duplicate-id",
    file: manifest.source.file,
    path: "id",
    message: `${claim} is already registered from ${holder.source.file}, in a folder named earlier, with other content`,
    fix: "give it another id or major version, or name its folder first",
  }
  const { file } = manifest.source
  const id = "id" in manifest ? { id: manifest.id } : {}
  const tools = manifest.kind === "driver" ? manifest.implements.map((entry) => entry.tool) : []
  return { ok: false, file, kind: manifest.kind, diagnostics: [diagnostic], claims: { ...id, tools } }
}

/** All results, without what an earlier folder already declares otherwise. */
const byPrecedence = (loaded: readonly LoadedManifest[]): readonly LoadResult[] => {
  const held = new Map<string, { readonly manifest: Manifest; readonly folder: string | undefined }>()
  return loaded.map(({ result, folder }) => {
    const claim = result.ok ? claimOf(result.manifest) : undefined
    if (!result.ok || claim === undefined) return result
    const holder = held.get(claim)
    if (holder === undefined) held.set(claim, { manifest: result.manifest, folder })
    const sameFolder = folder !== undefined && holder?.folder === folder
    const equal = holder === undefined || holder.manifest.source.digest === result.manifest.source.digest
    return sameFolder || equal ? result : alreadyHeld(result.manifest, claim, holder.manifest)
  })
}

const narrowingRefusal = (contract: DriverContract, known: Narrowings = {}): Diagnostic | undefined => {
  const changed = changedNarrowing(keyOf(contract), contract, known)
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

const register = (
  contract: DriverContract,
  trusted: boolean,
  tools: readonly ToolContract[],
  options: SnapshotOptions,
  diagnostics: Diagnostic[],
): RegisteredDriver => {
  const key = keyOf(contract)
  const { verifiedTags: vouched = {} } = options
  const tags = [contract.id, key].flatMap((ref) => (Object.hasOwn(vouched, ref) ? (vouched[ref] ?? []) : []))
  const verifiedTags = trusted ? contract.policyTags : contract.policyTags.filter((tag) => tags.includes(tag))
  const bound = bindDriver(contract, tools, options.check)
  const changed = narrowingRefusal(contract, options.known)
  diagnostics.push(...bound.diagnostics, ...(changed === undefined ? [] : [changed]))
  const refusal = bound.refusal ?? (changed === undefined ? undefined : refusalOf([changed]))
  const bindings = refusal === undefined ? bound.bindings : []
  return Object.freeze({ key, contract, verifiedTags, bindings, ...(refusal === undefined ? {} : { refusal }) })
}

type Identified = { readonly id: string; readonly major: number }
const inOrder = (a: Identified, b: Identified): number => (a.id < b.id ? -1 : a.id > b.id ? 1 : a.major - b.major)

/** `id` (the highest major) or `id@major`. */
const finder =
  <R>(all: readonly R[], contract: (each: R) => Identified) =>
  (ref: string): R | undefined =>
    all.find((each) => keyOf(contract(each)) === ref) ?? all.findLast((each) => contract(each).id === ref)

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
  const results = byPrecedence(loaded)
  const catalogue = buildCatalogue(results)
  const diagnostics: Diagnostic[] = [...catalogue.diagnostics]
  const failed = results.flatMap((result) => failedOf(result, catalogue.diagnostics))
  const vouchedFor = new Set(loaded.flatMap(({ result, trusted }) => (trusted && result.ok ? [result.manifest] : [])))
  const tools = catalogue.tools.toSorted(inOrder)
  const drivers = catalogue.drivers
    .toSorted(inOrder)
    .map((contract) => register(contract, vouchedFor.has(contract), tools, options, diagnostics))
  return Object.freeze({
    tools: Object.freeze(tools),
    drivers: Object.freeze(drivers),
    secrets: catalogue.secrets,
    actions: catalogue.actions,
    policies: catalogue.policies,
    failed: deepFreeze(failed),
    diagnostics: deepFreeze(diagnostics),
    narrowings: deepFreeze(narrowingsOf(drivers)),
    tool: finder(tools, (each) => each),
    driver: finder(drivers, (each) => each.contract),
    driversFor: (tool: ToolContract) =>
      drivers.filter((driver) => driver.contract.implements.some((entry) => entry.tool === tool.id)),
  })
}
