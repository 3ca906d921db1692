/**
 * The end of a call: its receipt, and what its caller is told.
 *
 * Guarantees: an envelope comes of it whatever happens; where the receipt could not be written the call failed for that, and
 * says what became of its effects.
 */
import type { JsonObject } from "../../../manifest/types.ts"
import { callErrorOf, type Failure, type Success } from "../../failure.ts"
import type { AuditLog } from "../../receipts/log.ts"
import { keepSchemas } from "../../receipts/schemas.ts"
import type { CallError, Envelope, ReportedEffect } from "../../types.ts"
import type { HostCore } from "../core.ts"
import { tellDenials } from "../judging/denials.ts"
import { type Committed, receiptOf, receiptRows } from "../receipt.ts"
import { approvalUrl } from "../settle.ts"
import type { Progress } from "../steps.ts"
import type { Trail } from "./trail.ts"

const outcome = {
  committed: "; the effects were committed",
  unknown: "; whether the effects were is not known",
  none: "",
}

/** `details`: of its failure, where it failed. */
export const commitOf = (effects: readonly ReportedEffect[], details?: JsonObject): keyof typeof outcome => {
  if (effects.some((effect) => effect.committed)) return "committed"
  return details?.["commit"] === "unknown" ? "unknown" : "none"
}

/** Run again, such a call would change twice what it may have changed already. */
const unrecorded = (commit: keyof typeof outcome, error: unknown): CallError =>
  callErrorOf({
    ok: false,
    code: "internal",
    message: `the receipt could not be written: ${error instanceof Error ? error.message : String(error)}${outcome[commit]}`,
    hint: "mend the data folder (disk space, permissions), then run `caisson verify`",
    ...(commit === "none" ? {} : { retryable: false }),
    details: { commit },
  })

const driverOf = (progress: Progress): { driver?: string } =>
  "driver" in progress ? { driver: progress.driver.key } : {}

const committedOf = (effects: readonly ReportedEffect[]): Committed => {
  const kept = effects.filter((effect) => effect.committed)
  if (kept.length === 0) return "none"
  return kept.length === effects.length ? "all" : new Set(kept.map((effect) => effect.path.toWellFormed()))
}

/** What its action stands for, of a call that committed all that it did. */
const firedBy = (progress: Progress): readonly string[] | undefined => {
  if (!("tool" in progress) || progress.plan) return undefined
  const { firesEvents = [] } = progress.action ?? {}
  return firesEvents.length === 0 ? undefined : firesEvents
}

const approvalOf = (
  held: Readonly<Record<string, unknown>> | undefined,
): Pick<Extract<Envelope, { ok: false }>, "approval"> => {
  const { id, expires } = held ?? {}
  if (typeof id !== "string" || typeof expires !== "string") return {}
  return { approval: { id, url: approvalUrl(id), expires } }
}

/** One receipt, and the envelope that names it. */
export const record = async (
  core: HostCore,
  log: AuditLog,
  trail: Trail,
  end: Success | Failure,
): Promise<Envelope> => {
  const { progress, effects, denied, timings, backend } = trail
  const error = end.ok ? undefined : callErrorOf(end)
  const seen = trail.access === undefined ? {} : { access: trail.access }
  const base = {
    call: progress.call,
    ...driverOf(progress),
    effects,
    denied: tellDenials(denied, "driver" in progress ? progress : undefined),
    ...seen,
  }
  try {
    const fired = end.ok ? firedBy(progress) : undefined
    const schemas = "tool" in progress ? keepSchemas(core.data, progress.tool) : undefined
    const rows = trail.rows ?? (await receiptRows(progress, effects, denied, await trail.ran))
    const event = await log.append(
      receiptOf({
        progress,
        rows,
        committed: committedOf(effects),
        timings,
        config: core.config,
        ...(error === undefined ? {} : { error }),
        ...(end.ok || end.evidence === undefined ? {} : { evidence: end.evidence }),
        ...(trail.held === undefined ? {} : { held: trail.held }),
        ...(backend === undefined ? {} : { backend }),
        ...(schemas === undefined ? {} : { schemas }),
        ...(fired === undefined ? {} : { fired }),
      }),
    )
    const receipt = `sha256:${event?.hash ?? ""}`
    if (fired !== undefined) progress.tell({ type: "fired", events: fired })
    if (!end.ok)
      return { ok: false, error: error as CallError, ...base, receipt, ...approvalOf(trail.held ?? end.request) }
    return {
      ok: true,
      value: end.value,
      ...base,
      receipt,
      ...(end.stderr === undefined ? {} : { stderr: end.stderr }),
      ...(end.notes.length > 0 ? { notes: end.notes } : {}),
    }
  } catch (fault) {
    return {
      ok: false,
      error: unrecorded(commitOf(effects, end.ok ? undefined : end.details), fault),
      ...base,
      receipt: "none",
    }
  }
}
