/**
 * What of a workspace the sandbox may see, made true with mounts.
 *
 * Guarantees: what the patterns do not cover cannot be opened. A folder that is built holds only what is allowed, at any
 * time; what others make there during the call does not appear. In a folder that is kept, because the call may make
 * things in it, hidden entries are covered; if one that must not be seen appears there during the call, the call is
 * refused at its end and nothing of it is passed on.
 * Does not: hide the name of a covered entry, nor the target text of a symlink in a kept folder.
 */
import { closeSync, constants, existsSync, openSync, readdirSync } from "node:fs"
import { dirname, basename, join } from "node:path"
import { openat2Beneath } from "../../../linux/files.ts"
import { MNT_DETACH, umount } from "../../../linux/mounts.ts"
import { matches, type WorkspacePath } from "../../../manifest/values/globs.ts"
import { isReserved } from "../../effects/names.ts"
import { makeFile, makeFolder } from "../../exact-modes.ts"
import { type Identity, LayerUnavailable } from "../overlay.ts"
import { type Blanks, cover, Placing } from "./view-place.ts"
import { builtPaths, coveredPaths, type ListedEntry, parsedGlobs, planView, type View } from "./view-plan.ts"

/** A filter that keeps the paths some pattern matches. */
export const globFilter = (patterns: readonly string[]): ((path: string) => boolean) => {
  const globs = parsedGlobs(patterns)
  return (path) => globs.some((glob) => matches(glob, path as WorkspacePath))
}

/** `root` is a descriptor; no link on the way to the folder is followed. */
const listFolder = (root: number, folder: string): ListedEntry[] => {
  const fd = openat2Beneath(root, folder === "" ? "." : folder, constants.O_RDONLY | constants.O_DIRECTORY)
  try {
    return readdirSync(`/proc/self/fd/${fd}`, { withFileTypes: true }).map((entry) => ({
      name: entry.name,
      kind: entry.isSymbolicLink() ? "link" : entry.isDirectory() ? "folder" : "file",
    }))
  } finally {
    closeSync(fd)
  }
}

/** Blank entries to mount over hidden ones; unreadable even for their owner. */
const blanksIn = (base: string): Blanks => {
  const [file, folder] = [join(base, "blank-file"), join(base, "blank-folder")]
  if (!existsSync(folder)) {
    makeFile(file, "", 0o000)
    makeFolder(folder, 0o000)
  }
  return { file, folder }
}

interface ViewOptions {
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

/** What opening an entry answers when it is not any more what it was listed as. */
const SWAPPED = ["ENOENT", "ENOTDIR", "ELOOP", "EXDEV", "EINVAL"]
const refusingSwaps = <T>(look: () => T): T => {
  try {
    return look()
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    if (!SWAPPED.includes(String(code))) throw error
    throw new LayerUnavailable(`the workspace changed while its view was made: ${message}`, "run it again")
  }
}

const withFolder = <T>(path: string, use: (fd: number) => T): T => {
  const fd = openSync(path, constants.O_DIRECTORY | constants.O_RDONLY)
  try {
    return use(fd)
  } finally {
    closeSync(fd)
  }
}

const nothingOver: ShownView = { unmount: () => undefined, check: () => undefined }

/** Other calls' commits may be staged in the workspace itself; they are nobody's to read. */
const withoutStaged = (entries: readonly ListedEntry[]): ListedEntry[] =>
  entries.filter(({ name, kind }) => kind !== "folder" || !isReserved(name))

export const showView = (options: ViewOptions): ShownView => refusingSwaps(() => show(options))

const show = ({ source, merged, view, write, blank, identity }: ViewOptions): ShownView => {
  const listed = (folder: string): ListedEntry[] => withFolder(source, (root) => listFolder(root, folder))
  const staged = listed("").filter(({ name, kind }) => kind === "folder" && isReserved(name))
  const list = (folder: string): ListedEntry[] => (folder === "" ? withoutStaged(listed("")) : listed(folder))
  const plan = planView(view, write, list)
  if (!plan.ok) throw cannot(plan.message)
  const coverStaged = (layer: number): void => {
    for (const { name } of staged) cover(blanksIn(blank).folder, layer, name)
  }
  if (plan.root === "everything") {
    if (staged.length > 0) withFolder(merged, coverStaged)
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
  const root = plan.root === "nothing" ? { how: "built" as const, entries: [] } : plan.root
  const placing = new Placing(() => blanksIn(blank), identity)
  withFolder(merged, (layer) => {
    if (root.how === "built")
      withFolder(dirname(merged), (parent) => placing.build(root, layer, layer, parent, basename(merged)))
    else {
      coverStaged(layer)
      placing.fill(root, layer, layer)
    }
  })
  if (root.how === "built") return over
  const known = new Set(coveredPaths(root))
  const built = builtPaths(root)
  const look = (): void => {
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
  }
  return { unmount: () => undefined, check: () => refusingSwaps(look) }
}
