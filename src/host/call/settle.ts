/**
 * Step 8: commit, hold or discard.
 *
 * Guarantees: exactly one of the three; commit only for a verdict that is ok and no plan (or, of a tool that failed, the
 * output files of its contract alone), hold only where a person's yes
 * is all that is missing and nobody was there to ask. A commit that met a
 * concurrent change or a full disk left the workspace as it was and ends the call; one that was broken off is reported
 * as unknown, never as anything else.
 * Does not: write the receipt; `perform` does, for every way a call can end.
 */
import type { JsonObject } from "../../manifest/types.ts"
import { mutatesOutside } from "../access/decide.ts"
import type { Failure, Success } from "../failure.ts"
import type { ReportedEffect } from "../types.ts"
import { notInvited } from "./judging/second-run.ts"
import type { HoldOutcome, Judged } from "./steps.ts"

interface Settled {
  readonly end: Success | Failure
  readonly effects: readonly ReportedEffect[]
  /** it is on disk, and waits for an answer */
  readonly held?: JsonObject
}

/** Where the daemon's API tells of it and takes the answer. */
export const approvalUrl = (id: string): string => `/v1/approvals/${id}`

/** A flag is of use at the command line alone: whoever else is told of it cannot type it, and should not look for a way. */
const isAtCommandLine = ({ caller }: Judged): boolean => caller.how === "process" || caller.how === "socket"

const waits = (judged: Judged, id: string): string => {
  if (!isAtCommandLine(judged))
    return `a person looks at it and approves or denies it: ${approvalUrl(id)}, or \`caisson approvals show ${id}\``
  const again = mutatesOutside(judged.tool).length > 0 ? "" : ", or run it again with --yes"
  return `look at it with \`caisson approvals show ${id}\`, then approve or deny it${again}`
}

const held = (judged: Judged, verdict: Failure, { id, expires }: Extract<HoldOutcome, { ok: true }>): Failure => ({
  ...verdict,
  message: `${verdict.message}; they are held until ${expires}`,
  hint: waits(judged, id),
  details: {
    ...verdict.details,
    approval: { id, url: approvalUrl(id), expires, class: verdict.details["approval"] ?? "on-mutate" },
  },
})
const notHeld = (judged: Judged, verdict: Failure, message: string): Failure => ({
  ...verdict,
  message: `${verdict.message}; they could not be held: ${message}`,
  hint: isAtCommandLine(judged)
    ? "look at the effects, then run it again with --yes"
    : "look at the effects; the operator makes room, or a person gives a grant",
  details: { ...verdict.details, not_held: message },
})

/** Where nothing but an answer is missing, the call waits for one, with no process alive. */
const holdOrDiscard = async (judged: Judged, verdict: Failure, keep: Keep | undefined): Promise<Settled> => {
  const { ifApproved, effects, attempt, signal, tell } = judged
  if (ifApproved === undefined || keep === undefined || signal.aborted) {
    await attempt.exited.discard()
    return { end: verdict, effects }
  }
  const outcome = await keep(judged, ifApproved)
  if (!outcome.ok) {
    await attempt.exited.discard()
    return { end: notHeld(judged, verdict, outcome.message), effects }
  }
  const { id, expires, bytes, layer } = outcome
  tell({ type: "held", id, expires })
  return { end: held(judged, verdict, outcome), effects, held: { id, expires, bytes, layer } }
}

/** The tool failed, and left files that its contract gives out whatever becomes of it. */
const keepOutputs = async (judged: Judged, verdict: Failure, kept: readonly string[]): Promise<Settled> => {
  const { attempt, effects, signal, timeout } = judged
  const done = await attempt.exited.commit(AbortSignal.any([signal, AbortSignal.timeout(timeout.ms)]), kept)
  const paths = new Set(kept)
  const end = (details: JsonObject, message = verdict.message): Failure => ({
    ...verdict,
    message,
    details: { ...verdict.details, ...details },
  })
  if (done.ok)
    return {
      end: end({ files_kept: [...kept] }, `${verdict.message}; of what it wrote, its output files were kept`),
      effects: effects.map((effect) => ({ ...effect, committed: paths.has(effect.path) })),
    }
  if (done.reason === "unknown") return { end: { ...end({ commit: "unknown" }), retryable: false }, effects }
  return { end: end({ files_kept: [] }, `${verdict.message}; its output files could not be kept`), effects }
}

/** Keeps a judged call on disk until a person answers. */
type Keep = (judged: Judged, answer: Success) => Promise<HoldOutcome>

const settled = async (judged: Judged, keep: Keep | undefined): Promise<Settled> => {
  const {
    verdict,
    effects,
    plan,
    attempt: { exited },
    signal,
    timeout,
  } = judged
  if (!verdict.ok && judged.keptFiles !== undefined && !signal.aborted)
    return keepOutputs(judged, verdict, judged.keptFiles)
  if (!verdict.ok) return holdOrDiscard(judged, verdict, plan ? undefined : keep)
  if (plan) {
    await exited.discard()
    return { end: verdict, effects }
  }
  const done = await exited.commit(AbortSignal.any([signal, AbortSignal.timeout(timeout.ms)]))
  if (done.ok) return { end: verdict, effects: effects.map((effect) => ({ ...effect, committed: true })) }
  if (done.reason === "conflict")
    return {
      end: {
        ok: false,
        code: "conflict",
        message: `the workspace changed underneath the call: ${done.paths.slice(0, 5).join(", ")}`,
        details: { paths: done.paths.slice(0, 20), total: done.paths.length },
      },
      effects,
    }
  if (done.reason === "unknown")
    return {
      end: {
        ok: false,
        code: "internal",
        message: `whether the effects were committed is not known: ${done.message}; the next call on this workspace finds it whole, with all of them or none`,
        hint: "make another call on the workspace, then look at it",
        retryable: false,
        details: { commit: "unknown" },
      },
      effects,
    }
  if (signal.aborted)
    return {
      end: { ok: false, code: "cancelled", message: `${done.message}; nothing was committed`, details: {} },
      effects,
    }
  return {
    end: {
      ok: false,
      code: "commit_failed",
      message: `the effects could not be committed: ${done.message}; the workspace is as before`,
      details: {},
    },
    effects,
  }
}

export const settle = async (judged: Judged, keep?: Keep): Promise<Settled> => {
  const done = await settled(judged, keep)
  return { ...done, end: notInvited(judged, done.end) }
}
