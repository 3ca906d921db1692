/**
 * Phases 1 to 3 of routing, for one driver at a time: may it serve this call at all?
 *
 * Guarantees: pure; a driver passes only on evidence. Missing availability is unavailable, a missing login is none, an
 * undeclared region satisfies no constraint (C-22), an unvouched tag satisfies no allow list.
 * Does not: compare drivers; `rank.ts` does.
 */
import { declaredKind } from "../../manifest/kinds/body.ts"
import type { JsonObject } from "../../manifest/types.ts"
import type { Binding } from "../drivers/kind.ts"
import type { RegisteredDriver } from "../registry/types.ts"
import type { RoutePhase } from "../types.ts"
import { mapInput, withOwnDefaults } from "../invoke/mapping.ts"
import { missingValues } from "./needs.ts"
import type { Rejection, ResolveInput } from "./types.ts"

export interface Candidate {
  readonly driver: RegisteredDriver
  readonly binding: Binding
  readonly mappedInput: JsonObject
}
export interface Dropped {
  readonly driver: RegisteredDriver
  readonly rejection: Rejection
  /** phase 1: the inputs that the driver does not take, or that it cannot do without */
  readonly fields?: readonly string[]
  /** phase 2 for login or set-up alone: it would serve the call once a person has acted (C-19) */
  readonly waiting?: Candidate
}
type Judged = { readonly alive: true; readonly candidate: Candidate } | ({ readonly alive: false } & Dropped)

const defaultHealthWindowMs = 300_000

type Drop = { readonly code: string; readonly reason: string; readonly fix?: string }

const dropped = (driver: RegisteredDriver, phase: RoutePhase, drop: Drop, more: Partial<Dropped> = {}): Judged => ({
  alive: false,
  driver,
  rejection: { driver: driver.key, phase, ...drop },
  ...more,
})

export const namesTool = (driver: RegisteredDriver, toolId: string): boolean =>
  driver.contract.implements.some((entry) => entry.tool === toolId)

const usedInputs = ({ call }: ResolveInput): readonly string[] =>
  call.sentKeys ?? Object.keys(call.input).filter((key) => call.input[key] !== undefined)

const list = (words: readonly string[]): string => words.map((word) => `\`${word}\``).join(", ")

/** Phase 1: it implements this contract, its kind is allowed, and it takes every input that the call uses. */
const asCandidate = (driver: RegisteredDriver, input: ResolveInput): Candidate | Unfit => {
  const { tool } = input
  const { contract, refusal } = driver
  if (refusal !== undefined) return { drop: refusal }
  if (contract.unusable !== undefined) return { drop: { code: "tool_unavailable", reason: contract.unusable } }
  const bindings = driver.bindings.filter((binding) => binding.tool.id === tool.id && binding.tool.major === tool.major)
  if (bindings.length === 0) {
    const ranges = contract.implements.filter((entry) => entry.tool === tool.id).map((entry) => entry.versionRange)
    return {
      drop: {
        code: "version_range",
        reason: `implements ${tool.id} ${ranges.join(", ")}, and the contract is ${tool.version}`,
      },
    }
  }
  const { forbid, requireKind } = tool.driverConstraints
  if (forbid.includes(declaredKind(contract)))
    return {
      drop: { code: "kind_forbidden", reason: `the contract forbids drivers of kind ${declaredKind(contract)}` },
    }
  if (requireKind.length > 0 && !requireKind.includes(declaredKind(contract))) {
    return {
      drop: { code: "kind_not_allowed", reason: `the contract asks for a driver of kind ${requireKind.join(" or ")}` },
    }
  }
  const fit = bindings.map((binding) => fitOf(driver, binding, input))
  const found = fit.find((each) => "driver" in each)
  // Of entries that do not fit, the one that asks least of the caller says why.
  return (
    found ?? fit.toSorted((a, b) => fieldCount(a) - fieldCount(b))[0] ?? { drop: { code: "no_binding", reason: "" } }
  )
}

type Unfit = { readonly drop: Drop; readonly fields?: readonly string[] }

const fieldCount = (fit: Candidate | Unfit): number =>
  "drop" in fit ? (fit.fields?.length ?? Number.POSITIVE_INFINITY) : 0

/** One entry of the driver against the inputs of this call. */
const fitOf = (driver: RegisteredDriver, binding: Binding, input: ResolveInput): Candidate | Unfit => {
  const { call } = input
  const { dropInputs, mapping } = binding.implementation
  const unsupported = usedInputs(input).filter((key) => dropInputs.includes(key))
  if (unsupported.length > 0) {
    const names = list(unsupported)
    return {
      drop: { code: "input_unsupported", reason: `does not take ${names}`, fix: `leave ${names} out` },
      fields: unsupported,
    }
  }
  const own = driver.contract.code !== undefined
  const mapped = mapInput(mapping, own ? withOwnDefaults(binding.tool.inputs, mapping, call.input) : call.input, own)
  if (!mapped.ok)
    return { drop: { code: "mapping_failed", reason: `cannot map \`${mapped.field}\`: ${mapped.problem}` } }
  const missing = call.anyInput === true ? [] : missingValues(binding, mapped.input, call.context)
  if (missing.length > 0) {
    const names = list(missing)
    return {
      drop: { code: "input_needed", reason: `needs ${names}, which this call does not have`, fix: `add ${names}` },
      fields: missing,
    }
  }
  return { driver, binding, mappedInput: mapped.input }
}

/** Phase 2 without the person's part: installed, of the right version, not known to be ill. */
const capabilityDrop = (
  { key }: RegisteredDriver,
  { availability, health, policy, now }: ResolveInput,
): Drop | undefined => {
  const state = availability.get(key)
  if (state === undefined) return { code: "tool_unavailable", reason: "its availability is not known" }
  if (!state.available) return { code: state.code, reason: state.reason, fix: state.fix }
  const check = health.get(key)
  if (check === undefined || check.ok) return undefined
  const age = now === undefined ? 0 : now - check.at
  if (age >= (policy.healthWindowMs ?? defaultHealthWindowMs)) return undefined
  return {
    code: "health_check_failed_recently",
    reason: `its last health check failed${check.reason === undefined ? "" : `: ${check.reason}`}`,
  }
}

/** Phase 2, the person's part: set-up done and logged in. */
const personDrop = ({ key, contract }: RegisteredDriver, { auth, call }: ResolveInput): Drop | undefined => {
  if (contract.auth === undefined && contract.setup.length === 0) return undefined
  const state = auth.get(key)?.state ?? (contract.setup.length > 0 ? "setup_required" : "unauthed")
  if (state === "unavailable") return { code: "tool_unavailable", reason: "it is marked unavailable" }
  if (state === "setup_required" || (state === "unknown" && contract.setup.length > 0)) {
    return {
      code: "setup_required",
      reason: `its set-up steps were not done: ${auth.get(key)?.pendingSetup?.join(", ") ?? ""}`,
      fix: `run \`caisson login ${key}\``,
    }
  }
  if (state === "authed" || contract.auth === undefined || call.loginOnly === true) return undefined
  const missing = auth.get(key)?.missing
  if (state === "unauthed" && missing !== undefined)
    return { code: "auth_required", reason: `it needs the secrets ${missing.slugs.join(", ")}`, fix: missing.fix }
  const reason =
    state === "logging-in" ? "a login is under way" : state === "expired" ? "its login expired" : "it needs a login"
  const why = auth.get(key)?.why
  return {
    code: "auth_required",
    reason: why === undefined ? reason : `${reason} (${why})`,
    fix: state === "logging-in" ? "wait for it to end" : `run \`caisson login ${key}\``,
  }
}

/** The regions a call may go to; undefined: anywhere. A call narrows what the policy says. */
const regionsOf = ({ policy, call }: ResolveInput): readonly string[] | undefined => {
  if (policy.regions === undefined || call.regions === undefined) return policy.regions ?? call.regions
  const { regions } = call
  return policy.regions.filter((region) => regions.includes(region))
}

/** Phase 3: what the driver requires, the operator's tags, and regions. */
const policyDrop = ({ key, contract, verifiedTags }: RegisteredDriver, input: ResolveInput): Drop | undefined => {
  const barred = input.barred?.get(key)
  if (barred !== undefined) return { code: "policy_violation", reason: barred.reason, fix: barred.fix }
  const { allow = [], deny = [] } = input.policy.tags ?? {}
  const denied = contract.policyTags.filter((tag) => deny.includes(tag))
  if (denied.length > 0) return { code: "policy_violation", reason: `the policy denies its tag ${list(denied)}` }
  if (allow.length > 0 && !allow.some((tag) => verifiedTags.includes(tag))) {
    const claimed = contract.policyTags.filter((tag) => allow.includes(tag))
    const reason =
      claimed.length > 0
        ? `it claims ${list(claimed)}, which the operator did not verify`
        : `the policy asks for one of the tags ${list(allow)}`
    return { code: "policy_violation", reason }
  }
  const regions = regionsOf(input)
  if (regions === undefined) return undefined
  if (!contract.regionDeclared)
    return { code: "region_mismatch", reason: `it declares no region, and the call must stay in ${list(regions)}` }
  if (contract.region.some((region) => regions.includes(region))) return undefined
  if (contract.region.includes("global") && regions.length > 0 && input.policy.globalSatisfiesRegion === true)
    return undefined
  return {
    code: "region_mismatch",
    reason: `its region is ${list(contract.region)}, and the call must stay in ${list(regions)}`,
  }
}

export const judge = (driver: RegisteredDriver, input: ResolveInput): Judged => {
  const candidate = asCandidate(driver, input)
  if ("drop" in candidate)
    return dropped(
      driver,
      "candidates",
      candidate.drop,
      candidate.fields === undefined ? {} : { fields: candidate.fields },
    )
  const unable = capabilityDrop(driver, input)
  if (unable !== undefined) return dropped(driver, "capability", unable)
  const person = personDrop(driver, input)
  const against = policyDrop(driver, input)
  if (person !== undefined) {
    // A login would not help where the policy is against the driver too, so that is what it is told.
    if (against !== undefined)
      return dropped(driver, "capability", { code: against.code, reason: `${person.reason}, and ${against.reason}` })
    return dropped(driver, "capability", person, person.code === "tool_unavailable" ? {} : { waiting: candidate })
  }
  return against === undefined ? { alive: true, candidate } : dropped(driver, "policy", against)
}
