/**
 * Has the workspace changed underneath since the call began, where the call wants to change it?
 *
 * Guarantees: found are entries that were modified, created, deleted or swapped for another kind, anything at all below
 * a folder that is to go, and folders on the way that were made or moved. Changes to other names in the same folders are none
 * of the call's business and do not count, unless the call changes such a folder's own mode or attributes.
 * A folder on the way that was swapped for an older one *and* written to since is told by the handle that overlayfs keeps
 * of the folder it was laid over; a layer mounted without privileges keeps none, so there that one case goes unseen.
 * Assumes: change times are the kernel's (see `baseline.ts`). A false alarm is possible where a file on the path was
 * touched without being changed.
 */
import { lstatSync, type BigIntStats } from "node:fs"
import { birthNsOf, fileHandle } from "../../../linux/files.ts"
import { entry, errorCode, lstatIn, withDir } from "../beneath.ts"
import { baseOf, below, parentOf, type BytePath } from "../names.ts"
import { originHandle, readAttributes, type XattrPrefix } from "../xattrs.ts"
import { everyBelow } from "./identity.ts"
import type { Move } from "./plan.ts"

interface CheckOptions {
  readonly root: number
  readonly upper: string
  readonly prefix: XattrPrefix
  readonly since: bigint
}

/** A move together with what stands at its path, or the finding that it conflicts. */
export type Checked = {
  readonly move: Move
  readonly conflict: boolean
  readonly was?: BigIntStats
  readonly parent?: BigIntStats
}

const GONE = ["ENOENT", "ENOTDIR", "ELOOP", "EXDEV"]

export const check = (move: Move, options: CheckOptions, moved: (folder: BytePath) => boolean): Checked => {
  try {
    return withDir(options.root, parentOf(move.path), (dir) => {
      const was = lstatIn(dir, baseOf(move.path))
      const parent = lstatSync(`/proc/self/fd/${dir}/.`, { bigint: true })
      const conflict = moved(parentOf(move.path)) || differs(move, was, parent, entry(dir, baseOf(move.path)), options)
      return { move, conflict, parent, ...(was === undefined ? {} : { was }) }
    })
  } catch (error) {
    if (GONE.includes(errorCode(error))) return { move, conflict: true }
    throw error
  }
}

const differs = (
  move: Move,
  was: BigIntStats | undefined,
  parent: BigIntStats,
  path: Buffer,
  { upper, prefix, since }: CheckOptions,
): boolean => {
  if (move.kind === "put") {
    if (was !== undefined) return true
    // An entry copied up from this very name has lost its lower entry if the folder changed since.
    const copied = !move.renamed && readAttributes(below(upper, move.path), prefix).overlay.has("origin")
    return copied && parent.mtimeNs >= since
  }
  if (was === undefined) return true
  if (was.ctimeNs >= since) return true
  return was.isDirectory() && move.kind !== "attributes" && !unchangedBelow(path, since)
}

export const unchangedBelow = (dir: Buffer, since: bigint): boolean => everyBelow(dir, (stats) => stats.ctimeNs < since)

/**
 * Was a folder on the way made since, swapped for another (the layer knows which one it was laid over), or moved or
 * re-permitted: its own record changed, but no entry in it did.
 */
export const movedFolders = ({ root, upper, prefix, since }: CheckOptions): ((folder: BytePath) => boolean) => {
  const known = new Map<BytePath, boolean>()
  const moved = (folder: BytePath): boolean => {
    if (folder === "") return false
    let answer = known.get(folder)
    if (answer === undefined) {
      answer = withDir(root, folder, (dir) => {
        const { ctimeNs, mtimeNs } = lstatSync(`/proc/self/fd/${dir}/.`, { bigint: true })
        if (birthNsOf(dir) >= since || (ctimeNs >= since && mtimeNs < since)) return true
        const origin = originHandle(below(upper, folder), prefix)
        const handle = origin === undefined ? undefined : fileHandle(dir)
        return origin !== undefined && handle !== undefined && !origin.equals(handle)
      })
      answer ||= moved(parentOf(folder))
      known.set(folder, answer)
    }
    return answer
  }
  return moved
}
