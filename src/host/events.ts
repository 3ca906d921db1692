/** What an observer of a call hears while it happens. */
import type { JsonValue } from "../manifest/types.ts"
import type { Denial } from "../sandbox/backend.ts"
import type { InstallProgress } from "./install/types.ts"

export type EventBody =
  | { readonly type: "admitted"; readonly tool: string }
  | { readonly type: "installing"; readonly driver: string; readonly progress: InstallProgress }
  | { readonly type: "routed"; readonly driver: string; readonly kind: string }
  | { readonly type: "sealed"; readonly profileDigest: string }
  | { readonly type: "started"; readonly attempt: number }
  /** `dropped`: bytes of either stream that were left out just before */
  | {
      readonly type: "output"
      readonly stream: "stdout" | "stderr"
      readonly bytes: Uint8Array
      readonly dropped?: number
    }
  /** a part of the result, or word of how far it is; `dropped`: how many were left out just before */
  | { readonly type: "progress"; readonly value: JsonValue; readonly dropped?: number }
  | { readonly type: "denied"; readonly denial: Denial }
  | { readonly type: "judged"; readonly verdict: string; readonly effects: number }
  /** what the tool's action stands for came about: told once its effects are committed, and never before */
  | { readonly type: "fired"; readonly events: readonly string[] }
  | { readonly type: "held"; readonly id: string; readonly expires: string }
  | {
      readonly type: "settled"
      readonly ok: boolean
      readonly code?: string
      readonly commit: "committed" | "unknown" | "none"
    }

/** `at`: milliseconds since the epoch. */
export type CallEvent = { readonly seq: number; readonly at: number; readonly call: string } & EventBody
export type Tell = (event: EventBody) => void
