/**
 * Removing what a transaction leaves.
 *
 * Guarantees: the folder leaves the set of live transactions in one rename before anything in it is deleted; folders
 * without permissions are opened up first; symlinks are removed, never followed. An empty reserved folder in a
 * workspace goes as well.
 */
import { chmodSync, closeSync, renameSync, rmdirSync, statSync } from "node:fs"
import { basename, join } from "node:path"
import { AT_REMOVEDIR, unlinkat } from "../../syscalls.ts"
import { errorCode, namesIn, openDir, openRoot } from "../beneath.ts"
import { fromBuffer, toNative, type BytePath } from "../names.ts"
import type { Transaction } from "./journal.ts"
import { RESERVED_FOLDER } from "./tx-root.ts"

export const TRASH = "trash-"
export const KEPT = "kept-"

export const clean = (transaction: Transaction): void => {
  const trash = join(transaction.root, `${TRASH}${transaction.name}`)
  renameSync(transaction.dir, trash)
  removeFrom(transaction.root, basename(trash))
  dropReserved(transaction.root)
}

/** Keep the transaction aside, for a person to look at: it holds entries that could not be put back. */
export const keepAside = (transaction: Transaction): string => {
  const kept = join(transaction.root, `${KEPT}${transaction.name}`)
  renameSync(transaction.dir, kept)
  return kept
}

export const dropReserved = (root: string): void => {
  if (basename(root) !== RESERVED_FOLDER) return
  try {
    rmdirSync(root)
  } catch (error) {
    if (!["ENOTEMPTY", "ENOENT", "EEXIST"].includes(errorCode(error))) throw error
  }
}

/** Safe against other programs that still hold a folder of the tree open and plant symlinks in it. */
const removeTree = (parent: number, name: BytePath): void => {
  try {
    unlinkat(parent, toNative(name))
    return
  } catch (error) {
    if (errorCode(error) === "ENOENT") return
    if (errorCode(error) !== "EISDIR" && errorCode(error) !== "EPERM") throw error
  }
  const dir = openDir(parent, name)
  try {
    const self = `/proc/self/fd/${dir}`
    if ((statSync(self).mode & 0o700) !== 0o700) chmodSync(self, 0o700)
    for (const child of namesIn(dir)) removeTree(dir, child)
  } finally {
    closeSync(dir)
  }
  unlinkat(parent, toNative(name), AT_REMOVEDIR)
}

export const removeFrom = (root: string, name: string): void => {
  const fd = openRoot(root)
  try {
    removeTree(fd, fromBuffer(Buffer.from(name)))
  } finally {
    closeSync(fd)
  }
}
