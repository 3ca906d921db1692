/**
 * The write set of one overlay layer.
 *
 * Guarantees: `readWriteSet` walks the upper layer only, plus the lower trees that it deletes, so that its cost
 * follows what changed. The result is the net difference between lower and merged view, complete and sorted:
 * copied-up but unchanged entries are no effect; every deleted path is listed; a change of type is the deletion of
 * the old and the creation of the new; below a folder that replaces something else nothing is compared with lower.
 * Anything that cannot be told truthfully (redirects, metacopy, caps reached, a lower tree that does not hold still)
 * or in time throws `LayerRefused`. Reading takes turns with other work of the process.
 * Assumes: the writers are dead and the overlay was mounted with `redirect_dir=off,metacopy=off`. Symlinks in lower
 * are never followed, even if another program plants them meanwhile.
 * Does not: report owners (the sandbox cannot change them, and an idmapped lower shows others), times of folders and
 * links alone (a folder's follow its entries, also those that came and went), or attributes of the layer's root itself.
 */
import { closeSync, fstatSync, lstatSync, readdirSync, readlinkSync, type Stats } from "node:fs"
import type { OpenFolder } from "../folder.ts"
import { entry, errorCode, lstatIn, namesIn, openDir, openFile, openRoot } from "./beneath.ts"
import { Breath } from "./breath.ts"
import { digestBytes } from "./digest.ts"
import { DEFAULT_LAYER_LIMITS, LayerRefused, type LayerLimits } from "./limits.ts"
import { below, displayName, fromBuffer, join, ROOT, type BytePath } from "./names.ts"
import { digestDeletedFiles, recogniseLinks, recogniseRenames } from "./judging/recognise.ts"
import { LayerAttributes } from "./reading/attributes.ts"
import { LayerDigests } from "./reading/digests.ts"
import { FoundEffects } from "./reading/found.ts"
import { looksLikeRepository } from "./judging/sensitive-paths.ts"
import { escapeOf } from "./symlink-target.ts"
import type { WriteSet } from "./types.ts"
import { overlayValue, readAttributes, sameXattrs, type EntryAttributes, type XattrPrefix } from "./xattrs.ts"

export interface ReadOptions {
  /** the real folder that the overlay's lower layer shows */
  readonly lower: string | OpenFolder
  readonly upper: string
  /** which attribute namespace the overlay was mounted with */
  readonly xattrPrefix: XattrPrefix
  readonly limits?: Partial<LayerLimits>
}

/** What lies under an upper folder: a folder that shows through, one that is hidden, or nothing. */
type Under = "merged" | "hidden" | "nothing"

const S_IFMT = 0o170000n
const SPECIAL_BITS = 0o7000
const typeOf = (mode: number | bigint): bigint => BigInt(mode) & S_IFMT
const permissions = (mode: number | bigint): number => Number(mode) & 0o7777

const refusal = (bits: number, attributes: EntryAttributes): { refused?: string } => {
  if ((bits & SPECIAL_BITS) !== 0) return { refused: "sets a setuid, setgid or sticky bit" }
  return attributes.refused === undefined ? {} : { refused: attributes.refused }
}

/** What a lower entry answers when another program swaps or removes it between two looks at it. */
const SWAPPED = ["ENOENT", "ENOTDIR", "ELOOP", "EXDEV", "EINVAL", "ESTALE"]
const ATTEMPTS = 5

export const readWriteSet = async (options: ReadOptions): Promise<WriteSet> => {
  for (let attempt = 1; ; attempt++) {
    try {
      return await readOnce(options)
    } catch (error) {
      if (error instanceof LayerRefused || !SWAPPED.includes(errorCode(error))) throw error
      const why = error instanceof Error ? error.message : String(error)
      if (attempt === ATTEMPTS) throw new LayerRefused("unstable", `the workspace keeps changing underneath: ${why}`)
    }
  }
}

const readOnce = async (options: ReadOptions): Promise<WriteSet> => {
  const reader = new LayerReader(options, { ...DEFAULT_LAYER_LIMITS, ...options.limits })
  try {
    await reader.readFolder(ROOT, "merged", 0)
    recogniseLinks(reader.found.all)
    await reader.digestDeleted()
    const { repositories } = reader
    return {
      effects: recogniseRenames(reader.found.all),
      bytes: reader.bytes,
      ...(repositories.length === 0 ? {} : { repositories }),
    }
  } finally {
    reader.close()
  }
}

class LayerReader {
  readonly found: FoundEffects
  readonly repositories: string[] = []
  bytes = 0
  readonly #options: ReadOptions
  readonly #limits: LayerLimits
  readonly #lower: number
  readonly #breath: Breath
  readonly #digests: LayerDigests
  readonly #attributes: LayerAttributes

  constructor(options: ReadOptions, limits: LayerLimits) {
    const upper = lstatSync(options.upper)
    this.#lower = openRoot(options.lower)
    const lower = fstatSync(this.#lower)
    if (upper.dev === lower.dev && upper.ino === lower.ino) {
      this.close()
      throw new LayerRefused("same-directory", "the layer and the folder below it are the same directory")
    }
    this.#options = options
    this.#limits = limits
    this.#breath = new Breath(
      limits.maxReadMs,
      () => new LayerRefused("too-slow", `what the call changed could not be read within ${limits.maxReadMs} ms`),
    )
    this.found = new FoundEffects(limits)
    this.#digests = new LayerDigests(options.upper, limits, () => this.#breath.take())
    this.#attributes = new LayerAttributes(options.upper, this.#lower, options.xattrPrefix)
  }

  close(): void {
    closeSync(this.#lower)
  }

  #upper(path: BytePath): Buffer {
    return below(this.#options.upper, path)
  }

  /** `under` says how lower relates to this folder; the root's own attributes are the mounter's, not the tool's. */
  async readFolder(path: BytePath, under: Under, depth: number): Promise<void> {
    const names = readdirSync(this.#upper(path), { encoding: "buffer" }).map(fromBuffer).sort()
    const dir = under === "nothing" ? undefined : openDir(this.#lower, path)
    try {
      const gone = new Set<BytePath>()
      const xattrWhiteouts = depth > 0 && overlayValue(this.#upper(path), this.#options.xattrPrefix, "opaque") === "x"
      for (const name of names) {
        const child = join(path, name)
        await this.#breath.take()
        if (child.length > this.#limits.maxPathBytes) this.found.add("create", child)
        const stats = lstatSync(this.#upper(child))
        const device = stats.isCharacterDevice() && stats.rdev === 0
        const whiteout = device || (xattrWhiteouts && this.#isXattrWhiteout(child, stats))
        if (whiteout) gone.add(name)
        await this.#readEntry(child, name, whiteout ? undefined : stats, dir, under, depth)
      }
      const lower = dir === undefined ? [] : namesIn(dir)
      if (under === "hidden" && dir !== undefined) {
        const seen = new Set(names)
        for (const name of lower) if (!seen.has(name)) await this.#delete(join(path, name), dir, name)
      }
      const standing = [...names, ...(under === "merged" ? lower : [])].filter((name) => !gone.has(name))
      if (looksLikeRepository(standing.map(displayName))) this.repositories.push(displayName(path))
    } finally {
      if (dir !== undefined) closeSync(dir)
    }
  }

  #isXattrWhiteout(path: BytePath, stats: Stats): boolean {
    return (
      stats.isFile() &&
      stats.size === 0 &&
      readAttributes(this.#upper(path), this.#options.xattrPrefix).overlay.has("whiteout")
    )
  }

  /** `stats` is undefined for a whiteout, `dir` where nothing lies under the folder. */
  async #readEntry(
    path: BytePath,
    name: BytePath,
    stats: Stats | undefined,
    dir: number | undefined,
    under: Under,
    depth: number,
  ): Promise<void> {
    const lower = dir === undefined ? undefined : lstatIn(dir, name)
    if (stats === undefined) {
      if (lower !== undefined && dir !== undefined) await this.#delete(path, dir, name)
      return
    }
    const attributes = this.#attributes.of(
      path,
      lower === undefined || dir === undefined ? undefined : entry(dir, name),
    )
    if (attributes.overlay.has("redirect") || attributes.overlay.has("metacopy")) {
      throw new LayerRefused(
        "unsupported-layer",
        `${displayName(path)}: the overlay was mounted with redirect_dir or metacopy`,
      )
    }
    if (lower === undefined || dir === undefined || typeOf(lower.mode) !== typeOf(stats.mode)) {
      if (lower !== undefined && dir !== undefined) await this.#delete(path, dir, name)
      await this.#created(path, stats, attributes, dir, depth)
    } else if (stats.isDirectory()) {
      this.#attributesOf(path, stats, attributes, permissions(lower.mode), entry(dir, name))
      const opaque = under === "hidden" || overlayValue(this.#upper(path), this.#options.xattrPrefix, "opaque") === "y"
      await this.readFolder(path, opaque ? "hidden" : "merged", depth + 1)
    } else if (stats.isFile()) {
      await this.#changedFile(
        path,
        stats,
        attributes,
        Number(lower.size),
        permissions(lower.mode),
        lower.mtimeNs,
        entry(dir, name),
      )
    } else if (stats.isSymbolicLink()) {
      const before = readlinkSync(entry(dir, name), { encoding: "buffer" })
      const after = readlinkSync(this.#upper(path), { encoding: "buffer" })
      if (!before.equals(after)) this.#symlink(path, after, digestBytes(before), stats)
    } else {
      this.#special(path, stats)
    }
  }

  async #created(
    path: BytePath,
    stats: Stats,
    attributes: EntryAttributes,
    dir: number | undefined,
    depth: number,
  ): Promise<void> {
    if (stats.isDirectory()) {
      const inherited = dir !== undefined && (Number(lstatSync(`/proc/self/fd/${dir}/.`).mode) & 0o2000) !== 0
      const bits = inherited || this.#parentIsSetgid(path) ? permissions(stats.mode) & ~0o2000 : permissions(stats.mode)
      this.found.add("mkdir", path, { mode: { after: permissions(stats.mode) }, ...refusal(bits, attributes) })
      await this.readFolder(path, "nothing", depth + 1)
    } else if (stats.isFile()) {
      const after = await this.#digests.ofUpper(path, stats)
      const mode = { after: permissions(stats.mode) }
      this.found.add("create", path, {
        after,
        mode,
        size: stats.size,
        inode: stats.ino,
        links: stats.nlink,
        ...refusal(mode.after, attributes),
      })
      this.bytes += stats.size
    } else if (stats.isSymbolicLink()) {
      this.#symlink(path, readlinkSync(this.#upper(path), { encoding: "buffer" }), undefined, stats)
    } else {
      this.#special(path, stats)
    }
  }

  #parentIsSetgid(path: BytePath): boolean {
    const at = path.lastIndexOf("/")
    return at > 0 && (lstatSync(this.#upper(path.slice(0, at) as BytePath)).mode & 0o2000) !== 0
  }

  async #changedFile(
    path: BytePath,
    stats: Stats,
    attributes: EntryAttributes,
    lowerSize: number,
    lowerMode: number,
    lowerMtimeNs: bigint,
    lower: Buffer,
  ): Promise<void> {
    const after = await this.#digests.ofUpper(path, stats)
    const before = await this.#digests.ofLower(lower, lowerSize)
    if (after === before) {
      this.#attributesOf(path, stats, attributes, lowerMode, lower)
      // A copy in the layer keeps the time of what it was copied from, so another time was set, or came with a write.
      if (lstatSync(this.#upper(path), { bigint: true }).mtimeNs !== lowerMtimeNs)
        this.found.add("touch", path, { before, after, size: stats.size, ...refusal(0, attributes) })
      return
    }
    const modeAfter = permissions(stats.mode)
    const mode = modeAfter === lowerMode ? {} : { mode: { before: lowerMode, after: modeAfter } }
    const inode = { inode: stats.ino, links: stats.nlink }
    this.found.add("modify", path, {
      ...(before === undefined ? {} : { before }),
      after,
      size: stats.size,
      ...mode,
      ...inode,
      ...refusal(modeAfter, attributes),
    })
    this.bytes += stats.size
  }

  /** Mode and extended attributes of an entry whose content is unchanged. */
  #attributesOf(path: BytePath, stats: Stats, attributes: EntryAttributes, lowerMode: number, lower: Buffer): void {
    const directory = stats.isDirectory() ? { directory: true as const } : {}
    const mode = permissions(stats.mode)
    const gained = mode & ~lowerMode
    if (mode !== lowerMode)
      this.found.add("chmod", path, {
        mode: { before: lowerMode, after: mode },
        ...directory,
        ...refusal(gained, attributes),
      })
    if (!sameXattrs(attributes.payload, readAttributes(lower, undefined).payload) || attributes.refused !== undefined) {
      this.found.add("xattr", path, { ...directory, ...refusal(0, attributes) })
    }
  }

  #symlink(path: BytePath, target: Buffer, before: string | undefined, stats: Stats): void {
    const text = displayName(fromBuffer(target))
    // By bytes: whether it climbs is the same in either spelling.
    const escape = escapeOf(path, fromBuffer(target))
    const links = { inode: stats.ino, links: stats.nlink }
    this.found.add("symlink", path, {
      ...(before === undefined ? {} : { before }),
      after: digestBytes(target),
      target: text,
      ...links,
      ...(escape === undefined ? {} : { refused: escape }),
    })
  }

  #special(path: BytePath, stats: Stats): void {
    const what = stats.isFIFO() ? "a fifo" : stats.isSocket() ? "a socket" : "a device"
    this.found.add("special", path, {
      mode: { after: permissions(stats.mode) },
      refused: `${what} cannot be committed`,
    })
  }

  /** Lists a lower entry, and all that is below it, as deleted. Holds one descriptor at a time. */
  async #delete(path: BytePath, dir: number, name: BytePath): Promise<void> {
    if (this.#deleteOne(path, dir, name) !== "folder") return
    const folders: BytePath[] = [path]
    for (let at = folders.pop(); at !== undefined; at = folders.pop()) {
      const inner = openDir(this.#lower, at)
      try {
        for (const child of namesIn(inner)) {
          await this.#breath.take()
          if (this.#deleteOne(join(at, child), inner, child) === "folder") folders.push(join(at, child))
        }
      } finally {
        closeSync(inner)
      }
    }
  }

  #deleteOne(path: BytePath, dir: number, name: BytePath): "folder" | "leaf" {
    const stats = lstatIn(dir, name)
    if (stats === undefined) return "leaf"
    const mode = { mode: { before: permissions(stats.mode) } }
    if (stats.isDirectory()) {
      this.found.add("rmdir", path, mode)
      return "folder"
    }
    if (stats.isSymbolicLink()) {
      this.found.add("delete", path, { before: digestBytes(readlinkSync(entry(dir, name), { encoding: "buffer" })) })
    } else if (stats.isFile()) {
      this.found.add("delete", path, { ...mode, deletedSize: Number(stats.size) })
    } else {
      this.found.add("delete", path, mode)
    }
    return "leaf"
  }

  /** Digests of deleted files: those that may turn out to be renames, and others while the budget lasts. */
  async digestDeleted(): Promise<void> {
    await digestDeletedFiles(this.found.all, async (path, size) => {
      let fd: number
      try {
        fd = openFile(this.#lower, path)
      } catch {
        return undefined // gone or swapped meanwhile: the commit's conflict check decides
      }
      return this.#digests.of(fd, size)
    })
  }
}
