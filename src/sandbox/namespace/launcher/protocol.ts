/**
 * What the host and its launcher say to each other, over the launcher's IPC channel.
 *
 * The launcher is one process in namespaces of its own that mounts, starts and watches sandboxes. Requests carry
 * an id and get exactly one answer; `run` is told to have started before that. Listeners travel as handles in messages
 * of their own, before the answer that they belong to; the program's streams are named by descriptor, and opened there.
 */
import type { Socket } from "node:net"
import type {
  CommitResult,
  Denial,
  Ending,
  Exchanged,
  ExitedSandbox,
  Glance,
  HomeAfter,
  Job,
  Observed,
  SandboxShape,
  Unavailable,
} from "../../backend.ts"
import type { WriteSet } from "../../effects/types.ts"
import type { FolderIdentity } from "../../folder.ts"
import type { UserBlock } from "../../identities.ts"
import type { LayerTransactions } from "../../layers/call-layers.ts"
import type { HeldCommit, HeldCommitResult, HoldAnswer, HoldRequest } from "../../layers/held.ts"
import type { LookBounds, Looked } from "../../layers/look.ts"
import type { LayerPlace } from "../../layers/store.ts"
import type { ListenerRole } from "../../network/listeners.ts"

/** A job whose workspace was looked at. */
interface AdmittedJob extends Job {
  readonly workspace: FolderIdentity
}

export type Request =
  | { readonly op: "ping" }
  | { readonly op: "prepare"; readonly shape: SandboxShape }
  | {
      readonly op: "run"
      readonly sandbox: number
      readonly job: AdmittedJob
      readonly transactions: LayerTransactions
      /** path of the terminal's end that the program gets */
      readonly terminal?: string
    }
  | { readonly op: "glance"; readonly sandbox: number }
  /** a connection to what its program listens with */
  | { readonly op: "reach"; readonly sandbox: number; readonly port: number }
  | { readonly op: "signal"; readonly sandbox: number; readonly signal: NodeJS.Signals }
  /** ends a run, or a commit's wait for another commit */
  | { readonly op: "stop"; readonly sandbox: number; readonly ending: Ending }
  | { readonly op: "keep-home"; readonly sandbox: number }
  | { readonly op: "commit"; readonly sandbox: number; readonly only?: readonly string[] }
  | { readonly op: "hold"; readonly sandbox: number; readonly request: HoldRequest }
  | { readonly op: "look"; readonly sandbox: number; readonly bounds: LookBounds }
  | { readonly op: "commit-held"; readonly held: HeldCommit; readonly txRoot: string }
  /** ends the wait of the held commit of that name for another commit */
  | { readonly op: "cancel-held"; readonly name: string }
  | { readonly op: "discard"; readonly sandbox: number }
export type RequestMessage = Request & { readonly id: number }

export interface Refusal {
  readonly ok: false
  readonly control: string
  readonly message: string
  readonly fix: string
  readonly file?: NonNullable<Unavailable["file"]>
}
export interface PrepareAnswer {
  readonly ok: true
  readonly sandbox: number
  /** the parked process that its listeners were handed over under */
  readonly parkedProcess: number
  /** the launcher's descriptors of our ends of the program's streams, open until it is asked to run or let go */
  readonly streams: Readonly<Record<StreamRole, number>>
}
export interface RunAnswer {
  readonly ok: true
  readonly ending: Ending
  readonly denied: readonly Denial[]
  readonly usage: ExitedSandbox["usage"]
  readonly observed?: Observed
  /** absent: its processes were not seen to end, and what they wrote is not used */
  readonly writes?: WriteSet
  readonly home?: WriteSet
  readonly homeAfter?: HomeAfter
  readonly exchanged?: Exchanged
}
export interface GlanceAnswer extends Glance {
  readonly ok: true
}
/** The connection travels as a handle with the answer; without one nobody listened there. */
export interface ReachAnswer {
  readonly ok: true
  readonly connection?: Socket
}
export interface LookAnswer {
  readonly ok: true
  readonly looked: readonly Looked[]
}
export type Answer =
  | ReachAnswer
  | PrepareAnswer
  | RunAnswer
  | GlanceAnswer
  | CommitResult
  | HoldAnswer
  | LookAnswer
  | HeldCommitResult
  | Refusal
  | { readonly ok: true }

/** The program's streams, by the host's ends. */
export type StreamRole = "stdin" | "stdout" | "stderr" | "toTool" | "fromTool"
export type LauncherMessage =
  | { readonly kind: "ready"; readonly facts: LauncherFacts }
  | { readonly kind: "failed"; readonly refusal: Refusal }
  | { readonly kind: "handle"; readonly parkedProcess: number; readonly role: ListenerRole }
  /** no call gets this parked process: its handles are of no use */
  | { readonly kind: "gone"; readonly parkedProcess: number }
  | { readonly kind: "started"; readonly id: number }
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
/** The first thing that a launcher is sent. Its one argument is the host's data folder, so that a process list tells whose it is. */
export interface LauncherOptions {
  /** where the layers of calls lie */
  readonly layers: LayerPlace
  readonly hostPid: number
  readonly hostUid: number
  /** an empty folder of this program's own, for the launcher's private mounts */
  readonly base: string
  /** as root: the users that sandboxes run as */
  readonly users?: UserBlock
  /** every process alive when the launcher was started, so that groups of dead hosts can be told */
  readonly livePids: readonly number[]
  /** when that list was made, in milliseconds since the epoch */
  readonly listedAt: number
}
