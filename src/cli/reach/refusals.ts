/** What the daemon refused, or did not answer, in the words of calls: code, message, hint, and whether anything was done. */
import type { ProblemError, Unreachable } from "../../client/index.ts"
import { callErrorOf, type Failure } from "../../host/failure.ts"
import type { CallError, Envelope } from "../../host/types.ts"

export const errorOfProblem = ({ problem }: ProblemError): CallError =>
  callErrorOf({
    ok: false,
    code: problem.code as Failure["code"],
    message: problem.detail,
    hint: problem.hint,
    details: {},
  })

const inWords: Record<Unreachable["why"], string> = {
  absent: "the daemon of this data folder has ended",
  broken: "the daemon ended before it had answered",
  silent: "the daemon does not answer any more",
  strange: "what answers at the daemon's socket is not the daemon",
}

/** Where nothing can have been done: a question, or a request that was never sent. */
export const errorOfSilence = ({ why }: Unreachable): CallError =>
  callErrorOf({
    ok: false,
    code: "internal",
    message: `${inWords[why]}; nothing was run`,
    hint:
      why === "absent"
        ? "run the command again: without a daemon it runs in its own process"
        : "look after the daemon, or set CAISSON_NO_DAEMON=1 to run without it",
    details: { commit: "none" },
  })

/** A call, or an answer about one, that was sent: it may have been done, and is never sent again by itself. */
const errorOfLoss = ({ why }: Unreachable, call: string | undefined): CallError =>
  callErrorOf({
    ok: false,
    code: "timeout",
    message: `${inWords[why]}; whether the call's effects were committed is not known`,
    hint: `\`caisson receipts${call === undefined ? "" : ` --call ${call}`}\` tells what is on record; look at the workspace before you call again`,
    retryable: false,
    details: { commit: "unknown" },
  })

const envelopeOf = (error: CallError, call = "none"): Envelope => ({
  ok: false,
  error,
  call,
  effects: [],
  denied: [],
  receipt: "none",
})

export const refusedEnvelope = (problem: ProblemError): Envelope => envelopeOf(errorOfProblem(problem))
export const lostEnvelope = (fault: Unreachable, call?: string): Envelope =>
  envelopeOf(fault.why === "absent" && call === undefined ? errorOfSilence(fault) : errorOfLoss(fault, call), call)
