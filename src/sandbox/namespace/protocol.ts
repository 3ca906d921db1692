/**
 * What the host and its launcher say to each other, over the launcher's IPC channel.
 *
 * The launcher is one process in namespaces of its own that mounts, starts and watches sandboxes. Requests carry
 * an id and get exactly one answer. Listeners travel as handles in messages of their own, before the answer.
 */
import type { Captured, CommitResult, Denial, Ending, Job, SandboxProfile } from "../backend.ts"
import type { WriteSet } from "../effects/types.ts"
import type { UserBlock } from "../identities.ts"
import type { LayerTransactions } from "../layers/call-layers.ts"
import type { HeldCommit, HeldCommitResult, HoldAnswer, HoldRequest } from "../layers/held.ts"
import type { LayerPlace } from "../layers/store.ts"
import type { ListenerRole } from "../network/listeners.ts"

export type Request =
  | { readonly op: "ping" }
  | { readonly op: "prepare"; readonly profile: SandboxProfile }
  | {
      readonly op: "run"
      readonly sandbox: number
      readonly job: Job
      readonly transactions: LayerTransactions
    }
  | { readonly op: "cancel"; readonly sandbox: number }
  | { readonly op: "keep-home"; readonly sandbox: number }
  | { readonly op: "commit"; readonly sandbox: number }
  | { readonly op: "hold"; readonly sandbox: number; readonly request: HoldRequest }
  | { readonly op: "commit-held"; readonly held: HeldCommit; readonly txRoot: string }
  | { readonly op: "discard"; readonly sandbox: number }
export type RequestMessage = Request & { readonly id: number }

export interface Refusal {
  readonly ok: false
  readonly control: string
  readonly message: string
  readonly fix: string
}
export interface PrepareAnswer {
  readonly ok: true
  readonly sandbox: number
  /** the seat that its listeners were handed over under */
  readonly seat: number
}
export interface RunAnswer {
  readonly ok: true
  readonly ending: Ending
  readonly stdout: Captured
  readonly stderr: Captured
  readonly denied: readonly Denial[]
  readonly usage: { readonly wallMs: number; readonly cpuMs?: number; readonly peakMemoryBytes?: number }
  readonly writes: WriteSet
  readonly home?: WriteSet
}
export type Answer =
  | PrepareAnswer
  | RunAnswer
  | CommitResult
  | HoldAnswer
  | HeldCommitResult
  | Refusal
  | { readonly ok: true }

export type LauncherMessage =
  | { readonly kind: "ready"; readonly facts: LauncherFacts }
  | { readonly kind: "failed"; readonly refusal: Refusal }
  | { readonly kind: "listener"; readonly seat: number; readonly role: ListenerRole }
  | { readonly kind: "answer"; readonly id: number; readonly answer: Answer }
  | { readonly kind: "broken"; readonly id: number; readonly message: string }

/** What this machine offered the launcher. */
export interface LauncherFacts {
  readonly privileged: boolean
  /** has each sandbox a user of its own? */
  readonly ownUsers: boolean
  readonly groups: "v1" | "v2" | "none"
  readonly groupsReason: string
  readonly controllers: { readonly memory: boolean; readonly pids: boolean; readonly cpu: boolean }
  /** where layers lie, by what was shown to work */
  readonly layers: LayerPlace
  /** the host removes these when the launcher is gone */
  readonly groupFolders: readonly string[]
}
export interface LauncherOptions {
  /** where the layers of calls lie */
  readonly layers: LayerPlace
  readonly hostPid: number
  readonly hostUid: number
  /** an empty folder of this program's own, for the launcher's private mounts */
  readonly base: string
  /** as root: the users that sandboxes run as */
  readonly users?: UserBlock
  /** the host's data folder, so that a process list tells whose launcher it is */
  readonly data: string
  /** every process alive when the launcher was started, so that groups of dead hosts can be told */
  readonly livePids: readonly number[]
  /** when that list was made, in milliseconds since the epoch */
  readonly listedAt: number
}
