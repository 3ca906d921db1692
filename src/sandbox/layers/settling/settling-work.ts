/** What settles a layer, as plain data that another thread of this process can work on: descriptors are the process's. */
import { type Baseline, commitLayer, type Recovery, recoverWorkspace } from "../../effects/index.ts"
import type { WriteSet } from "../../effects/types.ts"
import type { XattrPrefix } from "../../effects/xattrs.ts"
import { type FolderIdentity, LockWaitEnded, OpenFolder } from "../../folder.ts"
import type { CommitResult } from "../../terms.ts"
import { removeEntry } from "../remove.ts"
import { lookAtLayer, type LookBounds, type Looked } from "../look.ts"
import { globFilter } from "../view/view.ts"
import {
  commitHeld,
  lookAtHeld,
  type HeldCommit,
  type HeldCommitResult,
  type HoldAnswer,
  holdLayer,
  type HoldRequest,
} from "../held.ts"

/** A layer that was read, and the folder it was laid over, which whoever asks keeps open. */
export interface ReadLayer {
  readonly fd: number
  readonly identity: FolderIdentity
  readonly upper: string
  readonly since: Baseline
  readonly xattrPrefix: XattrPrefix
  readonly writes: WriteSet
}
interface CommitWork {
  readonly do: "commit"
  readonly layer: ReadLayer
  readonly txRoot: string
  /** the layer goes with it */
  readonly takes?: true
  /** only paths that these match */
  readonly patterns?: readonly string[]
  /** only these */
  readonly paths?: readonly string[]
}
interface HoldWork {
  readonly do: "hold"
  readonly layer: ReadLayer
  readonly request: HoldRequest
}
interface LookWork {
  readonly do: "look"
  readonly layer: ReadLayer
  readonly bounds: LookBounds
}
interface LookHeldWork {
  readonly do: "look-held"
  readonly held: Pick<HeldCommit, "at" | "digest">
  readonly bounds: LookBounds
}
interface CommitHeldWork {
  readonly do: "commit-held"
  readonly held: HeldCommit
  readonly txRoot: string
}
interface RecoverWork {
  readonly do: "recover"
  /** whoever asks keeps it open */
  readonly folder: { readonly fd: number; readonly identity: FolderIdentity }
  readonly txRoot: string
}
interface RemoveWork {
  readonly do: "remove"
  /** an entry of a folder of the host's own, with all that is in it */
  readonly folder: string
  readonly name: string
}
/** The lock was not to be had, or whoever was at it ended: the next call tries again. */
type RecoverAnswer =
  | { readonly ok: true; readonly found: Recovery }
  | { readonly ok: false; readonly reason: "waited" | "unknown"; readonly message: string }
export type Work = CommitWork | HoldWork | LookWork | LookHeldWork | CommitHeldWork | RecoverWork | RemoveWork
export type Settled<W extends Work> = W extends CommitWork
  ? CommitResult
  : W extends HoldWork
    ? HoldAnswer
    : W extends RecoverWork
      ? RecoverAnswer
      : W extends LookWork
        ? readonly Looked[]
        : W extends LookHeldWork
          ? readonly Looked[] | undefined
          : W extends RemoveWork
            ? "removed"
            : HeldCommitResult

const recover = async ({ folder, txRoot }: RecoverWork, signal: AbortSignal | undefined): Promise<RecoverAnswer> => {
  try {
    const workspace = new OpenFolder(folder.fd, folder.identity)
    return { ok: true, found: await recoverWorkspace({ workspace, txRoot, signal }) }
  } catch (error) {
    if (!(error instanceof LockWaitEnded)) throw error
    return { ok: false, reason: "waited", message: error.message }
  }
}

const onlyOf = ({ patterns, paths }: CommitWork): { only?: (path: string) => boolean } => {
  if (patterns !== undefined) return { only: globFilter(patterns) }
  if (paths === undefined) return {}
  const kept = new Set(paths)
  return { only: (path) => kept.has(path) }
}

const work = (asked: Work, signal: AbortSignal | undefined): Promise<Settled<Work>> => {
  if (asked.do === "commit-held") return commitHeld(asked.held, asked.txRoot, { signal })
  if (asked.do === "recover") return recover(asked, signal)
  if (asked.do === "remove") return removeEntry(asked.folder, asked.name).then(() => "removed")
  if (asked.do === "look-held") return lookAtHeld(asked.held, asked.bounds)
  const { fd, identity, upper, since, xattrPrefix, writes } = asked.layer
  const folder = new OpenFolder(fd, identity)
  if (asked.do === "look") return lookAtLayer(folder, upper, writes.effects, asked.bounds)
  if (asked.do === "hold") return holdLayer({ folder, upper, since, xattrPrefix, writes }, asked.request)
  const only = onlyOf(asked)
  const { txRoot, takes = false } = asked
  return commitLayer({ workspace: folder, upper, writeSet: writes, txRoot, since, xattrPrefix, signal, takes, ...only })
}
export const doWork = work as <W extends Work>(asked: W, signal: AbortSignal | undefined) => Promise<Settled<W>>
