/**
 * What single changes mean together: files that share an inode, and a deletion plus a creation that are one rename.
 *
 * Guarantees: a hard link is reported only between files of the same write set, since only those are committed as
 * one (a link to a file that the call did not change becomes a file of its own). A rename is reported only where one
 * deleted and one created file have the same content and no other does; both its ends are to be judged.
 * Empty files are never taken for renames.
 */
import { DELETED_DIGEST_BYTES } from "../limits.ts"
import type { BytePath } from "../names.ts"
import type { Effect } from "../types.ts"

type Mutable<T> = { -readonly [K in keyof T]: T[K] }
/** An effect while the layer is being read. */
export interface Pending extends Mutable<Effect> {
  readonly bytePath: BytePath
  readonly inode?: number
  readonly links?: number
  /** size of a deleted regular file */
  readonly deletedSize?: number
}

export const recogniseLinks = (found: readonly Pending[]): void => {
  const groups = new Map<number, Pending[]>()
  for (const effect of found) {
    if ((effect.kind !== "create" && effect.kind !== "modify") || effect.inode === undefined || (effect.links ?? 1) < 2)
      continue
    const group = groups.get(effect.inode)
    if (group === undefined) groups.set(effect.inode, [effect])
    else group.push(effect)
  }
  for (const group of groups.values()) {
    const first = group.find((effect) => effect.kind === "modify") ?? group[0]
    for (const effect of group) {
      if (first === undefined || effect === first) continue
      effect.kind = "hardlink"
      effect.from = first.path
    }
  }
}

/** Fill in `before` of deleted files: those that may be renames always, others while the budget lasts. */
export const digestDeletedFiles = async (
  found: readonly Pending[],
  digest: (path: BytePath, size: number) => Promise<string | undefined>,
): Promise<void> => {
  const createdSizes = new Set(found.filter((effect) => effect.kind === "create").map((effect) => effect.size))
  let budget = DELETED_DIGEST_BYTES
  for (const effect of found) {
    const size = effect.deletedSize
    if (size === undefined) continue
    const maybeRename = size > 0 && createdSizes.has(size)
    if (!maybeRename && size > budget) continue
    if (!maybeRename) budget -= size
    const before = await digest(effect.bytePath, size)
    if (before !== undefined) effect.before = before
  }
}

/** The finished effects, sorted by path, a deletion before what takes its place. */
export const recogniseRenames = (found: readonly Pending[]): Effect[] => {
  const deleted = unique(
    found.filter((effect) => effect.deletedSize !== undefined),
    (effect) => effect.before,
  )
  const created = unique(
    found.filter((effect) => effect.kind === "create" && (effect.size ?? 0) > 0),
    (effect) => effect.after,
  )
  const gone = new Set<Pending>()
  for (const [content, effect] of created) {
    const source = deleted.get(content)
    if (effect === undefined || source === undefined || source.path === effect.path) continue
    gone.add(source)
    effect.kind = "rename"
    effect.from = source.path
    effect.before = content
    const before = source.mode?.before
    const after = effect.mode?.after
    if (before !== undefined && after !== undefined) effect.mode = { before, after }
  }
  return found
    .filter((effect) => !gone.has(effect))
    .sort((a, b) => compare(a.bytePath, b.bytePath) || rank(a) - rank(b))
    .map(({ bytePath: _path, inode: _inode, links: _links, deletedSize: _size, ...effect }) => effect)
}

const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)
const rank = (effect: Effect): number => (effect.kind === "delete" || effect.kind === "rmdir" ? 0 : 1)

/** Key → the one effect that has it, or undefined where several do. */
const unique = (
  effects: readonly Pending[],
  key: (effect: Pending) => string | undefined,
): Map<string, Pending | undefined> => {
  const map = new Map<string, Pending | undefined>()
  for (const effect of effects) {
    const value = key(effect)
    if (value !== undefined) map.set(value, map.has(value) ? undefined : effect)
  }
  return map
}
