/**
 * Removing a tree below a folder descriptor.
 *
 * Guarantees: symlinks are removed, never followed, and mounts never crossed, also against programs that still hold a
 * folder of the tree open and plant in it; folders without permissions are opened up first.
 */
import { chmodSync, closeSync, statSync } from "node:fs"
import { AT_REMOVEDIR, unlinkat } from "../../syscalls.ts"
import { errorCode, namesIn, openDir } from "../beneath.ts"
import { toNative, type BytePath } from "../names.ts"

export const removeTree = (parent: number, name: BytePath): void => {
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
