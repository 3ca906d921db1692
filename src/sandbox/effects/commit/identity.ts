/**
 * What makes a file the same file, before and after it was moved.
 *
 * A rename keeps inode, type, size and modification time and renews the change time. A folder's size and times
 * follow its entries, so a folder is known by its inode, and by a fingerprint of all below it where that matters.
 */
import { createHash } from "node:crypto"
import { closeSync, constants, lstatSync, openSync, type BigIntStats } from "node:fs"
import { errorCode, lstatIn, namesIn, withDir } from "../beneath.ts"
import { type BytePath, join, ROOT, toBuffer } from "../names.ts"

const O_PATH = 0o10000000

export interface Identity {
  readonly ino: string
  readonly mode: number
  readonly size: string
  readonly mtimeNs: string
}

const S_IFMT = 0o170000
export const isFolder = (identity: Identity): boolean => (identity.mode & S_IFMT) === 0o040000

export const identify = (stats: BigIntStats): Identity => ({
  ino: String(stats.ino),
  mode: Number(stats.mode),
  size: String(stats.size),
  mtimeNs: String(stats.mtimeNs),
})

export const isSame = (identity: Identity, stats: BigIntStats | undefined): boolean => {
  if (stats === undefined) return false
  const now = identify(stats)
  if (now.ino !== identity.ino || (now.mode & S_IFMT) !== (identity.mode & S_IFMT)) return false
  return isFolder(identity) || (now.size === identity.size && now.mtimeNs === identity.mtimeNs)
}

/** What a folder answers that was swapped or removed after it was listed. */
const SWAPPED = ["ENOENT", "ENOTDIR", "ELOOP", "EXDEV"]

/**
 * All entries below a folder, and whether `visit` found each to its liking. Symlinks and mounts are not followed, also where
 * somebody puts them in the place of a folder meanwhile: that, like an entry that goes, is to nobody's liking.
 */
export const everyBelow = (
  dir: Buffer,
  visit: (stats: BigIntStats, path: Buffer) => boolean,
  enter = (_mode: number): boolean => true,
): boolean => {
  if (!enter(Number(lstatSync(dir).mode))) return true
  const top = openSync(dir, O_PATH | constants.O_DIRECTORY | constants.O_NOFOLLOW)
  try {
    const folders: BytePath[] = [ROOT]
    for (let at = folders.pop(); at !== undefined; at = folders.pop()) {
      const folder = at
      const liked = withDir(top, folder, (open) =>
        namesIn(open).every((name) => {
          const stats = lstatIn(open, name)
          const path = join(folder, name)
          if (stats === undefined || !visit(stats, Buffer.concat([dir, Buffer.from("/"), toBuffer(path)]))) return false
          if (stats.isDirectory() && enter(Number(stats.mode))) folders.push(path)
          return true
        }),
      )
      if (!liked) return false
    }
    return true
  } catch (error) {
    if (SWAPPED.includes(errorCode(error))) return false
    throw error
  } finally {
    closeSync(top)
  }
}

const OWNER_READS = 0o500
/** One value for a folder and everything below it: names, inodes, sizes, times. Folders shut to their owner stay shut. */
export const fingerprint = (dir: Buffer): string => {
  const lines: string[] = []
  everyBelow(
    dir,
    (stats, path) => {
      const { ino, mode, size, mtimeNs } = identify(stats)
      const times = stats.isDirectory() ? "" : `${size} ${mtimeNs}`
      lines.push(`${path.subarray(dir.length).toString("hex")} ${ino} ${mode} ${times}`)
      return true
    },
    (mode) => (mode & OWNER_READS) === OWNER_READS,
  )
  return createHash("sha256").update(lines.sort().join("\n")).digest("hex")
}
