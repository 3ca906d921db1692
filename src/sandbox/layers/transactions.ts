/**
 * Where commits of a data folder are staged, and what crashed ones left: the same for every backend.
 *
 * Guarantees: one transaction root for all hosts and backends of a data folder, so that each recovers what any other left.
 */
import { chooseTxRoot, possibleTxRoots, recoverWorkspace } from "../effects/index.ts"
import { type FolderIdentity, openFolder, reopenFolder } from "../folder.ts"
import type { LayerTransactions } from "./call-layers.ts"

export class Transactions {
  readonly #data: string
  readonly #roots = new Map<string, string>()
  constructor(data: string) {
    this.#data = data
  }
  #rootFor(folder: string): string {
    let root = this.#roots.get(folder)
    if (root === undefined) {
      root = chooseTxRoot(folder, this.#data)
      this.#roots.set(folder, root)
    }
    return root
  }
  /** Before a call's layers are opened: its home is made whole (the workspace was), and the roots are chosen. */
  async forCall(workspace: string, home: string | undefined): Promise<LayerTransactions> {
    if (home === undefined) return { workspace: this.#rootFor(workspace) }
    await this.recover(home)
    return { workspace: this.#rootFor(workspace), home: this.#rootFor(home) }
  }
  /** Finish or undo what a crash left in this folder. */
  async recover(folder: string | FolderIdentity, signal?: AbortSignal): Promise<void> {
    using open = typeof folder === "string" ? openFolder(folder) : reopenFolder(folder)
    const found = await recoverWorkspace({ workspace: open, txRoots: possibleTxRoots(open.path, this.#data), signal })
    for (const { path, kept } of found.foreign)
      process.emitWarning(`${path} was changed after a commit broke off; what was there before is kept in ${kept}`)
    for (const { at, why } of found.malformed)
      process.emitWarning(`a broken transaction of ${open.path} (${why}) was set aside as ${at}; look at the workspace`)
  }
}
