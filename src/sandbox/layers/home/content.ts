/**
 * What a home in memory holds, compared and put together.
 *
 * Pure. Paths are below the home, escaped as everywhere (`names.ts`), folders before what lies in them.
 */
import { digestBytes } from "../../effects/digest.ts"
import { baseOf, parentOf, parseRelative } from "../../effects/names.ts"
import type { Effect, WriteSet } from "../../effects/types.ts"
import type { HomeContent, HomeEntry } from "../../home.ts"

const isSame = (a: HomeEntry | undefined, b: HomeEntry | undefined): boolean => {
  if (a === undefined || b === undefined) return a === b
  if (a.kind === "file" && b.kind === "file")
    return a.mode === b.mode && a.mtimeMs === b.mtimeMs && Buffer.compare(a.content, b.content) === 0
  if (a.kind === "link" && b.kind === "link") return a.target === b.target
  return a.kind === b.kind && a.mode === b.mode
}

const byPath = (content: HomeContent): ReadonlyMap<string, HomeEntry> =>
  new Map(content.map((entry) => [entry.path, entry]))

const changedPaths = (before: ReadonlyMap<string, HomeEntry>, after: ReadonlyMap<string, HomeEntry>): string[] =>
  [...new Set([...before.keys(), ...after.keys()])].filter((path) => !isSame(before.get(path), after.get(path))).sort()

const digestOf = (entry: HomeEntry): { readonly digest?: string } => {
  if (entry.kind === "file") return { digest: digestBytes(entry.content) }
  return entry.kind === "link" ? { digest: digestBytes(Buffer.from(entry.target)) } : {}
}

const kindOf = (was: HomeEntry | undefined, now: HomeEntry): Effect["kind"] => {
  if (now.kind === "link") return "symlink"
  if (now.kind === "folder") return was?.kind === "folder" ? "chmod" : "mkdir"
  if (was?.kind !== "file") return "create"
  if (Buffer.compare(was.content, now.content) !== 0) return "modify"
  return was.mode === now.mode ? "touch" : "chmod"
}

const effectOf = (path: string, was: HomeEntry | undefined, now: HomeEntry | undefined): Effect => {
  const before = was === undefined ? {} : digestOf(was)
  if (now === undefined)
    return {
      kind: was?.kind === "folder" ? "rmdir" : "delete",
      path,
      ...(before.digest === undefined ? {} : { before: before.digest }),
    }
  const after = digestOf(now)
  const kind = kindOf(was, now)
  return {
    kind,
    path,
    ...(before.digest === undefined ? {} : { before: before.digest }),
    ...(after.digest === undefined ? {} : { after: after.digest }),
    ...(was?.mode === now.mode
      ? {}
      : { mode: { ...(was === undefined ? {} : { before: was.mode }), after: now.mode } }),
    ...(now.kind === "file" ? { size: now.content.length } : {}),
    ...(now.kind === "link" ? { target: now.target } : {}),
    ...(kind === "chmod" && now.kind === "folder" ? { directory: true as const } : {}),
  }
}

/** What of it changed, in words of effects; of paths that count. */
export const homeChanges = (
  before: HomeContent,
  after: HomeContent,
  counts: (path: string) => boolean = () => true,
): WriteSet => {
  const [was, now] = [byPath(before), byPath(after)]
  const effects = changedPaths(was, now)
    .filter(counts)
    .map((path) => effectOf(path, was.get(path), now.get(path)))
  return { effects, bytes: effects.reduce((sum, { size }) => sum + (size ?? 0), 0) }
}

/** Every path is one below the home, and lies in folders that are there before it. */
export const isWhole = (content: HomeContent): boolean => {
  const folders = new Set([""])
  const seen = new Set<string>()
  for (const { path, kind } of content) {
    const parsed = parseRelative(path)
    if (parsed === undefined || seen.has(path) || baseOf(parsed) === "" || !folders.has(parentOf(parsed))) return false
    seen.add(path)
    if (kind === "folder") folders.add(parsed)
  }
  return true
}

const folderFirst = (a: HomeEntry, b: HomeEntry): number => (a.path < b.path ? -1 : 1)

/** A home after a call that could change these paths for good: of the rest it is as it was, whatever the call saw there. */
export const withKept = (base: HomeContent, after: HomeContent, keeps: (path: string) => boolean): HomeContent => {
  const whole = new Map(byPath(base.filter(({ path }) => !keeps(path))))
  for (const entry of after) if (keeps(entry.path) || !whole.has(entry.path)) whole.set(entry.path, entry)
  return [...whole.values()].sort(folderFirst)
}

/**
 * The changes from `base` to `mine` made to `theirs`, which others brought about from the same base. What both changed,
 * each in its own way, is a conflict, and so is what would lie in no folder.
 */
export const mergeHomes = (
  base: HomeContent,
  mine: HomeContent,
  theirs: HomeContent,
): { readonly ok: true; readonly content: HomeContent } | { readonly ok: false; readonly paths: readonly string[] } => {
  const [was, own, other] = [byPath(base), byPath(mine), new Map(byPath(theirs))]
  const conflicts: string[] = []
  for (const path of changedPaths(was, own)) {
    const wanted = own.get(path)
    const there = other.get(path)
    if (isSame(there, wanted)) continue
    if (!isSame(there, was.get(path))) conflicts.push(path)
    else if (wanted === undefined) other.delete(path)
    else other.set(path, wanted)
  }
  if (conflicts.length > 0) return { ok: false, paths: conflicts }
  const content = [...other.values()].sort(folderFirst)
  if (isWhole(content)) return { ok: true, content }
  const folders = new Set(content.flatMap(({ kind, path }) => (kind === "folder" ? [path] : [])))
  const isLost = (path: string): boolean => path.includes("/") && !folders.has(path.slice(0, path.lastIndexOf("/")))
  return { ok: false, paths: content.map(({ path }) => path).filter(isLost) }
}
