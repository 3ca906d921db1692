/**
 * Finishing or undoing what a crash left, before anything else touches the workspace.
 *
 * Guarantees: a transaction marked `done` is cleaned up; one with a journal is undone exactly; one without was never
 * begun and is discarded. Only transactions that this user made are believed. Waits for a commit that is still alive.
 * A path that another program changed after the crash is left to it and reported; its old entry is kept aside.
 */
import { existsSync, lstatSync, readdirSync } from "node:fs"
import { join } from "node:path"
import { clean, dropReserved, keepAside, KEPT, removeFrom, TRASH } from "./clean.ts"
import { Transaction, workspaceKey } from "./journal.ts"
import { withWorkspaceLock } from "./lock.ts"
import { rollBack } from "./rollback.ts"
import { insideRoot } from "./tx-root.ts"

export interface Recovery {
  readonly finished: number
  readonly undone: number
  /** paths that another program changed after the crash, and the folder where what belongs there is kept */
  readonly foreign: readonly { readonly path: string; readonly kept: string }[]
}

export interface RecoverOptions {
  readonly workspace: string
  readonly txRoots: readonly string[]
  /** called at every step that a crash could follow */
  readonly failpoint?: (name: string) => void
}

export const recoverWorkspace = async (options: RecoverOptions): Promise<Recovery> => {
  if (!options.txRoots.some((root) => leftovers(root, options.workspace).length > 0))
    return { finished: 0, undone: 0, foreign: [] }
  return withWorkspaceLock(options.workspace, async (root) => {
    let finished = 0
    let undone = 0
    const foreign: { path: string; kept: string }[] = []
    for (const txRoot of options.txRoots) {
      for (const name of leftovers(txRoot, options.workspace)) {
        if (name.startsWith(TRASH)) {
          removeFrom(txRoot, name)
          continue
        }
        const transaction = new Transaction(txRoot, name)
        const journal = transaction.finished ? undefined : transaction.read()
        if (transaction.finished) finished++
        const left = journal === undefined ? [] : rollBack(root, transaction, journal, options.failpoint)
        if (journal !== undefined) undone++
        options.failpoint?.("undone")
        if (left.length === 0) clean(transaction)
        else {
          const kept = keepAside(transaction)
          foreign.push(...left.map((path) => ({ path, kept })))
        }
      }
      if (existsSync(txRoot)) dropReserved(txRoot)
    }
    return { finished, undone, foreign }
  })
}

/** This workspace's transactions in a root; in the workspace's own reserved folder all are. */
const leftovers = (txRoot: string, workspace: string): string[] => {
  const root = lstatSync(txRoot, { throwIfNoEntry: false })
  if (root === undefined || !root.isDirectory() || !isMine(txRoot)) return []
  const own = txRoot === insideRoot(workspace) ? "tx-" : `tx-${workspaceKey(workspace)}-`
  return readdirSync(txRoot).filter((name) => {
    if (name.startsWith(KEPT)) return false
    const bare = name.startsWith(TRASH) ? name.slice(TRASH.length) : name
    return bare.startsWith(own) && isMine(join(txRoot, name))
  })
}

const isMine = (path: string): boolean => {
  const stats = lstatSync(path, { throwIfNoEntry: false })
  return stats?.isDirectory() === true && stats.uid === process.geteuid?.()
}
