/**
 * Which driver serves a call, and why each other does not (AIP-30 §Routing, with C-19 to C-22).
 *
 * Guarantees: pure, and independent of the order of `drivers`; the selected driver passed every phase; every driver
 * that names the tool has one row. When nothing is left, the code says what would mend it if that is the same for all
 * candidates (C-62): a login, set-up, an install, another version, the operator's policy, an input; else it is the pin
 * or `no_route`, with the specific reason in the cause. A region constraint is never relaxed to find a route.
 * Does not: read clock, disk or network; run anything.
 */
import { declaredKind } from "../../manifest/kinds/body.ts"
import type { ReasonCode } from "../reasons.ts"
import type { RoutePhase, RouteRow } from "../types.ts"
import { type Candidate, type Dropped, judge, namesTool } from "./phases.ts"
import { declaredCost, matchesRef, rank, whyBehind, whyFirst } from "./rank.ts"
import type { Rejection, Resolution, ResolvedAudit, ResolveInput, RouteCause } from "./types.ts"

const phases: readonly RoutePhase[] = ["candidates", "capability", "policy", "pin", "rank", "selected"]
const phaseNumber = (phase: RoutePhase): number => phases.indexOf(phase) + 1

interface Routed {
  readonly alive: readonly Candidate[]
  readonly dropped: readonly Dropped[]
}

const byFurthest = (a: Rejection, b: Rejection): number =>
  phaseNumber(b.phase) - phaseNumber(a.phase) || (a.driver < b.driver ? -1 : a.driver > b.driver ? 1 : 0)

const route = (input: ResolveInput): Routed => {
  const judged = input.drivers
    .filter((driver) => namesTool(driver, input.tool.id))
    .map((driver) => judge(driver, input))
  return {
    alive: rank(
      judged.flatMap((each) => (each.alive ? [each.candidate] : [])),
      input,
    ),
    dropped: judged.filter((each) => !each.alive).toSorted((a, b) => byFurthest(a.rejection, b.rejection)),
  }
}

const costFields = (each: Pick<Candidate, "driver"> & Partial<Candidate>): Partial<RouteRow> => {
  const { driver, binding } = each
  const units = binding === undefined ? driver.contract.costUnitsPerCall : declaredCost({ driver, binding })
  const currency = binding?.implementation.currency ?? driver.contract.currency
  const costClass = binding?.implementation.costClass ?? driver.contract.costClass
  return {
    ...(units === undefined ? {} : { costUnitsPerCall: units }),
    ...(currency === undefined ? {} : { currency }),
    ...(costClass === undefined ? {} : { costClass }),
  }
}

const rowOf = (each: Pick<Candidate, "driver"> & Partial<Candidate>, phase: RoutePhase, reason: string): RouteRow => ({
  driver: each.driver.key,
  kind: declaredKind(each.driver.contract),
  phase,
  reason,
  ...costFields(each),
})

/** The one row of each driver: the selected, those behind it in order, then the dropped, the furthest first. */
const rowsOf = (
  input: ResolveInput,
  { alive, dropped }: Routed,
  selected: Candidate | undefined,
): readonly RouteRow[] => {
  const { pin } = input.call
  const living = alive.map((each) => {
    if (each === selected) return rowOf(each, "selected", whyFirst(each, alive.length - 1, input))
    const pinnedAway = pin !== undefined && !matchesRef(each, pin)
    const reason = pinnedAway
      ? `the call pins ${pin}`
      : selected === undefined
        ? "not reached"
        : whyBehind(selected, each, input)
    return rowOf(each, pinnedAway ? "pin" : "rank", reason)
  })
  const first = living.filter((row) => row.phase === "selected")
  const rest = dropped.map(({ driver, rejection: { phase, reason, code, fix } }) => ({
    ...rowOf({ driver }, phase, reason),
    code,
    ...(fix === undefined ? {} : { fix }),
  }))
  return [...first, ...living.filter((row) => row.phase !== "selected"), ...rest]
}

const auditOf = (input: ResolveInput, { alive, dropped }: Routed, selected: Candidate | undefined): ResolvedAudit => {
  const passed = (phase: RoutePhase): number =>
    alive.length + dropped.filter((each) => phaseNumber(each.rejection.phase) > phaseNumber(phase)).length
  return {
    type: "driver.resolved",
    tool_id: input.tool.id,
    tool_version: input.tool.version,
    candidates_total: alive.length + dropped.length,
    candidates_passed_phase_2_capability: passed("capability"),
    candidates_passed_phase_3_policy: passed("policy"),
    pinned_provider: input.call.pin ?? null,
    rejected: dropped.map(({ rejection }) => ({
      provider_id: rejection.driver,
      phase: phaseNumber(rejection.phase),
      reason: rejection.code,
    })),
    selected:
      selected === undefined
        ? null
        : {
            provider_id: selected.driver.key,
            kind: declaredKind(selected.driver.contract),
            cost_units_per_call: declaredCost(selected) ?? null,
          },
  }
}

interface Refused {
  readonly code: ReasonCode
  readonly cause: RouteCause
}

/** A person can mend it: say which driver and how (C-19). */
const needsPerson = (dropped: readonly Dropped[], input: ResolveInput): Refused | undefined => {
  const waiting = dropped.flatMap((each) => (each.waiting === undefined ? [] : [each.waiting]))
  const [best] = rank(waiting, input)
  const found = dropped.find((each) => each.waiting === best)
  if (best === undefined || found === undefined) return undefined
  const { rejection } = found
  const { contract, key } = best.driver
  const pending = input.auth.get(key)?.pendingSetup ?? contract.setup.map((step) => step.id)
  const setup = rejection.code === "setup_required"
  return {
    code: setup ? "setup_required" : "auth_required",
    cause: {
      reason: rejection.code,
      message: `${key}: ${rejection.reason}`,
      rejections: [rejection],
      driver: key,
      ...(rejection.fix === undefined ? {} : { fix: rejection.fix }),
      ...(setup ? { pendingSetup: pending } : contract.auth?.login === undefined ? {} : { login: contract.auth.login }),
    },
  }
}

/** Codes of rejections that one person's act mends for the call. */
const actionable: readonly ReasonCode[] = [
  "install_failed",
  "tool_unavailable",
  "version_mismatch",
  "policy_violation",
  "sandbox_unavailable",
]

const inputFault: Readonly<Record<string, { code: ReasonCode; message: string; fix: string }>> = {
  input_unsupported: { code: "input_unsupported", message: "no driver takes", fix: "leave out" },
  input_needed: { code: "input_invalid", message: "no driver can serve a call without", fix: "add" },
}

/** Every driver that implements the tool fell for its inputs, and for the same sort of fault. */
const byInput = (dropped: readonly Dropped[]): Refused | undefined => {
  const codes = [...new Set(dropped.flatMap((each) => (each.fields === undefined ? [] : [each.rejection.code])))]
  const fault = inputFault[codes[0] ?? ""]
  if (codes.length !== 1 || fault === undefined) return undefined
  const fields = [...new Set(dropped.flatMap((each) => each.fields ?? []))].toSorted()
  const names = fields.map((field) => `\`${field}\``).join(", ")
  return {
    code: fault.code,
    cause: {
      reason: codes[0] ?? "",
      message: `${fault.message} ${names}`,
      fix: `${fault.fix} ${names}`,
      rejections: dropped.flatMap((each) => (each.fields === undefined ? [] : [each.rejection])),
      fields,
    },
  }
}

const pinFailed = (pin: string, dropped: readonly Dropped[], input: ResolveInput): Refused => {
  const pinned = dropped.filter((each) => matchesRef(each, pin))
  const person = needsPerson(pinned, input)
  if (person !== undefined) return person
  const fault = pinned.every((each) => each.fields !== undefined) ? byInput(pinned) : undefined
  if (fault !== undefined) return fault
  const rejections = pinned.map((each) => each.rejection)
  const [closest] = rejections
  const message =
    closest === undefined ? `${pin} does not implement ${input.tool.id}` : `${closest.driver}: ${closest.reason}`
  return {
    code: "pinned_provider_unavailable",
    cause: {
      reason: closest?.code ?? "not_a_candidate",
      message,
      rejections,
      ...(closest?.fix === undefined ? {} : { fix: closest.fix }),
    },
  }
}

const noRoute = (dropped: readonly Dropped[], input: ResolveInput): Refused => {
  const candidates = dropped.filter((each) => each.rejection.phase !== "candidates")
  if (candidates.length === 0) {
    const fault = byInput(dropped)
    if (fault !== undefined) return fault
  }
  const judged = candidates.length === 0 ? dropped : candidates
  const codes = [...new Set(judged.map((each) => each.rejection.code))]
  const [only] = codes
  // Drivers of other regions were never to serve this call, so they do not stand between a person and the one that is.
  const inRegion = judged.filter((each) => each.rejection.code !== "region_mismatch")
  const waits = new Set(inRegion.map((each) => (each.waiting === undefined ? "" : each.rejection.code)))
  if (waits.size === 1 && !waits.has("")) {
    const person = needsPerson(inRegion, input)
    if (person !== undefined) return person
  }
  const rejections = judged.map((each) => each.rejection)
  const regional = rejections.some((each) => each.code === "region_mismatch")
  const shared = candidates.length > 0 && codes.length === 1 ? actionable.find((code) => code === only) : undefined
  const reason = regional
    ? "no_route_in_region"
    : dropped.length === 0
      ? "no_candidates"
      : codes.length === 1 && only !== undefined
        ? only
        : "several"
  const message =
    dropped.length === 0
      ? `no driver implements ${input.tool.id}@${input.tool.major}`
      : rejections.map((each) => `${each.driver}: ${each.reason}`).join("; ")
  const fix = rejections.find((each) => each.fix !== undefined)?.fix
  return {
    code: shared ?? "no_route",
    cause: { reason, message, rejections, ...(fix === undefined ? {} : { fix }) },
  }
}

export const resolve = (input: ResolveInput): Resolution => {
  const routed = route(input)
  const { pin } = input.call
  const selected = pin === undefined ? routed.alive[0] : routed.alive.find((each) => matchesRef(each, pin))
  const shown = { rows: rowsOf(input, routed, selected), audit: auditOf(input, routed, selected) }
  if (selected === undefined) {
    return {
      ok: false,
      ...(pin === undefined ? noRoute(routed.dropped, input) : pinFailed(pin, routed.dropped, input)),
      ...shown,
    }
  }
  const { driver, binding, mappedInput } = selected
  return { ok: true, driver, binding, implementation: binding.implementation, mappedInput, ...shown }
}
