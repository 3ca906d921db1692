/**
 * A workspace for a call that has no sandbox: read through its view, written to a layer of its own.
 *
 * Guarantees: the workspace is never written to here; what the call writes lies in an upper folder of the shape that an
 * overlay's has, and is sealed, judged, held and committed by the same code. No path is ever opened by its name from the
 * root of the machine, and none through a link (`tree.ts`). Bounded: bytes read by who asks, bytes and entries written by
 * the call's limit. Every verb takes turns with other work, hears the call's end, and starts nothing after it; `seal` waits
 * for those under way.
 * Assumes: the folder that layers lie in is closed to others.
 */
import { closeSync, fstatSync, read } from "node:fs"
import { opendir } from "node:fs/promises"
import { promisify } from "node:util"
import { takingTurns } from "../../effects/breath.ts"
import { beginSnapshot } from "../../effects/index.ts"
import { type BytePath, fromBuffer, join } from "../../effects/names.ts"
import { type FolderIdentity, type OpenFolder, reopenFolder } from "../../folder.ts"
import type { Limits } from "../../terms.ts"
import { openStore } from "../empty-mounts.ts"
import { type HostedExchange, openHostedExchange } from "../exchange/hosted.ts"
import type { Exchange } from "../../exchange.ts"
import { budgetOf, HOSTED } from "../limits.ts"
import { LayerUnavailable } from "../owner-maps.ts"
import { type SealedLayers, sealLayers } from "../sealed-layers.ts"
import { callBegins } from "../settling/settling.ts"
import type { LayerPlace } from "../store.ts"
import type { View } from "../view/view-plan.ts"
import { HOSTED_XATTRS } from "./copy-up.ts"
import { type ActsAs, MAY } from "./permission.ts"
import { sightOf } from "./sight.ts"
import { type FileFault, Refused, Tree } from "./tree.ts"
import { Writing } from "./writing.ts"

type FileAnswer<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly fault: FileFault }
interface FileFacts {
  readonly kind: "file" | "folder" | "other"
  readonly size: number
}
interface ListedFile {
  readonly name: string
  readonly kind: "file" | "folder" | "link" | "other"
}

/** Paths are relative to the workspace, `/`-separated; `.` is the workspace. */
export interface HostedFiles {
  /** The whole file, unless it holds more than `most` bytes. */
  read(path: string, most: number): Promise<FileAnswer<Buffer>>
  stat(path: string): Promise<FileAnswer<FileFacts>>
  /** What the call may see of a folder, sorted by bytes; names that are not UTF-8 are left out. */
  list(path: string): Promise<FileAnswer<readonly ListedFile[]>>
  /** A file with this content, or with it at its end; its folder must exist. */
  write(path: string, content: Uint8Array, how?: { readonly append?: boolean }): Promise<FileAnswer<undefined>>
}

export interface HostedLayerOptions {
  readonly workspace: FolderIdentity
  readonly view: View
  readonly write: readonly string[]
  readonly limits: Pick<Limits, "diskBytes">
  /** where layers lie; asked at the first write */
  place(): LayerPlace
  readonly txRoot: string
  /** aborted when the call is over */
  readonly signal: AbortSignal
}

const readAt = promisify(read)

const textOf = (name: BytePath): string => Buffer.from(name, "latin1").toString("utf8")
const isUtf8 = (name: BytePath): boolean => fromBuffer(Buffer.from(textOf(name))) === name

/** As it was written: no escape, no way up to the root of the machine. */
const pathOf = (text: string): BytePath => {
  if (text.startsWith("/") || text.includes("\0") || !text.isWellFormed()) throw new Refused("outside")
  return fromBuffer(Buffer.from(text))
}

export class HostedLayer implements HostedFiles {
  readonly #options: HostedLayerOptions
  readonly #folder: OpenFolder
  readonly #as: ActsAs
  readonly #tree: Tree
  readonly #writing: Writing
  /** all that ends with the layer */
  readonly #own: DisposableStack
  readonly #underWay = new Set<Promise<unknown>>()
  /** writes, one after the other */
  #lastWrite: Promise<unknown> = Promise.resolve()
  #closed = false

  constructor(options: HostedLayerOptions) {
    const { workspace, view, write, limits } = options
    using own = new DisposableStack()
    const folder = own.use(reopenFolder(workspace))
    const { uid, gid } = fstatSync(folder.fd)
    const as = process.getuid?.() === 0 ? { uid, gid } : undefined
    const tree = new Tree(folder.fd, sightOf(view, write), as)
    // Before anything is read: what a write is made from must be what it replaces.
    const since = write.length === 0 ? {} : { since: beginSnapshot(folder) }
    this.#options = options
    this.#folder = folder
    this.#as = as
    this.#tree = tree
    this.#writing = own.use(
      new Writing({ folder, tree, as, limits, place: options.place, ...since, goesOn: () => this.#goesOn() }),
    )
    own.defer(callBegins())
    this.#own = own.move()
  }

  /** It wanted to write more than it may: the call fails, whatever it says of itself. */
  get exceeded(): boolean {
    return this.#writing.exceeded
  }

  #answer<T>(work: () => Promise<T>): Promise<FileAnswer<T>> {
    const answering = (async (): Promise<FileAnswer<T>> => {
      try {
        this.#goesOn()
        return { ok: true, value: await work() }
      } catch (error) {
        if (error instanceof Refused) return { ok: false, fault: error.fault }
        throw error
      }
    })()
    const settled = answering.then(
      () => undefined,
      () => undefined,
    )
    this.#underWay.add(settled)
    void settled.then(() => this.#underWay.delete(settled))
    return answering
  }
  #goesOn(): void {
    if (this.#closed || this.#options.signal.aborted) throw new Refused("ended")
  }

  stat(path: string): Promise<FileAnswer<FileFacts>> {
    return this.#answer(async () => {
      const { stats } = this.#tree.existing(pathOf(path))
      const kind = stats.isFile() ? "file" : stats.isDirectory() ? "folder" : "other"
      return { kind, size: Number(stats.size) }
    })
  }

  read(path: string, most: number): Promise<FileAnswer<Buffer>> {
    return this.#answer(async () => {
      const found = this.#tree.existing(pathOf(path))
      const fd = this.#tree.openFile(found)
      try {
        return await this.#readAll(fd, Number(found.stats.size), most)
      } finally {
        closeSync(fd)
      }
    })
  }
  async #readAll(fd: number, size: number, most: number): Promise<Buffer> {
    if (size > most) throw new Refused("too_large")
    const parts: Buffer[] = []
    for (let at = 0; ; ) {
      // One byte more than is expected tells a file that grows from one that ended.
      const buffer = Buffer.allocUnsafe(Math.max(1, Math.min(HOSTED.chunkBytes, size - at + 1)))
      const { bytesRead } = await readAt(fd, buffer, 0, buffer.length, at)
      this.#goesOn()
      if (bytesRead === 0) return Buffer.concat(parts)
      at += bytesRead
      if (at > most) throw new Refused("too_large")
      parts.push(buffer.subarray(0, bytesRead))
    }
  }

  list(path: string): Promise<FileAnswer<readonly ListedFile[]>> {
    return this.#answer(async () => {
      const found = this.#tree.existing(pathOf(path))
      if (!found.stats.isDirectory()) throw new Refused("not_a_folder")
      this.#tree.demand(found, MAY.read)
      const listed = new Map<BytePath, ListedFile["kind"]>()
      for (const root of this.#tree.trees) {
        if (this.#tree.lookIn(root, found.path)?.isDirectory() === true) await this.#listIn(root, found.path, listed)
      }
      return [...listed]
        .sort(([a], [b]) => (a < b ? -1 : 1))
        .map(([name, kind]) => ({ name: Buffer.from(name, "latin1").toString("utf8"), kind }))
    })
  }
  async #listIn(root: number, folder: BytePath, listed: Map<BytePath, ListedFile["kind"]>): Promise<void> {
    const fd = this.#tree.openFolder(root, folder)
    const turns = takingTurns()
    try {
      const entries = await opendir(`/proc/self/fd/${fd}`, { encoding: "buffer" as "utf8", bufferSize: 512 })
      for await (const entry of entries) {
        await turns.take()
        this.#goesOn()
        const name = fromBuffer(entry.name as unknown as Buffer)
        const isFolder = entry.isDirectory()
        if (listed.has(name) || !isUtf8(name) || !this.#tree.sees(join(folder, name), isFolder)) continue
        if (listed.size >= HOSTED.listedEntries) throw new Refused("too_many")
        listed.set(name, isFolder ? "folder" : entry.isFile() ? "file" : entry.isSymbolicLink() ? "link" : "other")
      }
    } finally {
      closeSync(fd)
    }
  }

  write(path: string, content: Uint8Array, { append = false } = {}): Promise<FileAnswer<undefined>> {
    return this.#answer(() => {
      const written = this.#lastWrite.then(() => this.#writing.write(pathOf(path), content, append))
      this.#lastWrite = written.catch(() => undefined)
      return written
    })
  }

  /** Files in a folder of the call's own, whatever of the workspace its view shows. Throws what `layerRefusal` explains. */
  async exchange(exchange: Exchange): Promise<HostedExchange> {
    const { view, place, limits } = this.#options
    const where = place()
    if (where.kind === "memory")
      throw new LayerUnavailable(where.reason, "set CAISSON_DATA to a folder on a disk of this machine")
    const store = openStore("", where)
    this.#own.defer(() => store.remove())
    const writing = this.#writing
    const tree = new Tree(this.#folder.fd, sightOf({ read: ["**"], deny: view.deny }, []), this.#as)
    return await openHostedExchange({
      exchange,
      tree,
      store: store.folder,
      sink: {
        put: (path, from, most) => writing.put(tree, path, from, most),
        get broken() {
          return writing.isSpoilt
        },
      },
      most: budgetOf(limits).bytes,
    })
  }

  /** No verb starts any more; those under way are waited for. */
  async #close(): Promise<void> {
    this.#closed = true
    await Promise.all(this.#underWay)
  }

  /** What was written, read and unjudged; undefined where that is nothing, or nothing that may be used. Throws what `layerRefusal` explains. */
  async seal(): Promise<SealedLayers | undefined> {
    await this.#close()
    const { upper, isSpoilt } = this.#writing
    if (upper === undefined || isSpoilt) {
      this.#own.dispose()
      return undefined
    }
    const dispose = (): void => this.#own.dispose()
    try {
      this.#writing.finish()
      const layer = { upper: upper.folder, xattrPrefix: HOSTED_XATTRS } as const
      const { txRoot } = this.#options
      return await sealLayers({ medium: "disk", dispose }, { folder: this.#folder, layer, since: upper.since, txRoot })
    } catch (error) {
      dispose()
      throw error
    }
  }

  /** Throw it away. */
  async discard(): Promise<void> {
    await this.#close()
    this.#own.dispose()
  }
}
