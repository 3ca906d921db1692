/**
 * Whether a folder is as it was: a digest of all that `stat` tells of everything below it, and whether anything lies there.
 *
 * Guarantees: two prints are equal where no entry below the folder came, went, was written, renamed, or had its mode, owner
 * or attributes changed between them, as far as the file system keeps the instant of a change. No link is followed,
 * no content is read, and other work has its turn. A folder with more entries than asked for, or that moves while it is
 * looked at, has no print: nobody can tell.
 * Does not: tell changes within folders that this user cannot list.
 */
import { createHash } from "node:crypto"
import { closeSync, fstatSync, type BigIntStats } from "node:fs"
import type { OpenFolder } from "../folder.ts"
import { errorCode, lstatIn, namesIn, openRoot, withDir } from "./beneath.ts"
import { takingTurns } from "./breath.ts"
import { type BytePath, displayName, join, ROOT } from "./names.ts"

/** Each entry below the folder, until `see` answers true; false where the folder cannot be seen whole. */
const walk = async (
  root: number,
  most: number,
  see: (path: BytePath, stats: BigIntStats) => boolean,
): Promise<"stopped" | "whole" | "unknown"> => {
  const breath = takingTurns()
  const folders: BytePath[] = [ROOT]
  let seen = 0
  for (let folder = folders.pop(); folder !== undefined; folder = folders.pop()) {
    const here = folder
    let entries: readonly (readonly [BytePath, BigIntStats])[]
    try {
      entries = withDir(root, here, (dir) => {
        const names = namesIn(dir)
        if (seen + names.length > most) throw Object.assign(new Error("too many"), { code: "E2BIG" })
        return names.flatMap((name) => {
          const stats = lstatIn(dir, name)
          return stats === undefined ? [] : [[join(here, name), stats] as const]
        })
      })
    } catch (error) {
      // A folder that is shut to this user is known by its own attributes alone.
      if (errorCode(error) === "EACCES") continue
      return "unknown"
    }
    seen += entries.length
    for (const [path, stats] of entries) {
      if (see(path, stats)) return "stopped"
      if (stats.isDirectory()) folders.push(path)
    }
    await breath.take()
  }
  return "whole"
}

const rowOf = (path: string, stats: BigIntStats): string => {
  const { dev, ino, mode, uid, gid, nlink, size, mtimeNs, ctimeNs } = stats
  // What a folder's size and links tell, its entries do.
  const more = stats.isDirectory() ? [] : [size, nlink]
  return `${path}\0${[dev, ino, mode, uid, gid, mtimeNs, ctimeNs, ...more].join(":")}\0`
}

export const treePrint = async (folder: OpenFolder, most: number): Promise<string | undefined> => {
  const root = openRoot(folder)
  try {
    const hash = createHash("sha256").update(rowOf("", fstatSync(root, { bigint: true })))
    const walked = await walk(root, most, (path, stats) => {
      hash.update(rowOf(path, stats))
      return false
    })
    return walked === "whole" ? hash.digest("hex") : undefined
  } finally {
    closeSync(root)
  }
}

/** Does anything below the folder have a path that `counts`? Yes, too, where that cannot be told. */
export const holdsAny = async (
  folder: string,
  most: number,
  counts: (path: string) => boolean = () => true,
): Promise<boolean> => {
  const root = openRoot(folder)
  try {
    return (await walk(root, most, (path) => counts(displayName(path)))) !== "whole"
  } finally {
    closeSync(root)
  }
}
