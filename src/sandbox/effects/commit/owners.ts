/**
 * Whom committed entries belong to.
 *
 * The rule: what a call makes or puts in another's place belongs to the owner of the workspace's folder, in its group or
 * in that of a setgid folder it was made in; what it wrote to in place keeps the owner it had, as the kernel let the
 * workspace's owner write to it. So nothing that a tool wrote ever passes for another user's, and no mode that a tool
 * chose lands on another user's file. The layer tells the two apart: a file copied up keeps its owner, a new one is the
 * sandbox's.
 */
import { lstatSync, statSync, type BigIntStats } from "node:fs"
import { below, displayName, type BytePath } from "../names.ts"
import type { Owner } from "./stage.ts"

interface LayerOwners {
  /** the workspace's */
  readonly root: Owner
  /** Does the layer's entry belong to whom the one below it does? */
  isSameOwner(path: BytePath, was: BigIntStats): boolean
  /** Is the layer's entry still the one below it, changed in place? Throws for a folder in another user's folder's place. */
  keeps(path: BytePath, was: BigIntStats): boolean
}

export const layerOwners = (root: Owner, upper: string): LayerOwners => {
  const sandbox = statSync(upper)
  const isSameOwner = (path: BytePath, was: BigIntStats): boolean => {
    const { uid } = lstatSync(below(upper, path))
    return uid === Number(was.uid) || (uid === sandbox.uid && root.uid === Number(was.uid))
  }
  return {
    root: { uid: root.uid, gid: root.gid },
    isSameOwner,
    keeps: (path, was) => {
      if (isSameOwner(path, was)) return true
      if (was.isDirectory())
        throw new Error(`${displayName(path)}: the folder belongs to another user (uid ${was.uid})`)
      return false
    },
  }
}

export const ownerOf = (
  { root, isSameOwner }: LayerOwners,
  path: BytePath,
  was: BigIntStats | undefined,
  parent: BigIntStats | undefined,
): Owner => {
  if (was !== undefined && !was.isDirectory() && isSameOwner(path, was))
    return { uid: Number(was.uid), gid: Number(was.gid) }
  const setgid = parent !== undefined && (Number(parent.mode) & 0o2000) !== 0
  return { uid: root.uid, gid: setgid ? Number(parent.gid) : root.gid }
}
