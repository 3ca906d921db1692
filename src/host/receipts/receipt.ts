/**
 * One call, however it ended → the one audit event that is its receipt.
 *
 * Guarantees: carries digests, keys, templates, paths, counts and times; never a value of the input, the context, the
 * environment or the output, and no text that a program printed. The rows that AIP-14, AIP-30 and AIP-29 name
 * (tool.invoked, driver.resolved, cli.invoked) are folded into its metadata. Pure, but for the name of the OS user.
 */
import { digestOf } from "../../manifest/digest.ts"
import { shown } from "../../manifest/diagnostics.ts"
import type { JsonObject, JsonValue } from "../../manifest/types.ts"
import type { Denial } from "../../sandbox/backend.ts"
import type {
  Admitted,
  Authorized,
  HomeOutcome,
  Progress,
  Ran,
  Requested,
  Routed,
  Sealed,
  SignedIn,
} from "../call/steps.ts"
import { isUserId, osUser } from "../data/os-user.ts"
import type { OperatorConfig } from "../config/types.ts"
import { hostLimits } from "../limits.ts"
import type { CallError, ReportedEffect } from "../types.ts"
import type { EventDraft } from "./event.ts"

export interface CallEnd {
  readonly progress: Progress
  readonly error?: CallError
  readonly effects: readonly ReportedEffect[]
  readonly denied: readonly Denial[]
  /** milliseconds a step */
  readonly timings: Readonly<Record<string, number>>
  readonly backend?: string
  readonly config: OperatorConfig
}

/** Details of an error that are ours: words and numbers of the host, never something a caller or program wrote. */
const SAFE_DETAILS = [
  "commit",
  "control",
  "limit",
  "timeout_ms",
  "exit_code",
  "signal",
  "reason",
  "approval",
  "driver",
  "home",
] as const

const safeDetails = (details: JsonObject): JsonObject => {
  const kept: Record<string, JsonValue> = {}
  for (const key of SAFE_DETAILS) {
    const value = details[key]
    if (typeof value === "number" || (typeof value === "string" && value.length <= 128)) kept[key] = value
  }
  return kept
}

const clean = (text: string, most: number): string => {
  const whole = text.toWellFormed()
  return whole.length > most ? `${whole.slice(0, most).toWellFormed()}…` : whole
}

const effectRow = (effect: ReportedEffect): JsonObject => ({
  ...(effect as unknown as JsonObject),
  path: effect.path.toWellFormed(),
  ...(effect.from === undefined ? {} : { from: effect.from.toWellFormed() }),
})

const effectFacts = (effects: readonly ReportedEffect[]): JsonObject => {
  const rows = effects.map(effectRow)
  const most = hostLimits.receiptEffects.value
  const committed = effects.length > 0 && effects.every((effect) => effect.committed)
  if (rows.length <= most) return { effects: rows, effects_committed: committed }
  return {
    effects: rows.slice(0, most),
    effects_committed: committed,
    effects_total: rows.length,
    effects_digest: digestOf(rows),
  }
}

const denialFacts = (denied: readonly Denial[]): JsonObject => {
  const most = hostLimits.receiptDenials.value
  const rows = denied.slice(0, most).map(({ layer, reason, target, count }) => ({
    layer,
    reason: clean(reason, 64),
    target: clean(target, 256),
    count,
  }))
  return { denied: rows, ...(denied.length > most ? { denied_total: denied.length } : {}) }
}

const has = <T extends Progress>(progress: Progress, key: keyof T): progress is T => key in progress

const admittedFacts = (progress: Progress): JsonObject => {
  if (!has<Admitted>(progress, "tool")) return {}
  const { tool, input, context, user, workspace, plan } = progress
  return {
    mode: plan ? "plan" : "call",
    tool: {
      id: tool.id,
      version: tool.version,
      digest: tool.source.digest,
      mutates: tool.mutates.map((scope) => scope.text),
    },
    user_id: user,
    workspace_id: workspace.toWellFormed(),
    input_keys: Object.keys(input)
      .map((key) => clean(key, 64))
      .sort(),
    context_keys: Object.keys(context)
      .map((key) => clean(key, 64))
      .sort(),
  }
}

const routedFacts = (progress: Progress): JsonObject => {
  if (!has<Routed>(progress, "driver")) return {}
  const {
    driver: { contract },
    route,
    program,
    programVersion,
  } = progress
  const { type: _type, ...resolved } = route.audit
  return {
    driver: { id: contract.id, version: contract.version, kind: contract.driverKind, digest: contract.source.digest },
    program: {
      path: program.path.toWellFormed(),
      ...(programVersion === undefined ? {} : { version: programVersion }),
    },
    route: resolved as unknown as JsonObject,
  }
}

const sealedFacts = (progress: Progress): JsonObject => {
  if (!has<Sealed>(progress, "profile")) return {}
  const { profileDigest, route, job, timeout } = progress
  return {
    profile: profileDigest,
    argv_template: [...(route.implementation.cli?.argv ?? [])],
    argv_count: job.argv.length,
    timeout_ms: timeout.ms,
  }
}

/** What the driver's own state gained and lost, attempt by attempt: paths and digests. */
const homeFacts = (homes: readonly HomeOutcome[]): JsonObject => {
  if (homes.length === 0) return {}
  const most = hostLimits.receiptHomeEffects.value
  const rows = homes.flatMap(({ effects, result }) =>
    effects.map((effect) => ({
      ...(effect as unknown as JsonObject),
      path: clean(effect.path, 1024),
      kept: result.ok,
    })),
  )
  return {
    home: {
      kept: homes.every(({ result }) => result.ok),
      effects: rows.slice(0, most),
      ...(rows.length > most ? { total: rows.length, digest: digestOf(rows) } : {}),
    },
  }
}

const ranFacts = (progress: Progress): JsonObject => {
  if (!has<Ran>(progress, "attempt")) return {}
  const { exited } = progress.attempt
  const { ending, usage, stdout, stderr } = exited
  return {
    attempts: progress.attempts,
    retries: progress.attempts - 1,
    ending: ending.by,
    ...(ending.by === "exit" ? { exit_code: ending.code } : {}),
    ...homeFacts(progress.homes),
    usage: {
      wall_ms: usage.wallMs,
      ...(usage.cpuMs === undefined ? {} : { cpu_ms: usage.cpuMs }),
      ...(usage.peakMemoryBytes === undefined ? {} : { peak_memory_bytes: usage.peakMemoryBytes }),
      stdout_bytes: stdout.total,
      stderr_bytes: stderr.total,
    },
  }
}

/** Of a call that was not admitted: the user that it names, if that is one. */
const callerOf = ({ request: { user } }: Requested): string => {
  if (user === undefined) return osUser()
  return typeof user === "string" && isUserId(user) ? user : "unknown"
}

/** Callers' own words for a tool and a user, made fit for the closed schema, for calls that were not admitted. */
const subjectOf = (progress: Progress): EventDraft["subject"] => {
  if (!has<Admitted>(progress, "tool")) return { kind: "tool", ref: shown((progress as Requested).request.tool) || "?" }
  const path = progress.workspace.toWellFormed()
  return { kind: "tool", ref: `${progress.tool.id}@${progress.tool.major}`, ...(path.length <= 1024 ? { path } : {}) }
}

export const receiptOf = ({ progress, error, effects, denied, timings, backend, config }: CallEnd): EventDraft => {
  const approval = has<Authorized>(progress, "approval") ? { approval: { ...progress.approval } } : {}
  const duration = Object.values(timings).reduce((sum, ms) => sum + ms, 0)
  const rounded = Object.fromEntries(Object.entries(timings).map(([step, ms]) => [step, Math.round(ms * 1000) / 1000]))
  return {
    actor: { id: has<Admitted>(progress, "tool") ? progress.user : callerOf(progress as Requested) },
    action: "tool.invoked",
    subject: subjectOf(progress),
    input: { $redacted: true, reason: "values are never recorded; see metadata.input_keys" },
    metadata: {
      call: progress.call,
      ok: error === undefined,
      verdict: error?.code ?? "ok",
      ...(error === undefined
        ? {}
        : { class: error.class, retryable: error.retryable, details: safeDetails(error.details) }),
      ...admittedFacts(progress),
      ...approval,
      ...routedFacts(progress),
      ...(has<SignedIn>(progress, "authState") ? { auth_state: progress.authState } : {}),
      ...sealedFacts(progress),
      ...(backend === undefined ? {} : { backend }),
      ...ranFacts(progress),
      ...effectFacts(effects),
      ...denialFacts(denied),
      host_policy: { undeclared_write: config.undeclaredWrite, undeclared_egress: config.undeclaredEgress },
      timings: rounded,
      duration_ms: Math.round(duration * 1000) / 1000,
    },
  }
}
