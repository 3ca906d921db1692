/**
 * What stood in a workspace where a layer will change it, written down, so that it can be compared after any time.
 *
 * Guarantees: two descriptions of a path are equal only if the entry is the same inode with the same mode, size,
 * modification and change time, or absent both times; of a folder that goes, everything below it too; and if every folder
 * on the way is the same one. Equality, not order: setting the clock back in between hides nothing.
 * Does not: follow a symlink. Plain data: it may lie on disk.
 */
import { createHash } from "node:crypto"
import type { BigIntStats } from "node:fs"
import { birthNsOf } from "../../../linux/files.ts"
import { entry, errorCode, lstatIn, withDir } from "../beneath.ts"
import { baseOf, displayName, parentOf, type BytePath } from "../names.ts"
import type { Effect } from "../types.ts"
import { everyBelow, identify } from "./identity.ts"
import { type Keep, type Move, plan } from "./plan.ts"

/** A path, one text that says what stands there, and when its record last changed. */
export type BaseRow = readonly [path: string, was: string, changedNs: string]

const GONE = ["ENOENT", "ENOTDIR", "ELOOP", "EXDEV"]

type Was = readonly [was: string, changedNs: string]

const facts = (stats: BigIntStats): string => {
  const { ino, mode, size, mtimeNs } = identify(stats)
  return `${ino} ${mode} ${stats.isDirectory() ? "" : size} ${mtimeNs}`
}

const treeOf = (folder: Buffer): string => {
  const hash = createHash("sha256")
  const rows: string[] = []
  everyBelow(folder, (stats, path) => {
    rows.push(`${path.subarray(folder.length).toString("base64")} ${facts(stats)} ${stats.ctimeNs}`)
    return true
  })
  for (const row of rows.sort()) hash.update(`${row}\n`)
  return hash.digest("hex")
}

const wasOf = (root: number, { path, kind }: Move): Was => {
  try {
    return withDir(root, parentOf(path), (dir) => {
      const stats = lstatIn(dir, baseOf(path))
      if (stats === undefined) return ["absent", ""]
      const whole = stats.isDirectory() && kind !== "attributes"
      const tree = whole ? ` ${treeOf(entry(dir, baseOf(path)))}` : ""
      return [`${facts(stats)}${tree}`, String(stats.ctimeNs)]
    })
  } catch (error) {
    if (GONE.includes(errorCode(error))) return ["unreachable", ""]
    throw error
  }
}

const folderOf = (root: number, path: BytePath): string => {
  try {
    return withDir(root, path, (dir) => {
      const stats = lstatIn(dir, "." as BytePath)
      return `folder ${stats?.ino} ${birthNsOf(dir)}`
    })
  } catch (error) {
    if (GONE.includes(errorCode(error))) return "unreachable"
    throw error
  }
}

const foldersOnTheWay = (moves: readonly Move[]): Set<BytePath> => {
  const folders = new Set<BytePath>()
  for (const { path } of moves)
    for (let up = parentOf(path); up !== "" && !folders.has(up); up = parentOf(up)) folders.add(up)
  return folders
}

/** `root`: a descriptor of the workspace. */
export const describeBase = (root: number, effects: readonly Effect[], only?: Keep): readonly BaseRow[] => {
  const moves = plan(effects, only)
  return [
    ...moves.map((move): BaseRow => [displayName(move.path), ...wasOf(root, move)]),
    ...Array.from(foldersOnTheWay(moves), (path): BaseRow => [displayName(path), folderOf(root, path), ""]),
  ]
}

/**
 * Paths where something else stands now. `undone`: a commit of this very layer was undone meanwhile, which puts every
 * entry back and renews its record; when records changed is then for the commit's own baseline to tell.
 */
export const changedSince = (
  root: number,
  effects: readonly Effect[],
  before: readonly BaseRow[],
  undone = false,
): readonly string[] => {
  const now = describeBase(root, effects)
  const isSame = ([path, was, changedNs]: BaseRow, then: BaseRow | undefined): boolean =>
    then?.[0] === path && then[1] === was && (undone || then[2] === changedNs)
  const changed = now.filter((row, index) => !isSame(row, before[index])).map(([path]) => path)
  return now.length === before.length ? changed : [...changed, "."]
}
