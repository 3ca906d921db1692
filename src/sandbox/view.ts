/**
 * What of a workspace the sandbox may see, made true with mounts over what it may not.
 *
 * Guarantees: a path is readable inside only if a read or write pattern covers it and no deny pattern does; hidden
 * folders are empty and hidden files are empty, and neither can be opened. The walk goes only where patterns end
 * inside a folder: a pattern that covers everything costs nothing.
 * Does not: hide the name of a hidden entry, nor the target text of a hidden symlink.
 */
import { chmodSync, existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import {
  coversTree,
  type Glob,
  matches,
  mayMatchBelow,
  parseGlob,
  parseWorkspacePath,
  type WorkspacePath,
} from "./globs.ts"
import { isReserved } from "./effects/names.ts"
import { MS, mount } from "./syscalls.ts"
import { LayerUnavailable } from "./layers/overlay.ts"

/** More hidden entries than this cost too many mounts; the patterns are then too fine for folders this large. */
export const maxHidden = 512
export const maxVisited = 50_000

export interface View {
  readonly read: readonly string[]
  readonly deny: readonly string[]
}
export interface HiddenEntry {
  readonly path: string
  readonly folder: boolean
}
export interface ListedEntry {
  readonly name: string
  readonly kind: "file" | "folder" | "link"
}
export type ViewPlan =
  | { readonly ok: true; readonly hidden: readonly HiddenEntry[] | "everything" }
  | { readonly ok: false; readonly message: string }

const parsed = (patterns: readonly string[]): Glob[] =>
  patterns.map((text) => {
    const result = parseGlob(text)
    if (!result.ok) throw new Error(`a pattern that was not checked: ${result.message}`)
    return result.glob
  })

/** A filter that keeps the paths some pattern matches. */
export const globFilter = (patterns: readonly string[]): ((path: string) => boolean) => {
  const globs = parsed(patterns)
  return (path) => globs.some((glob) => matches(glob, path as WorkspacePath))
}

/** Which entries to hide. Pure but for `list`, which names a folder's entries. */
export const planView = (
  view: View,
  write: readonly string[],
  list: (folder: string) => readonly ListedEntry[],
): ViewPlan => {
  const allow = parsed([...view.read, ...write])
  const deny = parsed(view.deny)
  const root = "" as WorkspacePath
  if (allow.length === 0) return { ok: true, hidden: "everything" }
  const hidden: HiddenEntry[] = []
  let visited = 0
  const below = (globs: readonly Glob[], path: WorkspacePath): boolean =>
    globs.some((glob) => coversTree(glob, path) || mayMatchBelow(glob, path))
  const walk = (folder: WorkspacePath): string | undefined => {
    for (const entry of list(folder)) {
      visited += 1
      if (visited > maxVisited) return `the read and deny patterns need a look at more than ${maxVisited} entries`
      const result = parseWorkspacePath(folder === "" ? entry.name : `${folder}/${entry.name}`)
      if (!result.ok || entry.name.includes("\uFFFD")) return `the name ${JSON.stringify(entry.name)} cannot be judged`
      const path = result.path
      if (entry.kind === "link") continue
      const isFolder = entry.kind === "folder"
      const denied = deny.some((glob) => matches(glob, path) || (isFolder && coversTree(glob, path)))
      const whole = allow.some((glob) => (isFolder ? coversTree(glob, path) : matches(glob, path)))
      const enter = isFolder && (whole ? below(deny, path) : below(allow, path))
      if (denied || (!whole && !enter)) {
        hidden.push({ path, folder: isFolder })
        if (hidden.length > maxHidden)
          return `the read and deny patterns hide more than ${maxHidden} entries one by one`
      } else if (enter) {
        const problem = walk(path)
        if (problem !== undefined) return problem
      }
    }
    return undefined
  }
  if (allow.some((glob) => coversTree(glob, root)) && deny.length === 0) return { ok: true, hidden }
  const problem = walk(root)
  return problem === undefined ? { ok: true, hidden } : { ok: false, message: problem }
}

const listFolder = (folder: string): ListedEntry[] =>
  readdirSync(folder, { withFileTypes: true }).map((entry) => ({
    name: entry.name,
    kind: entry.isSymbolicLink() ? "link" : entry.isDirectory() ? "folder" : "file",
  }))

/** Blank entries to mount over hidden ones; unreadable even for their owner. */
const blanks = (base: string): { file: string; folder: string } => {
  const [file, folder] = [join(base, "blank-file"), join(base, "blank-folder")]
  if (!existsSync(folder)) {
    writeFileSync(file, "", { mode: 0o000 })
    mkdirSync(folder)
    chmodSync(folder, 0o000)
  }
  return { file, folder }
}
const readOnlyFlags = MS.BIND | MS.REMOUNT | MS.RDONLY | MS.NOSUID | MS.NODEV | MS.NOEXEC

export interface HideOptions {
  readonly source: string
  readonly merged: string
  readonly view: View
  readonly write: readonly string[]
  /** a folder of the caller's for the blank entries */
  readonly blank: string
}
export const hideFromView = ({ source, merged, view, write, blank }: HideOptions): void => {
  const plan = planView(view, write, (folder) => listFolder(join(source, folder)))
  if (!plan.ok) {
    throw new LayerUnavailable(
      `the driver's file view cannot be enforced in this workspace: ${plan.message}`,
      "use folder patterns such as `src/**` in fs.read and fs.deny, or a smaller workspace",
    )
  }
  if (plan.hidden === "everything") {
    const empty = join(blank, "empty-workspace")
    mkdirSync(empty, { recursive: true, mode: 0o755 })
    mount(empty, merged, null, MS.BIND, null)
    mount("none", merged, null, readOnlyFlags, null)
    return
  }
  // Another call's commit may be staged in the workspace itself; it is nobody's to read.
  const staged = readdirSync(source, { withFileTypes: true })
    .filter((found) => isReserved(found.name) && found.isDirectory())
    .map(({ name }) => ({ path: name, folder: true }))
  for (const entry of [...plan.hidden.filter(({ path }) => !staged.some((found) => found.path === path)), ...staged]) {
    const target = join(merged, entry.path)
    const { file, folder } = blanks(blank)
    mount(entry.folder ? folder : file, target, null, MS.BIND, null)
    mount("none", target, null, readOnlyFlags, null)
  }
}
