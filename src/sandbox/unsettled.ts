/** What is left of a run whose processes were not seen to end, on any backend: nothing that may be used. */
import type { CommitResult } from "./backend.ts"
import type { WriteSet } from "./effects/types.ts"

export const NO_WRITES: WriteSet = { effects: [], bytes: 0 }
export const UNSEEN = {
  ok: false,
  reason: "failed",
  message: "the sandbox's processes were not seen to end",
} as const satisfies CommitResult
