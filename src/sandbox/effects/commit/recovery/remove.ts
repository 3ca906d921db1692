/**
 * Removing a tree below a folder descriptor.
 *
 * Guarantees: symlinks are removed, never followed, and mounts never crossed, also against programs that still hold a
 * folder of the tree open and plant in it; folders without permissions are opened up first. However deep
 * the tree, few descriptors are held at once.
 */
import { chmodSync, closeSync, statSync } from "node:fs"
import { randomUUID } from "node:crypto"
import { AT_REMOVEDIR, renameat2, unlinkat } from "../../../../linux/files.ts"
import { errorCode, namesIn, openDir } from "../../beneath.ts"
import { fromBuffer, toNative, type BytePath } from "../../names.ts"

/** Folders held open at once; what lies deeper is brought up to the top first. */
const DEEPEST = 32

export const removeTree = (parent: number, name: BytePath): void => {
  if (removedLeaf(parent, name)) return
  const top = openDir(parent, name)
  try {
    openUp(top)
    const brought: BytePath[] = []
    for (let left = namesIn(top); left.length > 0; left = brought.splice(0))
      for (const child of left) removeBelow(top, child, 1, { top, brought })
  } finally {
    closeSync(top)
  }
  unlinkat(parent, toNative(name), AT_REMOVEDIR)
}

interface Deep {
  readonly top: number
  readonly brought: BytePath[]
}

const removeBelow = (parent: number, name: BytePath, depth: number, deep: Deep): void => {
  if (removedLeaf(parent, name)) return
  if (depth >= DEEPEST && isBroughtUp(parent, name, deep)) return
  const dir = openDir(parent, name)
  try {
    openUp(dir)
    for (const child of namesIn(dir)) removeBelow(dir, child, depth + 1, deep)
  } finally {
    closeSync(dir)
  }
  unlinkat(parent, toNative(name), AT_REMOVEDIR)
}

const removedLeaf = (parent: number, name: BytePath): boolean => {
  try {
    unlinkat(parent, toNative(name))
    return true
  } catch (error) {
    if (errorCode(error) === "ENOENT") return true
    if (errorCode(error) !== "EISDIR" && errorCode(error) !== "EPERM") throw error
    return false
  }
}

const openUp = (dir: number): void => {
  const self = `/proc/self/fd/${dir}`
  if ((statSync(self).mode & 0o700) !== 0o700) chmodSync(self, 0o700)
}

const isBroughtUp = (parent: number, name: BytePath, { top, brought }: Deep): boolean => {
  const place = fromBuffer(Buffer.from(`removed-${randomUUID()}`))
  try {
    renameat2(parent, toNative(name), top, toNative(place))
  } catch {
    return false
  }
  brought.push(place)
  return true
}
