/**
 * What of a workspace a sandbox is shown, folder by folder. Pure but for `list`, which names a folder's entries.
 *
 * Guarantees: a path is shown only if a read or write pattern covers it and no deny pattern does. A folder of which only
 * a part may be seen is `built` from that part, so that what others put there later is not in it; where the call may
 * make something in it, it stays the folder itself with what is hidden covered (`kept`). The walk goes only where
 * patterns end inside a folder: a pattern that covers everything costs nothing.
 */
import {
  coversTree,
  type Glob,
  matches,
  mayMatchBelow,
  namesBelow,
  parseGlob,
  parseWorkspacePath,
  type WorkspacePath,
} from "../../../manifest/values/globs.ts"

/** More mounts than this cost too much; folders are then kept, and hidden entries covered one by one. */
const maxMounts = 512
const maxVisited = 50_000

export interface View {
  readonly read: readonly string[]
  readonly deny: readonly string[]
}
export interface ListedEntry {
  readonly name: string
  readonly kind: "file" | "folder" | "link"
}
/** An entry of a folder that is shown in part. */
export type ShownEntry =
  | { readonly name: string; readonly is: "hidden"; readonly folder: boolean }
  | { readonly name: string; readonly is: "file" | "link" | "whole" }
  | { readonly name: string; readonly is: "partial"; readonly content: ShownFolder }
export interface ShownFolder {
  readonly how: "built" | "kept"
  readonly entries: readonly ShownEntry[]
}
type ViewPlan =
  | { readonly ok: true; readonly root: "everything" | "nothing" | ShownFolder }
  | { readonly ok: false; readonly message: string }

export const parsedGlobs = (patterns: readonly string[]): Glob[] =>
  patterns.map((text) => {
    const result = parseGlob(text)
    if (!result.ok) throw new Error(`a pattern that was not checked: ${result.message}`)
    return result.glob
  })

class TooMuch extends Error {}

interface Walk {
  readonly view: View
  readonly write: readonly string[]
  readonly list: (folder: string) => readonly ListedEntry[]
  /** may folders be built from their parts? */
  readonly build: boolean
}

const walkView = ({ view, write, list, build }: Walk): { readonly root: ShownFolder; readonly mounts: number } => {
  const allow = parsedGlobs([...view.read, ...write])
  const deny = parsedGlobs(view.deny)
  const writable = parsedGlobs(write)
  let visited = 0
  let mounts = 0
  const below = (globs: readonly Glob[], path: WorkspacePath): boolean =>
    globs.some((glob) => coversTree(glob, path) || mayMatchBelow(glob, path))
  /** May the call make or replace something right in this folder? A folder that is there is written in, not made. */
  const takesNew = (folder: WorkspacePath, entries: readonly ListedEntry[]): boolean => {
    const folders = new Set(entries.filter(({ kind }) => kind === "folder").map(({ name }) => name))
    return writable.some((glob) => {
      const names = namesBelow(glob, folder)
      return names === "any" || [...names].some((name) => !folders.has(name))
    })
  }
  const show = (folder: WorkspacePath): ShownFolder => {
    const listed = list(folder)
    const how = build && !takesNew(folder, listed) ? "built" : "kept"
    mounts += how === "built" ? 1 : 0
    const entries = listed.map((entry): ShownEntry => {
      visited += 1
      if (visited > maxVisited)
        throw new TooMuch(`the read and deny patterns need a look at more than ${maxVisited} entries`)
      const { name, kind } = entry
      const result = parseWorkspacePath(folder === "" ? name : `${folder}/${name}`)
      if (!result.ok || name.includes("\uFFFD")) throw new TooMuch(`the name ${JSON.stringify(name)} cannot be judged`)
      const path = result.path
      const isFolder = kind === "folder"
      const denied = deny.some((glob) => matches(glob, path) || (isFolder && coversTree(glob, path)))
      const whole = allow.some((glob) => (isFolder ? coversTree(glob, path) : matches(glob, path)))
      const enter = isFolder && !denied && (whole ? below(deny, path) : below(allow, path))
      if (enter) return { name, is: "partial", content: show(path) }
      const hidden = denied || !whole
      if (kind === "link")
        return hidden && how === "built" ? { name, is: "hidden", folder: false } : { name, is: "link" }
      mounts += hidden === (how === "kept") ? 1 : 0
      if (hidden) return { name, is: "hidden", folder: isFolder }
      return { name, is: isFolder ? "whole" : "file" }
    })
    return { how, entries }
  }
  return { root: show("" as WorkspacePath), mounts }
}

export const planView = (
  view: View,
  write: readonly string[],
  list: (folder: string) => readonly ListedEntry[],
  build = true,
): ViewPlan => {
  const allow = parsedGlobs([...view.read, ...write])
  if (allow.length === 0) return { ok: true, root: "nothing" }
  if (allow.some((glob) => coversTree(glob, "" as WorkspacePath)) && view.deny.length === 0)
    return { ok: true, root: "everything" }
  try {
    const walk = { view, write, list }
    const built = build ? walkView({ ...walk, build }) : undefined
    if (built !== undefined && built.mounts <= maxMounts) return { ok: true, root: built.root }
    const kept = walkView({ ...walk, build: false })
    return kept.mounts <= maxMounts
      ? { ok: true, root: kept.root }
      : { ok: false, message: `the read and deny patterns hide more than ${maxMounts} entries one by one` }
  } catch (error) {
    if (error instanceof TooMuch) return { ok: false, message: error.message }
    throw error
  }
}

/** Hidden entries of folders that are kept, by path: those that could be seen if nothing covered them. */
export const coveredPaths = (folder: ShownFolder, at = ""): string[] =>
  folder.entries.flatMap((entry) => {
    const path = at === "" ? entry.name : `${at}/${entry.name}`
    if (entry.is === "partial") return coveredPaths(entry.content, path)
    return entry.is === "hidden" && folder.how === "kept" ? [path] : []
  })
/** Folders that are built, outermost only: nothing that is not named in the plan is in them. */
export const builtPaths = (folder: ShownFolder, at = ""): string[] =>
  folder.how === "built"
    ? [at]
    : folder.entries.flatMap((entry) =>
        entry.is === "partial" ? builtPaths(entry.content, at === "" ? entry.name : `${at}/${entry.name}`) : [],
      )
