/**
 * After each attempt: the driver's own state is kept, whatever becomes of the call's effects.
 *
 * Guarantees: a token that was renewed during a call that is refused, planned, failed or repeated is there at the next
 * one; state that could not be kept is an error that the caller sees, never less. Only paths that the driver declares
 * are kept (`home.keep`), all of them or none.
 * Does not: keep what a broken sandbox left, nor the home of a call that wrote more than it may.
 */
import type { CommitResult } from "../../../sandbox/backend.ts"
import type { Failure } from "../../failure.ts"
import type { Ended, HomeOutcome, Judged } from "../steps.ts"

const unfit = (ending: Ended["ending"]): string | undefined => {
  if (ending.by === "infrastructure") return "the sandbox broke"
  return ending.by === "limit" && ending.limit === "disk" ? "the call wrote more than it may" : undefined
}

export const keepHome = async (exited: Ended): Promise<readonly HomeOutcome[]> => {
  const effects = exited.home?.effects ?? []
  if (effects.length === 0) return []
  const message = unfit(exited.ending)
  const result: CommitResult =
    message === undefined ? await exited.keepHome() : { ok: false, reason: "failed", message }
  return [{ effects, result }]
}

const why = (result: Exclude<CommitResult, { ok: true }>): string =>
  result.reason === "conflict" ? `${result.paths.slice(0, 5).join(", ")} changed meanwhile` : result.message

/** A verdict that says so where the driver's state was not kept. */
export const withHomes = (judged: Judged): Judged => {
  const lost = judged.homes.map(({ result }) => result).find((result) => !result.ok)
  if (lost === undefined || lost.ok) return judged
  const { verdict } = judged
  const words = `the driver's own state was not kept: ${why(lost)}`
  const failure: Failure = verdict.ok
    ? {
        ok: false,
        code: lost.reason === "conflict" ? "conflict" : lost.reason === "failed" ? "commit_failed" : "internal",
        message: `${words}; nothing was committed`,
        details: { home: lost.reason },
      }
    : { ...verdict, message: `${verdict.message}; ${words}`, details: { ...verdict.details, home: lost.reason } }
  // Nor may a person's yes commit effects whose driver lost its state.
  const { ifApproved: _none, ...rest } = judged
  return { ...rest, verdict: failure }
}
