/**
 * Whether a call that ran and failed invites its caller to run it again. Pure.
 *
 * Guarantees: of every kind of driver alike, a call that may have changed something which throwing its layer away does not
 * undo says so (`details.commit: "unknown"`), and is retryable only where its contract, or the key that its service knows it
 * by, says that a second run does no harm; whatever a program, a function or a service says of itself. Known not to have
 * been done counts as that alone where the host saw it: nothing was sent, or the other side refused it.
 */
import { mutatesOutside } from "../../access/decide.ts"
import type { Failure, Success } from "../../failure.ts"
import type { Ran } from "../steps.ts"

type Call = Pick<Ran, "tool" | "command" | "nesting">

/** A call that its program asked for may have changed something that nobody undoes; its contract vouches for none of that. */
const isHarmless = ({ tool, command, nesting }: Call): boolean =>
  nesting?.mayHaveChanged !== true && (tool.idempotent || (command.run === "hosted" && command.repeatable === true))

/** Of a call that ran. */
export const notInvited = (call: Call, end: Success | Failure): Success | Failure =>
  // Asked for effects in the workspace, once those outside were allowed: nothing failed.
  end.ok || end.code === "approval_required" ? end : perhapsDone(call, end)

export const perhapsDone = (call: Call, end: Failure): Failure => {
  const within = call.nesting?.mayHaveChanged === true
  if (!within && (end.undone === true || mutatesOutside(call.tool).length === 0)) return end
  return {
    ...end,
    ...(isHarmless(call) ? {} : { retryable: false }),
    details: { ...end.details, commit: "unknown" },
  }
}
