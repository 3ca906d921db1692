/** A driver brought to this machine, looked at, and cleared away again. */
import type { JsonObject } from "../../manifest/types.ts"
import type { CallError } from "../failure.ts"
import type { FrozenLayer, InstallProgress } from "../install/types.ts"
import type { ListOptions } from "./asking.ts"

export interface InstallDriverOptions extends ListOptions {
  readonly signal?: AbortSignal
  readonly onProgress?: (progress: InstallProgress) => void
}

export type InstallReport =
  | {
      readonly ok: true
      /** `id@major` */
      readonly driver: string
      /** what its version check found */
      readonly version?: string
      /** none where the driver brings no packages: then its program is on this machine */
      readonly layers: readonly Pick<FrozenLayer, "digest" | "source" | "packages">[]
    }
  | { readonly ok: false; readonly error: CallError }

export interface ReviewOptions extends ListOptions {
  /** the digest of a word that waits, to be accepted from now on */
  readonly accept?: string
  /** what the driver asks for, in lines: remembered, and told beside what was accepted of it */
  readonly asks?: readonly string[]
}

/** A tool of the server behind a driver, as the server describes it. */
export interface ReviewedTool {
  readonly name: string
  /** `offer` is absent where it was too long to be kept */
  readonly accepted: { readonly digest: string; readonly at: string; readonly by?: string; readonly offer?: JsonObject }
  /** what it says now, where that is something else: calls of it are refused */
  readonly waiting?: { readonly digest: string; readonly at: string; readonly offer?: JsonObject }
}

export type ReviewReport =
  | {
      readonly ok: true
      readonly driver: string
      readonly tools: readonly ReviewedTool[]
      /** there where `asks` was given once; `offer.rows` are its lines. Nothing is refused while some wait. */
      readonly asks?: ReviewedTool
    }
  | { readonly ok: false; readonly error: CallError }

export type PruneReport =
  /** `removed`: digests */
  | { readonly ok: true; readonly removed: readonly string[]; readonly bytes: number }
  | { readonly ok: false; readonly error: CallError }
