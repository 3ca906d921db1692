/**
 * How a program's run reads as the outcome of a call, the same for every way of running one. Pure.
 *
 * Guarantees: what a run answered stands unless it broke a limit or a rule, or was cancelled: to be ended is how a
 * conversation ends well. What the proxy and the kernel stopped is counted together.
 */
import { namedDenial } from "../../../egress-proxy/policy/explain.ts"
import type { CollectedSandbox, Denial, Ending } from "../../../sandbox/backend.ts"
import type { Failure, Success } from "../../failure.ts"
import { endingFailure } from "../../invoke/error-map.ts"
import { tail } from "../../invoke/stream-text.ts"
import type { ServedEgress } from "../core.ts"
import type { Attempt, Sealed } from "../steps.ts"
import { mergeDenials, withUnreachable } from "./stopped.ts"

type Outcome = Attempt["outcome"]

const withStderr = (failure: Failure, stderr: CollectedSandbox["stderr"]): Failure => ({
  ...failure,
  details: { ...failure.details, stderr: tail(stderr) },
})

/** How it ended is the same for every kind. */
export const failedBy = (
  sealed: Sealed,
  { stderr }: CollectedSandbox,
  ending: Exclude<Ending, { by: "exit" }>,
): Failure => {
  const { tool, profile, timeout } = sealed
  const context = { tool, network: profile.network !== "none", timeoutMs: timeout.ms }
  return withStderr(endingFailure(ending, context), stderr)
}

/** What a conversation answered, with what the program printed beside it. */
export const answered = (answer: Success | Failure, stderr: CollectedSandbox["stderr"]): Outcome => {
  if (!answer.ok) return withStderr(answer, stderr)
  const said = tail(stderr)
  return answer.stderr !== undefined || said === "" ? answer : { ...answer, stderr: said }
}

export const talkOutcome = (sealed: Sealed, exited: CollectedSandbox, answer: Success | Failure): Outcome => {
  const { ending } = exited
  return ending.by !== "exit" && ending.by !== "signal"
    ? failedBy(sealed, exited, ending)
    : answered(answer, exited.stderr)
}

/** `tapped`: what the kernel stopped; `earlier`: what attempts before this one were denied. */
export const accountOf = (
  outcome: Outcome,
  tapped: readonly Denial[],
  proxy: ServedEgress | undefined,
  earlier: readonly Denial[],
): Pick<Attempt, "reached" | "denied" | "outcome"> => {
  const nameFor = (address: string): string | undefined => proxy?.nameFor(address)
  const named = tapped.map((denial) => (denial.layer === "egress" ? namedDenial(denial, nameFor) : denial))
  return {
    reached: proxy?.reached() ?? [],
    denied: mergeDenials(earlier, named, proxy?.denials() ?? []),
    outcome: withUnreachable(outcome, proxy?.failures() ?? []),
  }
}
