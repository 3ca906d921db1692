/**
 * One call, however it ended → the one audit event that is its receipt.
 *
 * Guarantees: carries digests, keys, templates, paths, counts and times; never a value of the input, the context, the
 * environment or the output, and no text that a program printed. The rows that AIP-14, AIP-30 and AIP-29 name
 * (tool.invoked, driver.resolved, cli.invoked) are folded into its metadata. Bounded in bytes whatever the call did: of
 * long lists a beginning, a count and a digest; and a receipt that would not fit or cannot be written down gives way to a
 * minimal one. Pure.
 */
import { accessFacts as recordFacts } from "../access-record/facts.ts"
import { declaredKind } from "../../manifest/kinds/body.ts"
import { digestOf, jcs } from "../../manifest/values/digest.ts"
import { shown } from "../../manifest/values/diagnostics.ts"
import type { JsonObject, JsonValue } from "../../manifest/types.ts"
import type { Denial } from "../../sandbox/backend.ts"
import type { Effect } from "../../sandbox/effects/types.ts"
import type { Admitted, Authorized, Progress, Ran, Requested, Routed, Sealed, SignedIn } from "./steps.ts"
import type { Caller } from "../access/caller.ts"
import { isUserId } from "../access/os-user.ts"
import type { OperatorConfig } from "../config/types.ts"
import { hostLimits } from "../limits.ts"
import type { CallError, ReportedEffect } from "../types.ts"
import { fileRows } from "./judging/files.ts"
import { type BoundedRows, boundedRows, boundedValue, cut } from "../receipts/bounded.ts"
import type { EventDraft } from "../receipts/event.ts"
import { tenantFact } from "../receipts/whose.ts"

interface CallEnd {
  readonly progress: Progress
  readonly error?: CallError
  /** what the caller was not told of why */
  readonly evidence?: JsonObject
  /** that its layer waits for an answer, and until when */
  readonly held?: JsonObject
  readonly rows: ReceiptRows
  /** of the effects, those that are in the workspace now, by their paths */
  readonly committed: Committed
  /** milliseconds a step */
  readonly timings: Readonly<Record<string, number>>
  readonly backend?: string
  /** what the action of a call that did what it was asked for stands for */
  readonly fired?: readonly string[]
  /** digests of the contract's schemas, where they are kept */
  readonly schemas?: JsonObject
  readonly config: OperatorConfig
}

export type Committed = "all" | "none" | ReadonlySet<string>

/** Details of an error that are ours: words and numbers of the host, never something a caller or program wrote. */
const SAFE_DETAILS = [
  "commit",
  "status",
  "control",
  "limit",
  "timeout_ms",
  "exit_code",
  "signal",
  "reason",
  "approval",
  "policy",
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

/** What of a call's lists fits into its receipt. Made before the commit, so that nothing about it can fail after. */
export interface ReceiptRows {
  readonly effects: BoundedRows
  readonly denied: BoundedRows
  readonly home: BoundedRows
  readonly reached: BoundedRows
  readonly files: BoundedRows
  /** digests of the program and what came with it; once a program was sealed */
  readonly ran?: JsonObject
}

const effectRow = ({ committed: _committed, ...effect }: ReportedEffect): JsonObject => ({
  ...(effect as unknown as JsonObject),
  path: effect.path.toWellFormed(),
  ...(effect.from === undefined ? {} : { from: effect.from.toWellFormed() }),
  ...(effect.target === undefined ? {} : { target: effect.target.toWellFormed() }),
})
const denialRow = ({ layer, reason, target, count }: Denial): JsonObject => ({
  layer,
  reason: cut(reason, 64),
  target: cut(target, 256),
  count,
})
/** What the driver's own state gained and lost, attempt by attempt: paths and digests. */
const homeRow = ({ effect, kept }: { effect: Effect; kept: boolean }): JsonObject => ({
  ...(effect as unknown as JsonObject),
  path: cut(effect.path, 1024),
  ...(effect.target === undefined ? {} : { target: cut(effect.target, 1024) }),
  ...(effect.from === undefined ? {} : { from: cut(effect.from, 1024) }),
  kept,
})

export const receiptRows = async (
  progress: Progress,
  effects: readonly ReportedEffect[],
  denied: readonly Denial[],
  ran?: JsonObject,
): Promise<ReceiptRows> => {
  const reached = has<Ran>(progress, "attempt") ? progress.reached : []
  const homes = has<Ran>(progress, "attempt") ? progress.homes : []
  const kept = homes.flatMap(({ effects: inHome, result }) => inHome.map((effect) => ({ effect, kept: result.ok })))
  return {
    effects: await boundedRows(
      effects,
      effectRow,
      hostLimits.receiptEffectBytes.value,
      hostLimits.receiptEffects.value,
    ),
    denied: await boundedRows(denied, denialRow, hostLimits.receiptDenialBytes.value),
    home: await boundedRows(kept, homeRow, hostLimits.receiptHomeBytes.value),
    reached: await boundedRows(
      reached,
      ({ target, count, bytesOut, bytesIn }) => ({
        target: cut(target, 256),
        count,
        bytes_out: bytesOut,
        bytes_in: bytesIn,
      }),
      hostLimits.receiptReachedBytes.value,
    ),
    files: await boundedRows(
      has<Ran>(progress, "attempt") ? fileRows(progress.attempt.exited) : [],
      (row) => row,
      hostLimits.receiptFileBytes.value,
    ),
    ...(ran === undefined ? {} : { ran }),
  }
}

const rest = (name: string, { total, digest }: BoundedRows): JsonObject =>
  digest === undefined ? {} : { [`${name}_total`]: total, [`${name}_digest`]: digest }

const isCommitted = (committed: Committed, row: JsonObject): boolean =>
  committed === "all" || (committed !== "none" && typeof row["path"] === "string" && committed.has(row["path"]))

const effectFacts = (found: BoundedRows, committed: Committed): JsonObject => ({
  effects: found.rows.map((row) => ({ ...row, committed: isCommitted(committed, row) })),
  effects_committed: committed !== "none" && found.total > 0,
  ...rest("effects", found),
})
const reachedFacts = (found: BoundedRows): JsonObject =>
  found.total === 0 ? {} : { reached: [...found.rows], ...rest("reached", found) }
/** Of a call that was observed. */
const observedFacts = (progress: Progress): JsonObject => {
  const access = has<Ran>(progress, "attempt") ? progress.attempt.access : undefined
  return access === undefined ? {} : { observed: small(recordFacts(access)) }
}
const fileFacts = (found: BoundedRows): JsonObject =>
  found.total === 0 ? {} : { files: [...found.rows], ...rest("files", found) }
const denialFacts = (found: BoundedRows): JsonObject => ({ denied: [...found.rows], ...rest("denied", found) })
/** A home that was opened before a logout and would have been kept after it. */
const wasLoggedOut = (progress: Progress): boolean =>
  has<Ran>(progress, "attempt") && progress.homes.some(({ result }) => !result.ok && result.reason === "logged-out")

const homeFacts = (found: BoundedRows, discarded: boolean): JsonObject =>
  found.total === 0
    ? {}
    : {
        home: {
          kept: found.rows.every((row) => row["kept"] === true),
          ...(discarded ? { discarded: "logged out meanwhile" } : {}),
          effects: [...found.rows],
          ...(found.digest === undefined ? {} : { total: found.total, digest: found.digest }),
        },
      }

const keysOf = (name: string, value: JsonObject): JsonObject => {
  const keys = Object.keys(value)
  const most = hostLimits.receiptKeys.value
  return {
    [name]: keys
      .slice(0, most)
      .map((key) => cut(key, 64))
      .sort(),
    ...(keys.length > most ? { [`${name}_total`]: keys.length } : {}),
  }
}
const small = (value: JsonValue): JsonValue => boundedValue(value, hostLimits.receiptValueBytes.value)

const has = <T extends Progress>(progress: Progress, key: keyof T): progress is T => key in progress

/** What a contract wants in its receipts: its classes, and digests of what it names, each for this call alone. */
const operationFacts = ({ call, tool: { operation }, input }: Admitted): JsonObject => {
  if (operation === undefined) return {}
  const { dataClassification, permissionClass, auditFields } = operation
  const named = auditFields.filter((field) => Object.hasOwn(input, field))
  return {
    ...(dataClassification === undefined ? {} : { data_classification: cut(dataClassification, 64) }),
    ...(permissionClass === undefined ? {} : { permission_class: cut(permissionClass, 64) }),
    ...(named.length === 0
      ? {}
      : {
          audit: small(
            Object.fromEntries(named.map((field) => [field, digestOf([call, field, input[field] ?? null])])),
          ),
        }),
  }
}

const admittedFacts = (progress: Progress): JsonObject => {
  if (!has<Admitted>(progress, "tool")) return {}
  const { tool, input, context, workspace, plan } = progress
  return {
    mode: plan ? "plan" : "call",
    tool: {
      id: tool.id,
      version: tool.version,
      digest: tool.source.digest,
      mutates: small(tool.mutates.map((scope) => scope.text)),
      ...operationFacts(progress),
    },
    workspace_id: workspace.toWellFormed(),
    ...keysOf("input_keys", input),
    ...keysOf("context_keys", context),
  }
}

const routedFacts = (progress: Progress, ran: JsonObject | undefined): JsonObject => {
  if (!has<Routed>(progress, "driver")) return {}
  const {
    driver: { contract },
    route,
    program,
    programVersion,
  } = progress
  const { type: _type, ...resolved } = route.audit
  return {
    driver: {
      id: contract.id,
      version: contract.version,
      kind: declaredKind(contract),
      digest: contract.source.digest,
    },
    program: {
      ...(program === undefined ? {} : { path: program.path.toWellFormed() }),
      ...(programVersion === undefined ? {} : { version: programVersion }),
      ...ran,
    },
    route: small(resolved as unknown as JsonObject),
    ...(progress.cost === undefined || progress.cost.class === "trivial" ? {} : { cost: { ...progress.cost } }),
  }
}

/** AIP-19's `secret.reveal`: from when the vault has given one, whatever becomes of the call after that. */
const secretFacts = (progress: Progress): JsonObject => {
  if (!has<SignedIn>(progress, "authState") || progress.secrets.length === 0) return {}
  const revealed = progress.secrets.map(({ slug, name, grantedBy }) => ({ slug, name, granted_by: grantedBy }))
  const facts = has<Sealed>(progress, "profile") ? progress.sealedSecrets.facts : revealed
  return { secrets: small([...facts]) }
}

const sealedFacts = (progress: Progress): JsonObject => {
  if (!has<Sealed>(progress, "profile")) return {}
  const { profileDigest, commandFacts, timeout } = progress
  return {
    ...Object.fromEntries(Object.entries(commandFacts).map(([key, value]) => [key, small(value)])),
    profile: profileDigest,
    timeout_ms: timeout.ms,
  }
}

const ranFacts = (progress: Progress): JsonObject => {
  if (!has<Ran>(progress, "attempt")) return {}
  const { exited } = progress.attempt
  const { ending, usage, stdout, stderr } = exited
  return {
    ...progress.attempt.facts,
    attempts: progress.attempts,
    retries: progress.attempts - 1,
    ...(progress.passedOver === undefined ? {} : { passed_over: progress.passedOver.map((each) => ({ ...each })) }),
    ending: ending.by,
    ...(ending.by === "exit" ? { exit_code: ending.code } : {}),
    usage: {
      wall_ms: usage.wallMs,
      ...(usage.cpuMs === undefined ? {} : { cpu_ms: usage.cpuMs }),
      ...(usage.peakMemoryBytes === undefined ? {} : { peak_memory_bytes: usage.peakMemoryBytes }),
      ...(stdout === undefined ? {} : { stdout_bytes: stdout.total }),
      ...(stderr === undefined ? {} : { stderr_bytes: stderr.total }),
    },
  }
}

/** Who was authenticated, and for whom they called; a name that is no user id is not written down. */
const idOf = (user: string): string => (isUserId(user) ? user : "unknown")
/** What every receipt of a call says of whose it is, also one that was not admitted or was cut short. */
export const whoseCall = (caller: Caller): JsonObject => ({ ...tenantFact(caller), user_id: idOf(caller.user) })
const callerFacts = ({ caller: { user, actor, how } }: Requested): JsonObject => ({
  caller: { how, ...(user === actor ? {} : { for: idOf(user) }) },
})

/** Callers' own words for a tool and a user, made fit for the closed schema, for calls that were not admitted. */
const subjectOf = (progress: Progress): EventDraft["subject"] => {
  if (!has<Admitted>(progress, "tool")) return { kind: "tool", ref: shown((progress as Requested).request.tool) || "?" }
  const path = progress.workspace.toWellFormed()
  return { kind: "tool", ref: `${progress.tool.id}@${progress.tool.major}`, ...(path.length <= 1024 ? { path } : {}) }
}

const draftOf = (progress: Progress, metadata: JsonObject): EventDraft => ({
  actor: { id: idOf(progress.caller.actor) },
  action: "tool.invoked",
  subject: subjectOf(progress),
  input: { $redacted: true, reason: "values are never recorded; see metadata.input_keys" },
  metadata,
})

/** By which grant a call was let through, where there are any. */
const accessFacts = (access: Authorized["access"]): JsonObject =>
  access.chain.length === 0 ? {} : { access: small({ ...access, chain: [...access.chain] }) }

/** Calls within calls: by whose program this one was asked for, and which its own asked for, each with a receipt of its own. */
const nestedFacts = ({ within, nesting }: Requested): JsonObject => ({
  ...(within === undefined ? {} : { parent: within.parent, depth: within.depth }),
  ...(nesting === undefined || nesting.made.length === 0
    ? {}
    : { calls: nesting.made.map(({ tool, ...made }) => ({ tool: cut(tool, 128), ...made })) }),
})

const verdictFacts = ({ progress, error, held }: CallEnd): JsonObject => ({
  call: progress.call,
  ...nestedFacts(progress),
  ...(held === undefined ? {} : { held }),
  ok: error === undefined,
  verdict: error?.code ?? "ok",
  ...(error === undefined
    ? {}
    : { class: error.class, retryable: error.retryable, details: safeDetails(error.details) }),
})

/** Who, what, how it ended, and how much of everything: fits whatever the call was. */
const minimalReceipt = (end: CallEnd): EventDraft => {
  const { rows, committed } = end
  const count = ({ total, digest }: BoundedRows): JsonObject => ({ total, ...(digest === undefined ? {} : { digest }) })
  return draftOf(end.progress, {
    ...verdictFacts(end),
    ...whoseCall(end.progress.caller),
    minimal: true,
    effects_committed: committed !== "none" && rows.effects.total > 0,
    lists: { effects: count(rows.effects), denied: count(rows.denied), home: count(rows.home) },
  })
}

const fullReceipt = (end: CallEnd): EventDraft => {
  const { progress, rows, committed, timings, backend, config } = end
  const approval = has<Authorized>(progress, "approval")
    ? { approval: { ...progress.approval }, ...accessFacts(progress.access) }
    : {}
  const duration = Object.values(timings).reduce((sum, ms) => sum + ms, 0)
  const rounded = Object.fromEntries(Object.entries(timings).map(([step, ms]) => [step, Math.round(ms * 1000) / 1000]))
  return draftOf(progress, {
    ...verdictFacts(end),
    ...whoseCall(progress.caller),
    ...callerFacts(progress),
    ...(progress.tape === undefined ? {} : { tape: progress.tape.facts() }),
    ...(end.evidence === undefined ? {} : { not_told: small(end.evidence) }),
    ...admittedFacts(progress),
    ...(end.schemas === undefined ? {} : { schemas: end.schemas }),
    ...approval,
    ...routedFacts(progress, rows.ran),
    ...(has<SignedIn>(progress, "authState") ? { auth_state: progress.authState } : {}),
    ...secretFacts(progress),
    ...sealedFacts(progress),
    ...(backend === undefined ? {} : { backend }),
    ...ranFacts(progress),
    ...fileFacts(rows.files),
    ...homeFacts(rows.home, wasLoggedOut(progress)),
    ...effectFacts(rows.effects, committed),
    ...(end.fired === undefined ? {} : { fired: small([...end.fired]) }),
    ...denialFacts(rows.denied),
    ...reachedFacts(rows.reached),
    ...observedFacts(progress),
    host_policy: {
      on_mutate: config.approvals.onMutate,
      undeclared_write: config.undeclaredWrite,
      undeclared_egress: config.undeclaredEgress,
    },
    timings: rounded,
    duration_ms: Math.round(duration * 1000) / 1000,
  })
}

/** The whole receipt where it fits and can be written down, else the least that says what happened. */
export const receiptOf = (end: CallEnd): EventDraft => {
  try {
    const full = fullReceipt(end)
    if (Buffer.byteLength(jcs(full)) <= hostLimits.receiptBytes.value) return full
  } catch {
    return minimalReceipt(end)
  }
  return minimalReceipt(end)
}
