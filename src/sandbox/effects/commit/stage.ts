/**
 * Copies of the layer's entries, made ready in a transaction's slots; or its files themselves, where the layer goes with the
 * commit (`take.ts`).
 *
 * Guarantees: content, permission bits, `user.*` attributes, ACLs and modification times are the layer's; holes stay
 * holes; files that share an inode in the layer share one here. Set-id bits never pass, save setgid on folders that
 * inherited it. Everything is made new in a folder that is closed to others, and owners, modes, times and attributes
 * are set on the descriptor of what was made.
 * Assumes: the layer is frozen, and its special files and refused entries were sorted out before.
 */
import {
  closeSync,
  constants,
  fchmodSync,
  fchownSync,
  fstatSync,
  fsyncSync,
  ftruncateSync,
  lstatSync,
  openSync,
  readlinkSync,
  readSync,
  writeSync,
  type BigIntStats,
} from "node:fs"
import {
  AT_FDCWD,
  copySparse,
  fchownat,
  linkat,
  mkdirat,
  openat2Beneath,
  setxattrOf,
  symlinkat,
  utimensat,
} from "../../../linux/files.ts"
import { errorCode, lstatIn, openDir, withDir } from "../beneath.ts"
import { takingTurns } from "../breath.ts"
import { baseOf, below, fromBuffer, parentOf, toNative, type BytePath } from "../names.ts"
import { readAttributes, type XattrPrefix } from "../xattrs.ts"
import type { Place } from "./moves.ts"
import { takeFile } from "./take.ts"

export interface Owner {
  readonly uid: number
  readonly gid: number
}

const O_PATH = 0o10000000
const AT_SYMLINK_FOLLOW = 0x400
const CHUNK = 1 << 20
const BLOCK = 1 << 16
const ZEROS = Buffer.alloc(BLOCK)

export class Stage {
  readonly #upper: string
  readonly #prefix: XattrPrefix
  /** layer inode → path below the folder that all is staged in */
  readonly #linked = new Map<bigint, BytePath>()

  readonly #sync: (fd: number) => void
  #takes: boolean

  /**
   * With `durable` every entry is on disk when `stage` resolves; else the caller syncs the whole file system. `takes`: of
   * the layer nothing is kept.
   */
  constructor(upper: string, prefix: XattrPrefix, { durable, takes }: { durable: boolean; takes: boolean }) {
    this.#upper = upper
    this.#prefix = prefix
    this.#sync = durable ? fsyncSync : () => {}
    this.#takes = takes
  }

  /** Stage the entries of one move: `content[0]` becomes `slot`, the rest lie below it. */
  async stage(content: readonly BytePath[], slot: Place, owner: Owner): Promise<void> {
    const top = content[0]
    if (top === undefined) return
    const folders: { from: Buffer; to: BytePath; stats: BigIntStats }[] = []
    const turns = takingTurns()
    for (const path of content) {
      await turns.take()
      const from = below(this.#upper, path)
      const to = (slot.name + path.slice(top.length)) as BytePath
      const stats = lstatSync(from, { bigint: true })
      const parent = openDir(slot.dir, parentOf(to))
      try {
        if (stats.isDirectory()) {
          mkdirat(parent, toNative(baseOf(to)), 0o700)
          folders.push({ from, to, stats })
        } else if (stats.isSymbolicLink()) {
          makeSymlink(readlinkSync(from, { encoding: "buffer" }), { dir: parent, name: baseOf(to) }, stats, owner)
        } else if (stats.isFile()) {
          await this.#file(from, slot.dir, to, parent, stats, owner)
        } else throw new Error("a special file reached the commit")
      } finally {
        closeSync(parent)
      }
    }
    // Folders get their attributes last and inside out: content would renew their times, and modes may shut them.
    for (const { from, to, stats } of folders.reverse()) {
      const fd = openat2Beneath(slot.dir, toNative(to), constants.O_RDONLY | constants.O_DIRECTORY)
      try {
        this.#finish(fd, from, stats, owner, 0o2777)
      } finally {
        closeSync(fd)
      }
    }
  }

  async #file(
    from: Buffer,
    root: number,
    to: BytePath,
    parent: number,
    stats: BigIntStats,
    owner: Owner,
  ): Promise<void> {
    if (this.#take(from, parent, to, stats, owner)) return
    const twin = stats.nlink > 1n ? this.#linked.get(stats.ino) : undefined
    if (twin !== undefined) {
      linkTwin(root, twin, { dir: parent, name: baseOf(to) })
      return
    }
    const input = openSync(from, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
    try {
      const flags = constants.O_RDWR | constants.O_CREAT | constants.O_EXCL
      const output = openat2Beneath(parent, toNative(baseOf(to)), flags, 0o600)
      try {
        await copyContent(input, output, Number(stats.size))
        this.#finish(output, from, stats, owner, 0o777)
      } finally {
        closeSync(output)
      }
    } finally {
      closeSync(input)
    }
    if (stats.nlink > 1n) this.#linked.set(stats.ino, to)
  }

  #take(from: Buffer, parent: number, to: BytePath, stats: BigIntStats, owner: Owner): boolean {
    if (!this.#takes) return false
    const finish = (fd: number): void => {
      own(stats, owner, () => fchownSync(fd, owner.uid, owner.gid))
      this.#sync(fd)
    }
    const taken = takeFile(from, stats, { dir: parent, name: baseOf(to) }, { prefix: this.#prefix, finish })
    // What lies on another file system does so for all of the layer.
    if (taken === "elsewhere") this.#takes = false
    return taken === "taken"
  }

  #finish(fd: number, from: Buffer, stats: BigIntStats, owner: Owner, bits: number): void {
    own(fstatSync(fd), owner, () => fchownSync(fd, owner.uid, owner.gid))
    for (const [name, value] of readAttributes(from, this.#prefix).payload) setxattrOf(fd, name, value)
    fchmodSync(fd, Number(stats.mode) & bits)
    utimensat(fd, null, stamp(stats.atimeNs), stamp(stats.mtimeNs))
    this.#sync(fd)
  }
}

/** A link has no descriptor to work on; its folder is closed to others until it is moved to its place. */
const makeSymlink = (target: Buffer, { dir, name }: Place, stats: BigIntStats, owner: Owner): void => {
  symlinkat(toNative(fromBuffer(target)), dir, toNative(name))
  own(lstatIn(dir, name), owner, () => fchownat(dir, toNative(name), owner.uid, owner.gid))
  utimensat(dir, toNative(name), stamp(stats.atimeNs), stamp(stats.mtimeNs))
}

const linkTwin = (root: number, twin: BytePath, to: Place): void =>
  withDir(root, parentOf(twin), (dir) => {
    const fd = openat2Beneath(dir, toNative(baseOf(twin)), O_PATH | constants.O_NOFOLLOW)
    try {
      linkat(AT_FDCWD, `/proc/self/fd/${fd}`, to.dir, toNative(to.name), AT_SYMLINK_FOLLOW)
    } finally {
      closeSync(fd)
    }
  })

const SECOND = 1_000_000_000n
/** Before 1970 in whole seconds: the call takes no negative fraction. */
const stamp = (ns: bigint): bigint => (ns < 0n ? ((ns - SECOND + 1n) / SECOND) * SECOND : ns)

/** As a save by any editor: ids that this process may not give (outside its user namespace) stay its own. */
const own = (
  stats: { readonly uid: number | bigint; readonly gid: number | bigint } | undefined,
  owner: Owner,
  change: () => void,
): void => {
  if (stats === undefined || (Number(stats.uid) === owner.uid && Number(stats.gid) === owner.gid)) return
  try {
    change()
  } catch (error) {
    if (errorCode(error) !== "EPERM" && errorCode(error) !== "EINVAL") throw error
  }
}

const copyContent = async (input: number, output: number, size: number): Promise<void> => {
  if (size === 0) return
  try {
    if (size >= CHUNK) copySparse(input, output, size)
    else await copyByHand(input, output, size)
  } catch (error) {
    if (!["EXDEV", "EINVAL", "ENOSYS", "EOPNOTSUPP", "ENOTSUP"].includes(errorCode(error))) throw error
    await copyByHand(input, output, size)
  }
  if (fstatSync(output).size !== size) ftruncateSync(output, size)
}

/** Between file systems: blocks of zeros are left out, the final size makes them holes. */
const copyByHand = async (input: number, output: number, size: number): Promise<void> => {
  const buffer = Buffer.allocUnsafe(Math.min(CHUNK, size))
  for (let at = 0; at < size; ) {
    const read = readSync(input, buffer, 0, buffer.length, at)
    if (read === 0) return
    for (let start = 0; start < read; start += BLOCK) {
      const block = buffer.subarray(start, Math.min(start + BLOCK, read))
      if (block.equals(ZEROS.subarray(0, block.length))) continue
      for (let done = 0; done < block.length; )
        done += writeSync(output, block, done, block.length - done, at + start + done)
    }
    at += read
    if (read === CHUNK) await new Promise<void>((resolve) => setImmediate(resolve))
  }
}
