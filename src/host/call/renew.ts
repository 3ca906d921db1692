/**
 * After the run: a call that failed because its login had ended.
 *
 * Guarantees: tokens are refreshed once for all calls that found them old, and the call is run once more with the new ones
 * where that does no harm; else the caller is told what was done and what is left to do. Nobody is signed out for what the
 * network did, or for a sign that the driver's own proof does not bear out.
 */
import { mutatesOutside } from "../access/decide.ts"
import type { Failure } from "../failure.ts"
import { ownerOf, signInNeeded } from "./sign-in.ts"
import type { HostCore } from "./core.ts"
import type { Judged } from "./steps.ts"

/** The failure of the tool itself, where it has a sign; a violation says nothing of a login. */
const signOf = ({ verdict, attempt }: Judged): Pick<Failure, "expiry" | "lacks"> =>
  verdict.ok || attempt.outcome.ok || verdict.code !== attempt.outcome.code ? {} : attempt.outcome

/** A second run does no harm: nothing outside is changed, or the other side knows the call, or it refused the request. */
const isRepeatable = ({ tool, command, attempt: { outcome }, nesting }: Judged): boolean => {
  if (nesting?.mayHaveChanged === true) return false
  if (tool.idempotent || mutatesOutside(tool).length === 0) return true
  if (command.run !== "hosted" || outcome.ok) return false
  // Not where the login was refused by whatever the service redirected to once it had done what was asked.
  const isRefused = outcome.details["status"] === 401 || outcome.lacks !== undefined
  return command.repeatable === true || (isRefused && outcome.undone === true)
}

type Renewed =
  /** with new tokens */
  { readonly again: true } | { readonly again: false; readonly judged: Judged }

/** A login that is good, and not enough: the next one asks for more, where the last did not already. */
const extend = async (
  core: HostCore,
  judged: Judged,
  failure: Failure,
  scopes: readonly string[],
  mayRepeat: boolean,
): Promise<Renewed> => {
  const { driver, freshness } = judged
  const as = (verdict: Failure): Renewed => ({ again: false, judged: { ...judged, verdict } })
  if (freshness === undefined || driver.contract.auth?.login === undefined) return { again: false, judged }
  const owner = ownerOf(core, judged, driver)
  const { end } = await core.logins.lacking(owner, { scopes, freshness })
  if (end === "renewed" && mayRepeat && isRepeatable(judged)) return { again: true }
  if (end === "in-vain")
    return as({
      ...failure,
      code: "upstream_error",
      message: `${driver.key} refuses it although its login asked for what it wants (${scopes.join(" ") || "it does not say what"})`,
      hint: "ask whoever runs the service to allow it to the account that is signed in",
      retryable: false,
    })
  const needed = signInNeeded(judged, await core.logins.status(owner))
  const message = `${driver.key} needs a login for more: ${scopes.join(" ")}`
  return as({ ...failure, ...needed, message, details: { ...failure.details, ...needed.details } })
}

/** `late`: its time is over. `done`: this is the second run, with what was renewed for it. */
type MayRepeat = "yes" | "late" | "done"

/** Its tokens are newer than those that the call ran with, and the call is not run once more. */
const notRepeated = (judged: Judged, failure: Failure, may: MayRepeat): Failure => {
  const { key } = judged.driver
  const isSafe = isRepeatable(judged)
  const why = isSafe
    ? may === "late"
      ? "the call was not repeated, since its time was over"
      : "the call had been repeated already"
    : "the call was not repeated, since it may have changed something elsewhere"
  return {
    ...failure,
    code: "upstream_error",
    message: `the login of ${key} had expired and was refreshed; ${why}`,
    hint: isSafe ? "run the call again" : "look at what it did, then run it again",
    retryable: isSafe,
  }
}

export const renew = async (core: HostCore, judged: Judged, may: MayRepeat): Promise<Renewed> => {
  const { expiry: sign, lacks } = signOf(judged)
  const { verdict, driver, freshness, signal } = judged
  if (!verdict.ok && lacks !== undefined && !signal.aborted)
    return await extend(core, judged, verdict, lacks, may === "yes")
  const as = (failure: Failure): Renewed => ({ again: false, judged: { ...judged, verdict: failure } })
  if (sign === undefined || verdict.ok || freshness === undefined || signal.aborted) return { again: false, judged }
  const owner = ownerOf(core, judged, driver)
  const after = await core.logins.expired(owner, { sign, freshness, again: may === "done" })
  switch (after.end) {
    case "unclear":
      return { again: false, judged }
    case "unreachable":
      return as({
        ...verdict,
        code: "upstream_error",
        message: `the login of ${driver.key} has to be refreshed, and could not be: ${after.message}; nobody was signed out`,
        hint: "run the call again when the network is there",
        retryable: isRepeatable(judged),
      })
    case "gone":
      return as({ ...verdict, ...signInNeeded(judged, { ...(await core.logins.status(owner)), state: "expired" }) })
    case "proven":
      return as({
        ...verdict,
        code: "upstream_error",
        message: `${driver.key} refuses the call although its login was refreshed for it and is good, as its own proof says`,
        hint: `ask whoever runs the service whether this account may do it; for another one run \`caisson logout ${driver.key}\`, then \`caisson login ${driver.key}\``,
        retryable: false,
      })
    case "refreshed":
      if (may === "yes" && isRepeatable(judged)) return { again: true }
      return as(notRepeated(judged, verdict, may))
  }
}
