/**
 * Where commits of a data folder are staged, and what crashed ones left: the same for every backend.
 *
 * Guarantees: one transaction root for all hosts and backends of a data folder, so that each recovers what any other left.
 * However much that is, it holds up nothing else of this process: it is done where layers are written.
 */
import { mayNeedRecovery, txRootOf } from "../effects/index.ts"
import { type FolderIdentity, LockWaitEnded, openFolder, reopenFolder } from "../folder.ts"
import type { HeldCommit, HeldCommitResult } from "./held.ts"
import { settle } from "./settling/settling.ts"
import type { LayerTransactions } from "./call-layers.ts"

export class Transactions {
  readonly #root: string
  get root(): string {
    return this.#root
  }
  constructor(data: string) {
    this.#root = txRootOf(data)
  }
  /** Before a call's layers are opened: its home is made whole (the workspace was), and the root is told. */
  async forCall(home: string | undefined, cancel: AbortSignal): Promise<LayerTransactions> {
    if (home === undefined) return { workspace: this.#root }
    await this.recover(home, cancel)
    return { workspace: this.#root, home: this.#root }
  }
  commitHeld(held: HeldCommit, cancel?: AbortSignal): Promise<HeldCommitResult> {
    return settle({ do: "commit-held", held, txRoot: this.#root }, cancel)
  }
  /** Finish or undo what a crash left in this folder. */
  async recover(folder: string | FolderIdentity, signal?: AbortSignal): Promise<void> {
    using open = typeof folder === "string" ? openFolder(folder) : reopenFolder(folder)
    if (!mayNeedRecovery(this.#root, open)) return
    const { fd, identity } = open
    const answer = await settle({ do: "recover", folder: { fd, identity }, txRoot: this.#root }, signal)
    if (!answer.ok) throw answer.reason === "waited" ? new LockWaitEnded(answer.message) : new Error(answer.message)
    const { found } = answer
    for (const { path, kept } of found.foreign)
      process.emitWarning(`${path} was changed after a commit broke off; what was there before is kept in ${kept}`)
    for (const { at, why } of found.malformed)
      process.emitWarning(`a broken transaction of ${open.path} (${why}) was set aside as ${at}; look at the workspace`)
  }
}
