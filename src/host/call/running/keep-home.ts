/**
 * After each attempt: the driver's own state is kept, whatever becomes of the call's effects.
 *
 * Guarantees: a token that was renewed during a call that is refused, planned, failed or repeated is there at the next
 * one; state that could not be kept is an error that the caller sees, never less. Only paths that the driver declares
 * are kept (`home.keep`), all of them or none.
 * Does not: keep what a broken sandbox left, nor the home of a call that wrote more than it may.
 */
import type { Failure } from "../../failure.ts"
import type { HomeKept, OpenedHome } from "../../homes/sealed-homes.ts"
import type { Ended, HomeOutcome, Judged } from "../steps.ts"
import { UNSEEN } from "../../../sandbox/unsettled.ts"

const unfit = (ending: Ended["ending"]): string | undefined => {
  if (ending.by === "infrastructure") return "the sandbox broke"
  return ending.by === "limit" && ending.limit === "disk" ? "the call wrote more than it may" : undefined
}

/** `opened`: the home that was handed to it, where that is kept encrypted; else its sandbox keeps it. */
export const keepHome = async (exited: Ended, opened?: OpenedHome): Promise<readonly HomeOutcome[]> => {
  const effects = (exited.home?.effects ?? []).filter(({ path }) => opened?.isGiven?.(path) !== true)
  if (effects.length === 0) return []
  const message = unfit(exited.ending)
  if (message !== undefined) return [{ effects, result: { ok: false, reason: "failed", message } }]
  if (opened === undefined) return [{ effects, result: await exited.keepHome() }]
  const { homeAfter } = exited
  if (homeAfter === undefined) return [{ effects, result: UNSEEN }]
  return [{ effects, result: await opened.keep(homeAfter) }]
}

const why = (result: Exclude<HomeKept, { ok: true }>): string =>
  result.reason === "conflict" ? `${result.paths.slice(0, 5).join(", ")} changed meanwhile` : result.message

/** A verdict that says so where the driver's state was not kept. That of a login which was ended is wanted by nobody. */
export const withHomes = (judged: Judged): Judged => {
  const lost = judged.homes.map(({ result }) => result).find((result) => !result.ok && result.reason !== "logged-out")
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
  const { ifApproved: _none, keptFiles: _neither, ...rest } = judged
  return { ...rest, verdict: failure }
}
