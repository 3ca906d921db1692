/**
 * The end of a decision: its receipt, then what the store remembers, then what lies on disk.
 *
 * Guarantees: in that order, so that a crash anywhere in between leaves enough to finish it: who finds a claim of a dead
 * process finds its receipt in the log, or knows that there is none. A receipt that cannot be written, or a store that
 * cannot be, changes nothing of what was committed; it is told, and finished by the next host.
 */
import { forgetNotes, txRootOf } from "../../sandbox/effects/index.ts"
import { callErrorOf } from "../failure.ts"
import type { CallError } from "../types.ts"
import type { Claim, HeldCall, SettledCall } from "../store/store.ts"
import type { HeldContext } from "./context.ts"
import { factsOf } from "./facts.ts"
import { readAnswer, removeHeldFolder } from "./files.ts"
import { type FinalEnd, finalEnvelope } from "./final.ts"
import { type DecisionEnd, decisionDraft } from "./receipts.ts"

interface SettledDecision {
  readonly receipt: string
  /** the end as it came out, where evidence or store failed */
  readonly error?: CallError
}

export const tidy = async ({ core }: HeldContext, call: string): Promise<void> => {
  forgetNotes(txRootOf(core.data), call)
  await removeHeldFolder(core.data, call)
}

/** A decision whose receipt is written: the store has it, with what the call answered in the end; the layer goes. */
export const settleClaim = async (
  context: HeldContext,
  held: HeldCall,
  claim: Claim,
  verdict: string,
  end: FinalEnd,
): Promise<void> => {
  const { committed, receipt } = end
  const answer = readAnswer(context.core.data, held.id, factsOf(held).answer)
  const envelope = finalEnvelope(held, answer, end) as unknown as SettledCall["envelope"]
  const store = await context.store()
  await store.settle(held.id, claim.number, { verdict, committed, receipt }, { endedMs: claim.atMs, envelope })
  await tidy(context, held.id)
}

const words = (error: unknown): string => (error instanceof Error ? error.message : String(error))

export const endClaim = async (
  context: HeldContext,
  held: HeldCall,
  claim: Claim,
  end: DecisionEnd,
): Promise<SettledDecision> => {
  let receipt: string
  try {
    const event = await context.log.append(decisionDraft(held, claim, end))
    receipt = `sha256:${event?.hash ?? ""}`
  } catch (error) {
    // The claim stays: whoever finds it writes the receipt.
    const failed = callErrorOf({
      ok: false,
      code: "internal",
      message: `the receipt could not be written: ${words(error)}${end.committed ? "; the effects were committed" : ""}`,
      hint: "mend the data folder (disk space, permissions), then run `caisson approvals`",
      retryable: false,
      details: { commit: end.committed ? "committed" : "none" },
    })
    return { receipt: "none", error: failed }
  }
  const settled = { receipt, ...(end.error === undefined ? {} : { error: end.error }) }
  try {
    const { committed, error } = end
    if (end.final) await settleClaim(context, held, claim, error?.code ?? "ok", { ...settled, committed })
    else await (await context.store()).release(held.id, claim.number)
  } catch {
    // The receipt says how it ended; the next host brings the store in line with it.
  }
  return settled
}
