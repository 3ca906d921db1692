/**
 * What is left of an attempt that wrote nothing, or whose layer nobody may use: there is nothing to judge, keep, hold or
 * throw away.
 */
import type { Captured, Unavailable } from "../../../sandbox/backend.ts"
import type { SealedLayers } from "../../../sandbox/layers/sealed-layers.ts"
import type { Failure } from "../../failure.ts"
import type { Ended } from "../steps.ts"
import { notTaken } from "./not-taken.ts"

const unwritten: SealedLayers = {
  writes: { effects: [], bytes: 0 },
  keepHome: async () => ({ ok: true }),
  commit: async () => ({ ok: true }),
  look: async () => [],
  hold: async () => ({ ok: false, message: "there is nothing to hold" }),
  discard: () => undefined,
}

/** `layers`: absent where it wrote nothing. */
export const endedWith = (
  ending: Ended["ending"],
  wallMs: number,
  { layers = unwritten, stderr }: { readonly layers?: SealedLayers | undefined; readonly stderr?: Captured } = {},
): Ended => {
  const { writes, keepHome, commit, look, hold } = layers
  const discard = async (): Promise<void> => layers.discard()
  return {
    ending,
    usage: { wallMs },
    writes,
    ...(stderr === undefined ? {} : { stderr }),
    keepHome,
    commit,
    look,
    hold,
    discard,
    [Symbol.asyncDispose]: discard,
  }
}

/** It ran, and what it left cannot be told: what it did elsewhere is on the account all the same. */
export const leftUntold = (
  refusal: Unavailable,
  wallMs: number,
): { readonly exited: Ended; readonly outcome: Failure } => ({
  exited: endedWith({ by: "answer" }, wallMs),
  outcome: notTaken(refusal),
})
