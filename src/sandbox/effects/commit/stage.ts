/**
 * Copies of the layer's entries, made ready in a transaction's slots.
 *
 * Guarantees: content, permission bits, `user.*` attributes, ACLs and modification times are the layer's; holes stay
 * holes; files that share an inode in the layer share one here. Set-id bits never pass, save setgid on folders that
 * inherited it.
 * Assumes: the layer is frozen, and its special files and refused entries were sorted out before.
 */
import { closeSync, constants, fchmodSync, fstatSync, fsyncSync, ftruncateSync, lchownSync, linkSync } from "node:fs"
import {
  lstatSync,
  mkdirSync,
  openSync,
  readlinkSync,
  readSync,
  symlinkSync,
  writeSync,
  type BigIntStats,
} from "node:fs"
import { AT_FDCWD, copySparse, lsetxattr, utimensat } from "../../syscalls.ts"
import { errorCode } from "../beneath.ts"
import { below, toBuffer, type BytePath } from "../names.ts"
import { readAttributes, type XattrPrefix } from "../xattrs.ts"

export interface Owner {
  readonly uid: number
  readonly gid: number
}

const CHUNK = 1 << 20
const BLOCK = 1 << 16
const ZEROS = Buffer.alloc(BLOCK)
const native = (path: Buffer): string => Buffer.concat([path, Buffer.from([0])]) as unknown as string

export class Stage {
  readonly #upper: string
  readonly #prefix: XattrPrefix
  /** layer inode → staged path */
  readonly #linked = new Map<bigint, Buffer>()

  readonly #sync: (fd: number) => void

  /** With `durable` every entry is on disk when `stage` resolves; else the caller syncs the whole file system. */
  constructor(upper: string, prefix: XattrPrefix, durable: boolean) {
    this.#upper = upper
    this.#prefix = prefix
    this.#sync = durable ? fsyncSync : () => {}
  }

  /** Stage the entries of one move: `content[0]` becomes `slot`, the rest lie below it. */
  async stage(content: readonly BytePath[], slot: string, owner: Owner): Promise<void> {
    const top = content[0]
    if (top === undefined) return
    const folders: { from: Buffer; to: Buffer; stats: BigIntStats }[] = []
    for (const path of content) {
      const from = below(this.#upper, path)
      const to = Buffer.concat([Buffer.from(slot), toBuffer(path.slice(top.length) as BytePath)])
      const stats = lstatSync(from, { bigint: true })
      if (stats.isDirectory()) {
        mkdirSync(to, 0o700)
        folders.push({ from, to, stats })
      } else if (stats.isSymbolicLink()) {
        symlinkSync(readlinkSync(from, { encoding: "buffer" }), to)
        own(to, owner)
        utimensat(AT_FDCWD, native(to), stamp(stats.atimeNs), stamp(stats.mtimeNs))
      } else if (stats.isFile()) {
        await this.#file(from, to, stats, owner)
      } else throw new Error("a special file reached the commit")
    }
    // Folders get their attributes last and inside out: content would renew their times, and modes may shut them.
    for (const { from, to, stats } of folders.reverse()) {
      const fd = openSync(to, constants.O_RDONLY | constants.O_DIRECTORY)
      try {
        own(to, owner)
        this.#attributes(from, to)
        fchmodSync(fd, Number(stats.mode) & 0o2777)
        utimensat(AT_FDCWD, native(to), stamp(stats.atimeNs), stamp(stats.mtimeNs))
        this.#sync(fd)
      } finally {
        closeSync(fd)
      }
    }
  }

  async #file(from: Buffer, to: Buffer, stats: BigIntStats, owner: Owner): Promise<void> {
    const twin = stats.nlink > 1n ? this.#linked.get(stats.ino) : undefined
    if (twin !== undefined) {
      linkSync(twin, to)
      return
    }
    const input = openSync(from, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
    try {
      const output = openSync(to, constants.O_RDWR | constants.O_CREAT | constants.O_EXCL, 0o600)
      try {
        await copyContent(input, output, Number(stats.size))
        own(to, owner)
        this.#attributes(from, to)
        fchmodSync(output, Number(stats.mode) & 0o777)
        utimensat(AT_FDCWD, native(to), stamp(stats.atimeNs), stamp(stats.mtimeNs))
        this.#sync(output)
      } finally {
        closeSync(output)
      }
    } finally {
      closeSync(input)
    }
    if (stats.nlink > 1n) this.#linked.set(stats.ino, to)
  }

  #attributes(from: Buffer, to: Buffer): void {
    for (const [name, value] of readAttributes(from, this.#prefix).payload) lsetxattr(native(to), name, value)
  }
}

const SECOND = 1_000_000_000n
/** Before 1970 in whole seconds: the call takes no negative fraction. */
const stamp = (ns: bigint): bigint => (ns < 0n ? ((ns - SECOND + 1n) / SECOND) * SECOND : ns)

/** As a save by any editor: ids that this process may not give (outside its user namespace) stay its own. */
const own = (path: Buffer, owner: Owner): void => {
  const stats = lstatSync(path)
  if (stats.uid === owner.uid && stats.gid === owner.gid) return
  try {
    lchownSync(path, owner.uid, owner.gid)
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
