/** What settles a layer, as plain data that another thread of this process can work on: descriptors are the process's. */
import type { Baseline } from "../effects/index.ts"
import { commitLayer } from "../effects/index.ts"
import type { WriteSet } from "../effects/types.ts"
import type { XattrPrefix } from "../effects/xattrs.ts"
import { type FolderIdentity, OpenFolder } from "../folder.ts"
import type { CommitResult } from "../terms.ts"
import { globFilter } from "./view.ts"
import {
  commitHeld,
  type HeldCommit,
  type HeldCommitResult,
  type HoldAnswer,
  holdLayer,
  type HoldRequest,
} from "./held.ts"

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
  /** only paths that these match */
  readonly patterns?: readonly string[]
}
interface HoldWork {
  readonly do: "hold"
  readonly layer: ReadLayer
  readonly request: HoldRequest
}
interface CommitHeldWork {
  readonly do: "commit-held"
  readonly held: HeldCommit
  readonly txRoot: string
}
export type Work = CommitWork | HoldWork | CommitHeldWork
export type Settled<W extends Work> = W extends CommitWork
  ? CommitResult
  : W extends HoldWork
    ? HoldAnswer
    : HeldCommitResult

const work = (asked: Work, signal: AbortSignal | undefined): Promise<Settled<Work>> => {
  if (asked.do === "commit-held") return commitHeld(asked.held, asked.txRoot)
  const { fd, identity, upper, since, xattrPrefix, writes } = asked.layer
  const folder = new OpenFolder(fd, identity)
  if (asked.do === "hold") return holdLayer({ folder, upper, since, xattrPrefix, writes }, asked.request)
  const only = asked.patterns === undefined ? {} : { only: globFilter(asked.patterns) }
  const { txRoot } = asked
  return commitLayer({ workspace: folder, upper, writeSet: writes, txRoot, since, xattrPrefix, signal, ...only })
}
export const doWork = work as <W extends Work>(asked: W, signal: AbortSignal | undefined) => Promise<Settled<W>>
