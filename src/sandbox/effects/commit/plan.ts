/**
 * From judged effects to the few moves that carry them out.
 *
 * Guarantees: moves touch disjoint paths: a new folder comes with everything new below it, a removed one takes
 * everything below it along; what is filtered out is neither written nor removed. Order follows the path.
 * Does not: look at any file system.
 */
import { parentOf, parseName, type BytePath } from "../names.ts"
import type { Effect } from "../types.ts"

export interface Move {
  readonly path: BytePath
  readonly kind: "put" | "replace" | "remove" | "attributes"
  /** what is to be staged, the path itself first; empty for `remove` and `attributes` */
  readonly content: readonly BytePath[]
  /** a recognised rename arrives here, so the layer's entry is known to stem from another path */
  readonly renamed: boolean
}

interface Change {
  removed: boolean
  made: boolean
  renamed: boolean
}

export type Keep = (path: string) => boolean

export const plan = (effects: readonly Effect[], only: Keep = () => true): Move[] => {
  const changes = collect(effects, only)
  const moves: Move[] = []
  let top: { path: BytePath; content: BytePath[] } | undefined
  for (const path of byTree(changes.keys())) {
    const change = changes.get(path) as Change
    const parent = changes.get(parentOf(path))
    if (change.made && parent?.made === true && top !== undefined) {
      top.content.push(path)
      continue
    }
    if (change.removed && !change.made && parent?.removed === true) continue
    const content: BytePath[] = change.made ? [path] : []
    const kind = change.made ? (change.removed ? "replace" : "put") : change.removed ? "remove" : "attributes"
    moves.push({ path, kind, content, renamed: change.renamed })
    if (change.made) top = { path, content }
  }
  return moves
}

const collect = (effects: readonly Effect[], only: Keep): Map<BytePath, Change> => {
  const changes = new Map<BytePath, Change>()
  const at = (path: string): Change => {
    const key = parseName(path)
    const change = changes.get(key) ?? { removed: false, made: false, renamed: false }
    changes.set(key, change)
    return change
  }
  const leftOut: BytePath[] = []
  const folders = new Set<BytePath>()
  for (const effect of effects) {
    if (effect.kind === "mkdir") folders.add(parseName(effect.path))
    if (effect.kind === "rename" && effect.from !== undefined) {
      if (only(effect.from)) at(effect.from).removed = true
      else leftOut.push(parseName(effect.from))
    }
    if (!only(effect.path)) {
      leftOut.push(parseName(effect.path))
      continue
    }
    const change = at(effect.path)
    if (effect.kind === "delete" || effect.kind === "rmdir") change.removed = true
    else if (effect.kind !== "chmod" && effect.kind !== "xattr") {
      change.made = true
      change.renamed = effect.kind === "rename"
      const replaces = effect.kind === "modify" || (effect.before !== undefined && effect.kind !== "rename")
      if (replaces) change.removed = true
    }
  }
  // A folder that was removed keeps its place while something below it stays.
  for (const path of leftOut) {
    for (let up = parentOf(path); up !== ""; up = parentOf(up)) {
      const change = changes.get(up)
      if (change?.removed === true && !change.made) changes.delete(up)
    }
  }
  // A new folder is made when something below it is kept.
  for (const [path, change] of [...changes]) {
    if (!change.made) continue
    for (let up = parentOf(path); up !== "" && !changes.has(up) && folders.has(up); up = parentOf(up)) {
      changes.set(up, { removed: false, made: true, renamed: false })
    }
  }
  return changes
}

/** Depth first: everything below a path directly after it. */
const byTree = (paths: Iterable<BytePath>): BytePath[] =>
  Array.from(paths, (path) => ({ path, key: path.replaceAll("/", "\0") }))
    .sort((a, b) => (a.key < b.key ? -1 : a.key > b.key ? 1 : 0))
    .map(({ path }) => path)
