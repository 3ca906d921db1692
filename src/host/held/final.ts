/**
 * What a held call answered in the end, in place of the answer that said that it waits.
 *
 * Guarantees: pure. Whoever asks for the call again, by its id or its key, is told what became of it, and never that a
 * person still has to say yes.
 */
import { callErrorOf } from "../failure.ts"
import type { HeldCall } from "../store/store.ts"
import type { CallError, Envelope } from "../types.ts"
import { factsOf } from "./facts.ts"
import type { HeldAnswer } from "./files.ts"

export interface FinalEnd {
  readonly error?: CallError
  readonly committed: boolean
  readonly receipt: string
}

const lost = callErrorOf({
  ok: false,
  code: "commit_failed",
  message: "what the call answered is not what was held",
  details: {},
})

export const finalEnvelope = (
  held: Pick<HeldCall, "id" | "facts">,
  answer: HeldAnswer | undefined,
  { error, committed, receipt }: FinalEnd,
): Envelope => {
  const base = {
    call: held.id,
    driver: factsOf(held).driver,
    effects: (answer?.effects ?? []).map((effect) => ({ ...effect, committed })),
    denied: answer?.denied ?? [],
    receipt,
  }
  if (error !== undefined || answer === undefined) return { ok: false, error: error ?? lost, ...base }
  return { ok: true, value: answer.value, ...base, ...(answer.notes.length > 0 ? { notes: answer.notes } : {}) }
}
