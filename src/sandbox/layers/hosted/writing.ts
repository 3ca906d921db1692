/**
 * The upper folder of a layer that the host writes, made at the first write.
 *
 * Guarantees: made below its own descriptor alone, entry by entry as an overlay would (`copy-up.ts`). What a write would
 * hold is counted before a byte of it is written. A write that broke off half-way spoils the whole layer.
 * Assumes: one write at a time.
 */
import { chmodSync, chownSync, closeSync, constants, fstatSync, ftruncateSync, read, write } from "node:fs"
import { join as joinPath } from "node:path"
import { promisify } from "node:util"
import { openat2Beneath } from "../../../linux/files.ts"
import { errorCode, openRoot, withDir } from "../../effects/beneath.ts"
import { type Baseline, beginSnapshot } from "../../effects/index.ts"
import { type BytePath, parentOf, ROOT, toNative } from "../../effects/names.ts"
import { makeFolder } from "../../exact-modes.ts"
import type { OpenFolder } from "../../folder.ts"
import type { Limits } from "../../terms.ts"
import { openStore } from "../empty-mounts.ts"
import { budgetOf, HOSTED } from "../limits.ts"
import { LayerUnavailable } from "../owner-maps.ts"
import type { LayerPlace } from "../store.ts"
import { type Copied, copyBytes } from "../exchange/copy.ts"
import { copyFile, copyFolder, newFile, newFolder } from "./copy-up.ts"
import { type ActsAs, MAY } from "./permission.ts"
import { type Found, type Free, Refused, refusing, type Tree } from "./tree.ts"

const NO_ROOM = ["ENOSPC", "EDQUOT", "EFBIG"]
const readAt = promisify(read)
const writeAt = promisify(write)

/** Outermost first. */
const foldersTo = (path: BytePath): BytePath[] => {
  const found: BytePath[] = []
  for (let up = parentOf(path); up !== ROOT; up = parentOf(up)) found.unshift(up)
  return found
}

interface Upper {
  readonly folder: string
  readonly fd: number
  readonly since: Baseline
}

interface WritingOptions {
  readonly folder: OpenFolder
  readonly tree: Tree
  readonly as: ActsAs
  readonly limits: Pick<Limits, "diskBytes">
  /** asked at the first write */
  place(): LayerPlace
  /** when the call began; absent: at its first write */
  readonly since?: Baseline
  /** Throws where the call is over. */
  goesOn(): void
}

export class Writing implements Disposable {
  readonly #options: WritingOptions
  readonly #own = new DisposableStack()
  readonly #sizes = new Map<BytePath, number>()
  /** folders of the layer, with the modes that they are to have */
  readonly #folders = new Map<BytePath, number>()
  #bytes = 0
  #entries = 0
  #broken = false
  upper: Upper | undefined
  /** it wanted to write more than it may */
  exceeded = false
  constructor(options: WritingOptions) {
    this.#options = options
  }

  /** Nothing of the layer may be used. */
  get isSpoilt(): boolean {
    return this.#broken || this.exceeded
  }

  /** What this file is about to hold, against what the call may write in all. */
  #count(path: BytePath, size: number, entries: number): void {
    const { bytes, entries: mostEntries } = budgetOf(this.#options.limits)
    const grown = size - (this.#sizes.get(path) ?? 0)
    if (this.#bytes + grown > bytes || this.#entries + entries > mostEntries) {
      this.exceeded = true
      throw new Refused("full")
    }
    this.#sizes.set(path, size)
    this.#bytes += grown
    this.#entries += entries
  }

  async write(path: BytePath, content: Uint8Array, append: boolean): Promise<undefined> {
    const { tree, goesOn } = this.#options
    goesOn()
    const found = tree.find(path)
    if (found.root !== undefined) {
      if (!found.stats.isFile()) throw new Refused("not_a_file")
      tree.demand(found, append ? MAY.write | MAY.read : MAY.write)
    } else tree.demand(tree.existing(parentOf(found.path)), MAY.write | MAY.enter)
    const kept = append && found.root !== undefined ? Number(found.stats.size) : 0
    const upper = this.#openUpper()
    const isThere = found.root === upper.fd
    const folders = isThere ? [] : this.#missingFolders(upper, found.path)
    this.#count(found.path, kept + content.length, folders.length + (isThere ? 0 : 1))
    try {
      for (const folder of folders) this.#copyFolder(upper, folder)
      await this.#fill(upper, found, kept, content)
    } catch (error) {
      this.#broken = true
      if (!NO_ROOM.includes(errorCode(error))) throw error
      this.exceeded = true
      throw new Refused("full")
    }
    return undefined
  }

  /**
   * The bytes of an open file, at most so many, as the file at this path; folders on the way to it are made. No link is
   * followed. `tree`: what of the workspace counts for this one.
   */
  async put(tree: Tree, path: BytePath, from: number, most: number): Promise<Copied> {
    const { goesOn, as } = this.#options
    goesOn()
    const size = fstatSync(from).size
    if (size > most) throw new Refused("too_large")
    const upper = this.#openUpper()
    tree.upper = upper.fd
    const way = [...foldersTo(path), path]
    if (way.some((each) => tree.trees.some((root) => tree.lookIn(root, each)?.isSymbolicLink() === true)))
      throw new Refused("outside")
    const outermost = foldersTo(path).find((folder) => tree.find(folder).root === undefined)
    const fresh = outermost === undefined ? [] : foldersTo(path).filter((folder) => folder.length >= outermost.length)
    const found = outermost === undefined ? tree.find(path) : ({ path } as Free)
    if (found.root !== undefined) {
      if (!found.stats.isFile()) throw new Refused("not_a_file")
      tree.demand(found, MAY.write)
    } else tree.demand(tree.existing(parentOf(outermost ?? path)), MAY.write | MAY.enter)
    const isThere = found.root === upper.fd
    const copies = isThere ? [] : this.#missingFolders(upper, outermost ?? path)
    this.#count(path, size, copies.length + fresh.length + (isThere ? 0 : 1))
    try {
      for (const folder of copies) this.#copyFolder(upper, folder)
      for (const folder of fresh) newFolder(upper.fd, folder, as)
      const to = this.#openUpperFile(upper, found)
      try {
        if (isThere) ftruncateSync(to, 0)
        return await copyBytes(from, to, most)
      } finally {
        closeSync(to)
      }
    } catch (error) {
      this.#broken = true
      if (NO_ROOM.includes(errorCode(error))) this.exceeded = true
      throw error
    }
  }

  /** `kept`: bytes of what is there that stay. */
  async #fill(upper: Upper, found: Found | Free, kept: number, content: Uint8Array): Promise<void> {
    const fd = this.#openUpperFile(upper, found)
    try {
      if (found.root === upper.fd) ftruncateSync(fd, kept)
      else if (found.root !== undefined && kept > 0) await this.#copyContent(found, fd, kept)
      await this.#writeAll(fd, content, kept)
    } finally {
      closeSync(fd)
    }
  }

  #openUpper(): Upper {
    if (this.upper !== undefined) return this.upper
    const { folder: workspace, tree, as, since, place } = this.#options
    const where = place()
    if (where.kind === "memory")
      throw new LayerUnavailable(where.reason, "set CAISSON_DATA to a folder on a disk of this machine")
    const store = openStore("", where)
    this.#own.defer(() => store.remove())
    const folder = joinPath(store.folder, "upper")
    makeFolder(folder)
    if (as !== undefined) chownSync(folder, as.uid, as.gid)
    const fd = openRoot(folder)
    this.#own.defer(() => closeSync(fd))
    tree.upper = fd
    this.upper = { folder, fd, since: since ?? beginSnapshot(workspace) }
    return this.upper
  }

  /** Outermost first. */
  #missingFolders(upper: Upper, path: BytePath): BytePath[] {
    const missing: BytePath[] = []
    for (
      let up = parentOf(path);
      up !== ROOT && this.#options.tree.lookIn(upper.fd, up) === undefined;
      up = parentOf(up)
    )
      missing.unshift(up)
    return missing
  }
  #copyFolder(upper: Upper, path: BytePath): void {
    const stats = this.#options.tree.lookIn(this.#options.folder.fd, path)
    if (stats?.isDirectory() !== true) throw new Refused("changed")
    refusing(() => copyFolder(upper.fd, this.#options.folder.fd, path, stats, this.#options.as))
    this.#folders.set(path, Number(stats.mode) & 0o7777)
  }

  /** Nothing more is written: folders get the modes that they were copied with, which may shut them. */
  finish(): void {
    const { upper } = this
    if (upper === undefined) return
    const inward = [...this.#folders].sort(([a], [b]) => b.length - a.length)
    for (const [path, mode] of inward) withDir(upper.fd, path, (dir) => chmodSync(`/proc/self/fd/${dir}`, mode))
    this.#folders.clear()
  }
  /** The caller closes it. */
  #openUpperFile(upper: Upper, found: Found | Free): number {
    return refusing(() => {
      if (found.root === upper.fd) return openat2Beneath(upper.fd, toNative(found.path), constants.O_WRONLY)
      if (found.root === undefined) return newFile(upper.fd, found.path, this.#options.as)
      return copyFile(upper.fd, this.#options.folder.fd, found.path, found.stats, this.#options.as)
    })
  }
  async #copyContent(found: Found, to: number, size: number): Promise<void> {
    const from = this.#options.tree.openFile(found)
    try {
      const buffer = Buffer.allocUnsafe(Math.min(HOSTED.chunkBytes, size))
      for (let at = 0; at < size; ) {
        const { bytesRead } = await readAt(from, buffer, 0, Math.min(buffer.length, size - at), at)
        if (bytesRead === 0) throw new Refused("changed")
        await this.#writeAll(to, buffer.subarray(0, bytesRead), at)
        at += bytesRead
      }
    } finally {
      closeSync(from)
    }
  }
  async #writeAll(fd: number, content: Uint8Array, from: number): Promise<void> {
    for (let done = 0; done < content.length; ) {
      this.#options.goesOn()
      const length = Math.min(HOSTED.chunkBytes, content.length - done)
      const { bytesWritten } = await writeAt(fd, content, done, length, from + done)
      done += bytesWritten
    }
  }

  [Symbol.dispose](): void {
    this.#own.dispose()
  }
}
