/**
 * Step 8: commit or discard.
 *
 * Guarantees: exactly one of the two, and commit only for a verdict that is ok and no plan. A commit that met a
 * concurrent change or a full disk left the workspace as it was and ends the call; one that was broken off is reported
 * as unknown, never as anything else.
 * Does not: write the receipt; `perform` does, for every way a call can end.
 */
import type { Failure, Success } from "../failure.ts"
import type { ReportedEffect } from "../types.ts"
import type { Judged } from "./steps.ts"

export interface Settled {
  readonly end: Success | Failure
  readonly effects: readonly ReportedEffect[]
}

export const settle = async (judged: Judged): Promise<Settled> => {
  const {
    verdict,
    effects,
    plan,
    attempt: { exited },
    signal,
    timeout,
  } = judged
  if (!verdict.ok || plan) {
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
