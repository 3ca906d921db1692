/**
 * What of a workspace the sandbox may see, made true with mounts.
 *
 * Guarantees: what the patterns do not cover cannot be opened. A folder that is built holds only what is allowed, at any
 * time; what others make there during the call does not appear. In a folder that is kept, because the call may make
 * things in it, hidden entries are covered; if one that must not be seen appears there during the call, the call is
 * refused at its end and nothing of it is passed on.
 * Does not: hide the name of a covered entry, nor the target text of a symlink in a kept folder.
 */
import {
  chmodSync,
  chownSync,
  closeSync,
  constants,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readlinkSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs"
import { join } from "node:path"
import { makeFile, makeFolder, makeFolders } from "./exact-modes.ts"
import { isReserved } from "./effects/names.ts"
import { matches, type WorkspacePath } from "../manifest/globs.ts"
import { type Identity, LayerUnavailable } from "./layers/overlay.ts"
import { MNT_DETACH, MS, mount, umount } from "../linux/syscalls.ts"
import {
  coveredPaths,
  builtPaths,
  type ListedEntry,
  parsedGlobs,
  planView,
  type ShownFolder,
  type View,
} from "./view-plan.ts"

/** A filter that keeps the paths some pattern matches. */
export const globFilter = (patterns: readonly string[]): ((path: string) => boolean) => {
  const globs = parsedGlobs(patterns)
  return (path) => globs.some((glob) => matches(glob, path as WorkspacePath))
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
    makeFile(file, "", 0o000)
    makeFolder(folder, 0o000)
  }
  return { file, folder }
}
const locked = MS.NOSUID | MS.NODEV | MS.NOEXEC
const makeReadOnly = (target: string): void =>
  mount("none", target, null, MS.BIND | MS.REMOUNT | MS.RDONLY | locked, null)
const bindReadOnly = (source: string, target: string): void => {
  mount(source, target, null, MS.BIND, null)
  makeReadOnly(target)
}

export interface ViewOptions {
  readonly source: string
  /** the mounted layer, which the sandbox is given */
  readonly merged: string
  readonly view: View
  readonly write: readonly string[]
  /** a folder of the caller's for the blank entries */
  readonly blank: string
  /** as root: who the sandbox runs as */
  readonly identity: Identity | undefined
}
/** A view in place. */
export interface ShownView {
  /** Take away what lies over the layer as a whole, so that the layer itself can be unmounted. */
  unmount(): void
  /** Throws where something that must not be seen appeared in a folder that is kept. */
  check(): void
}

const cannot = (message: string): LayerUnavailable =>
  new LayerUnavailable(
    `the driver's file view cannot be enforced in this workspace: ${message}`,
    "use folder patterns such as `src/**` in fs.read and fs.deny, or a smaller workspace",
  )

/** Puts folders in place; `under` is the layer itself, reached past what is mounted on it. */
const placing = (under: string, blank: string, identity: Identity | undefined) => {
  const like = (path: string, target: string): void => {
    chmodSync(target, statSync(join(under, path)).mode & 0o777)
    if (identity !== undefined) chownSync(target, identity.uid, identity.gid)
  }
  const fill = (folder: ShownFolder, path: string, target: string): void => {
    for (const entry of folder.entries) {
      const [from, to] = [join(path, entry.name), join(target, entry.name)]
      const source = join(under, from)
      if (folder.how === "kept") {
        if (entry.is === "hidden") bindReadOnly(blanks(blank)[entry.folder ? "folder" : "file"], to)
        else if (entry.is === "partial" && entry.content.how === "built") build(entry.content, from, to)
        else if (entry.is === "partial") fill(entry.content, from, to)
        continue
      }
      if (entry.is === "hidden") continue
      if (entry.is === "link") symlinkSync(readlinkSync(source), to)
      else if (entry.is === "file") {
        writeFileSync(to, "")
        mount(source, to, null, MS.BIND, null)
      } else {
        mkdirSync(to)
        if (entry.is === "partial" && entry.content.how === "built") {
          fill(entry.content, from, to)
          like(from, to)
        } else {
          mount(source, to, null, MS.BIND, null)
          if (entry.is === "partial") fill(entry.content, from, to)
        }
      }
    }
  }
  const build = (folder: ShownFolder, path: string, target: string): void => {
    mount("tmpfs", target, "tmpfs", locked, "size=4m,nr_inodes=60000,mode=0755")
    fill(folder, path, target)
    like(path, target)
    makeReadOnly(target)
  }
  return { fill, build }
}

const nothingOver: ShownView = { unmount: () => undefined, check: () => undefined }

/** Other calls' commits may be staged in the workspace itself; they are nobody's to read. */
const withoutStaged = (entries: readonly ListedEntry[]): ListedEntry[] =>
  entries.filter(({ name, kind }) => kind !== "folder" || !isReserved(name))

export const showView = ({ source, merged, view, write, blank, identity }: ViewOptions): ShownView => {
  const staged = readdirSync(source, { withFileTypes: true }).filter(
    (found) => isReserved(found.name) && found.isDirectory(),
  )
  const list = (folder: string): ListedEntry[] =>
    folder === "" ? withoutStaged(listFolder(source)) : listFolder(join(source, folder))
  const plan = planView(view, write, list)
  if (!plan.ok) throw cannot(plan.message)
  const coverStaged = (): void => {
    for (const { name } of staged) bindReadOnly(blanks(blank).folder, join(merged, name))
  }
  if (plan.root === "everything") {
    coverStaged()
    return nothingOver
  }
  let there = true
  const over: ShownView = {
    unmount() {
      if (there) umount(merged, MNT_DETACH)
      there = false
    },
    check: () => undefined,
  }
  if (plan.root === "nothing") {
    const empty = join(blank, "empty-workspace")
    makeFolders(empty)
    bindReadOnly(empty, merged)
    return over
  }
  const { root } = plan
  const fd = openSync(merged, constants.O_DIRECTORY | constants.O_RDONLY)
  try {
    const { fill, build } = placing(`/proc/self/fd/${fd}`, blank, identity)
    if (root.how === "built") build(root, "", merged)
    else {
      coverStaged()
      fill(root, "", merged)
    }
  } finally {
    closeSync(fd)
  }
  if (root.how === "built") return over
  const known = new Set(coveredPaths(root))
  const built = builtPaths(root)
  return {
    unmount: () => undefined,
    check() {
      const now = planView(view, write, list, false)
      if (!now.ok) throw cannot(now.message)
      if (typeof now.root === "string") return
      const appeared = coveredPaths(now.root).find(
        (path) => !known.has(path) && !built.some((folder) => path.startsWith(`${folder}/`)),
      )
      if (appeared !== undefined)
        throw new LayerUnavailable(
          `${appeared}, which the driver may not read, appeared in the workspace during the call; nothing of the call is passed on`,
          "run it again",
        )
    },
  }
}
