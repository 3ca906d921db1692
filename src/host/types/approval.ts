/** What a person is asked to say yes to, and what waits until somebody does. */
import type { JsonObject } from "../../manifest/types.ts"
import type { ListOptions } from "./asking.ts"
import type { ContentChange, ReportedDenial, ReportedEffect } from "./envelope.ts"

/** What a person is asked. The answer holds for exactly what is shown here. */
export interface ApprovalQuestion {
  readonly call: string
  readonly tool: string
  /** absent before a driver was chosen */
  readonly driver?: string
  /** `call`: before anything runs. `effects`: the call ran, no process of it is left, and nothing is committed yet. */
  readonly about: "call" | "effects"
  readonly approval: "auto" | "on-mutate" | "always"
  readonly message: string
  readonly mutates: readonly string[]
  /** empty before the run */
  readonly effects: readonly ReportedEffect[]
  readonly denied: readonly ReportedDenial[]
  /** the same effects with what files hold before and after, deletions first; empty before the run */
  readonly changes: readonly ContentChange[]
  /** aborted when the answer no longer matters: the call was cancelled, or waited too long */
  readonly signal: AbortSignal
}

/** A call that waits for a person's answer: about what it changed, or before it runs. */
export interface HeldApproval {
  /** the call's id */
  readonly id: string
  /** nothing was run: the question is whether the call may be made; absent: about what a call changed */
  readonly about?: "call"
  /** `id@major` */
  readonly tool: string
  readonly driver: string
  readonly user: string
  readonly workspace: string
  readonly approval: "auto" | "on-mutate" | "always"
  /** when it was held, and until when it is */
  readonly held: string
  readonly expires: string
  /** how many paths it changes */
  readonly changes: number
  readonly bytes: number
  /** what was remembered of it cannot be read any more: told to operators alone; denying it throws it away */
  readonly damaged?: true
}

export interface HeldApprovalDetail extends HeldApproval {
  /** false: what lies on disk is not what was held, so nothing of it is shown, nor can it be approved */
  readonly intact: boolean
  readonly mutates: readonly string[]
  /** deletions first */
  readonly effects: readonly ReportedEffect[]
  readonly denied: readonly ReportedDenial[]
  /** the same effects with what files hold before and after, deletions first; empty where it is not intact */
  readonly content: readonly ContentChange[]
  /** of a call that was not run: why it is asked about, what it would be given, and what it costs */
  readonly message?: string
  readonly input?: JsonObject
  readonly context?: JsonObject
  readonly cost?: JsonObject
}

export interface DecideOptions extends ListOptions {
  readonly signal?: AbortSignal
  /** why, in words, for the decision's receipt */
  readonly reason?: string
}
