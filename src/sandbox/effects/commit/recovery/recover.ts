/**
 * Finishing or undoing what a crash left, before anything else touches the workspace.
 *
 * Guarantees: a transaction marked `done` is cleaned up; one with a journal is undone exactly; one without was never
 * begun and is discarded. Only what lies in the data folder's own folder of transactions counts, and only for the folder
 * that it was made for, by inode and birth time. Waits for a commit that is still alive.
 * A path that another program changed after the crash is left to it and reported; its old entry is kept aside. A
 * transaction that cannot be understood is set aside and reported, and is in no later call's way.
 */
import { closeSync } from "node:fs"
import { join } from "node:path"
import { folderKey, openFolder, type OpenFolder } from "../../../folder.ts"
import { errorCode, lstatIn } from "../../beneath.ts"
import { fromBuffer } from "../../names.ts"
import { JournalMalformed } from "./journal.ts"
import { lockName, type LockOptions, withFolderLock } from "../lock.ts"
import { beginSnapshot } from "../baseline.ts"
import { noteFinished, noteUndone } from "./notes.ts"
import { rollBack } from "./rollback.ts"
import { quarantine, Transaction, transactionsOf } from "../transaction.ts"
import { findTxRoot } from "./tx-root.ts"

export interface Recovery {
  readonly finished: number
  readonly undone: number
  /** paths that another program changed after the crash, and the folder where what belongs there is kept */
  readonly foreign: readonly { readonly path: string; readonly kept: string }[]
  /** transactions that could not be understood, and where they are now */
  readonly malformed: readonly { readonly at: string; readonly why: string }[]
}

interface RecoverOptions extends LockOptions {
  readonly workspace: string | OpenFolder
  readonly txRoot: string
  /** called at every step that a crash could follow */
  readonly failpoint?: (name: string) => void
}

type Found = { -readonly [Key in keyof Recovery]: Recovery[Key] extends readonly (infer T)[] ? T[] : Recovery[Key] }

export const recoverWorkspace = async (options: RecoverOptions): Promise<Recovery> => {
  const found: Found = { finished: 0, undone: 0, foreign: [], malformed: [] }
  using own = typeof options.workspace === "string" ? openFolder(options.workspace) : undefined
  const folder = own ?? (options.workspace as OpenFolder)
  const root = findTxRoot(options.txRoot)
  if (root === undefined) return found
  try {
    if (isQuiet(root, folderKey(folder.identity))) return found
    await withFolderLock(root, folderKey(folder.identity), options, async () =>
      recoverLocked(root, options.txRoot, folder, options.failpoint ?? (() => {}), found),
    )
    return found
  } finally {
    closeSync(root)
  }
}

/** Did a commit leave anything here, or is one under way? Quick, and of no weight: only the lock makes it certain. */
export const mayNeedRecovery = (txRoot: string, folder: OpenFolder): boolean => {
  const root = findTxRoot(txRoot)
  if (root === undefined) return false
  try {
    return !isQuiet(root, folderKey(folder.identity))
  } finally {
    closeSync(root)
  }
}

const isQuiet = (root: number, key: string): boolean => {
  const { live, trash } = transactionsOf(root, key)
  return live.length + trash.length === 0 && lstatIn(root, fromBuffer(Buffer.from(lockName(key)))) === undefined
}

const recoverLocked = (
  root: number,
  txRoot: string,
  folder: OpenFolder,
  failpoint: (name: string) => void,
  found: Found,
): void => {
  const { live, trash } = transactionsOf(root, folderKey(folder.identity))
  for (const name of [...trash, ...live]) {
    try {
      using transaction = Transaction.find(root, name, folder.fd)
      if (transaction === undefined) continue
      if (trash.includes(name)) transaction.clean()
      else recoverOne(transaction, root, txRoot, folder, failpoint, found)
    } catch (error) {
      if (!(error instanceof JournalMalformed) && !["ENOTDIR", "ELOOP", "EXDEV"].includes(errorCode(error))) throw error
      found.malformed.push({ at: join(txRoot, quarantine(root, name)), why: (error as Error).message })
    }
  }
}

const recoverOne = (
  transaction: Transaction,
  root: number,
  txRoot: string,
  folder: OpenFolder,
  failpoint: (name: string) => void,
  found: Found,
): void => {
  const { finished } = transaction
  const written = transaction.read()
  const journal = finished ? undefined : written
  if (finished) {
    found.finished++
    if (written?.name !== undefined) noteFinished(root, written.name)
  }
  if (journal !== undefined) {
    const { ino, birthNs, dev, path } = journal.folder
    const { identity } = folder
    // Devices may be numbered anew at boot; then the path decides.
    const ours =
      ino === identity.ino && birthNs === identity.birthNs && (dev === identity.dev || path === identity.path)
    if (!ours) return
    found.undone++
  }
  const left = journal === undefined ? [] : rollBack(folder.fd, transaction.staging, journal, failpoint)
  failpoint("undone")
  if (left.length === 0) {
    if (journal?.name !== undefined) noteUndone(root, journal.name, beginSnapshot(folder))
    transaction.clean()
    return
  }
  const { name, inside } = transaction.keepAside()
  const kept = inside === undefined ? join(txRoot, name, "slots") : join(folder.path, inside)
  found.foreign.push(...left.map((path) => ({ path, kept })))
}
