/**
 * A home's folder → what of it is kept, as plain data.
 *
 * Guarantees: no link is followed; only regular files, folders and links are taken, with permission bits and no others; of
 * paths that are kept, and of the folders that lead to them. More bytes, entries or depth than a home may have is told, and
 * nothing is taken then. Other work has its turn.
 * Assumes: nobody writes to it meanwhile. Does not: take extended attributes, or that two names are one file.
 */
import { closeSync, readFileSync, readlinkSync, type BigIntStats } from "node:fs"
import { entry, errorCode, lstatIn, namesIn, openFile, openRoot, withDir } from "../../effects/beneath.ts"
import { takingTurns } from "../../effects/breath.ts"
import { type BytePath, displayName, fromBuffer, join, parentOf, ROOT } from "../../effects/names.ts"
import { HOME } from "../limits.ts"
import type { HomeAfter, HomeEntry } from "../../home.ts"

class TooMuch extends Error {}

const MiB = 1024 * 1024
const tooMuch = (what: string): TooMuch =>
  new TooMuch(`a home that is kept encrypted may have ${what}; declare less of it to be kept`)

const permissions = (stats: BigIntStats): number => Number(stats.mode) & 0o777

const readEntry = (root: number, path: BytePath, stats: BigIntStats, left: number): HomeEntry | undefined => {
  const named = { path: displayName(path), mode: permissions(stats) }
  if (stats.isDirectory()) return { ...named, kind: "folder" }
  if (stats.isSymbolicLink()) {
    const target = withDir(root, parentOf(path), (dir) =>
      readlinkSync(entry(dir, path.slice(path.lastIndexOf("/") + 1) as BytePath), { encoding: "buffer" }),
    )
    return { ...named, mode: 0o777, kind: "link", target: displayName(fromBuffer(target)) }
  }
  if (!stats.isFile()) return undefined
  if (Number(stats.size) > left) throw tooMuch(`${HOME.bytes / MiB} MiB of files that are kept`)
  const fd = openFile(root, path)
  try {
    // Milliseconds: what can be set again exactly.
    const mtimeMs = Math.round(Number(stats.mtimeNs) / 1e6)
    return { ...named, kind: "file", content: new Uint8Array(readFileSync(fd)), mtimeMs }
  } finally {
    closeSync(fd)
  }
}

interface Seen {
  readonly path: BytePath
  readonly stats: BigIntStats
}

/** Everything below the folder, folders before what lies in them; how much that is, its file system bounds. */
export const seeHome = async (root: number): Promise<readonly Seen[]> => {
  const breath = takingTurns()
  const seen: Seen[] = []
  const folders: BytePath[] = [ROOT]
  for (let at = folders.shift(); at !== undefined; at = folders.shift()) {
    const here = at
    const found = withDir(root, here, (dir) =>
      namesIn(dir).flatMap((name) => {
        const stats = lstatIn(dir, name)
        return stats === undefined ? [] : [{ path: join(here, name), stats }]
      }),
    )
    for (const each of found) {
      seen.push(each)
      // What lies deeper than anything that is kept is left alone.
      if (each.stats.isDirectory() && each.path.length <= HOME.pathBytes) folders.push(each.path)
    }
    await breath.take()
  }
  return seen
}

/** The kept paths, and the folders that lead to them. */
const wanted = (seen: readonly Seen[], keeps: (path: string) => boolean): ReadonlySet<BytePath> => {
  const all = new Set<BytePath>()
  for (const { path } of seen) {
    if (!keeps(displayName(path))) continue
    for (let at = path; at !== ROOT && !all.has(at); at = parentOf(at)) all.add(at)
  }
  return all
}

export const readHome = async (folder: string, keeps: (path: string) => boolean): Promise<HomeAfter> => {
  const root = openRoot(folder)
  try {
    const breath = takingTurns()
    const seen = await seeHome(root)
    const kept = wanted(seen, keeps)
    if (kept.size > HOME.entries) throw tooMuch(`${HOME.entries} entries that are kept`)
    if ([...kept].some((path) => path.length > HOME.pathBytes)) throw tooMuch(`paths of ${HOME.pathBytes} bytes`)
    const content: HomeEntry[] = []
    let left: number = HOME.bytes
    for (const { path, stats } of seen) {
      const taken = kept.has(path) ? readEntry(root, path, stats, left) : undefined
      if (taken === undefined) continue
      content.push(taken)
      if (taken.kind === "file") left -= taken.content.length
      await breath.take()
    }
    return { ok: true, content: content.sort((a, b) => (a.path < b.path ? -1 : 1)) }
  } catch (error) {
    if (error instanceof TooMuch || errorCode(error) !== "") return { ok: false, message: (error as Error).message }
    throw error
  } finally {
    closeSync(root)
  }
}
