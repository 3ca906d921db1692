/**
 * The kernel's questions about one sandbox's system calls (`seccomp_unotify`), and the answer that they always have: go on.
 *
 * Guarantees: every question is answered, whatever its path is; an answer lets the kernel decide as it would have. Blocks
 * the calling thread while nothing is asked. Assumes: the calling process may look into the one that asks.
 */
import koffi from "koffi"
import { closeSync, fstatSync, type Stats } from "node:fs"
import { errnoName, foreign, raw } from "../../linux/libc.ts"

const RECV = 0xc0502100
const SEND = 0xc0182101
const ID_VALID = 0x40082102
const SET_FLAGS = 0x40082104
const SYNC_WAKE_UP = 1n
const CONTINUE = 1
const POLLIN = 1

const ioctl = (fd: number, request: number, argument: Uint8Array): number =>
  foreign("ioctl:observe", (libc) => libc.func("int ioctl(int fd, ulong request, _Inout_ void *argument)"))(
    fd,
    request,
    argument,
  )

/** A question: who asks for which call, with which arguments. */
export interface Question {
  readonly pid: number
  readonly number: number
  argument(index: number): bigint
}

export class Listener {
  readonly #fd: number
  readonly #question = Buffer.alloc(80)
  readonly #answer = Buffer.alloc(24)
  readonly #id = Buffer.alloc(8)
  readonly #poll = Buffer.alloc(8)
  constructor(fd: number) {
    this.#fd = fd
    this.#poll.writeInt32LE(fd, 0)
    this.#poll.writeInt16LE(POLLIN, 4)
    const flags = Buffer.alloc(8)
    flags.writeBigUInt64LE(SYNC_WAKE_UP)
    // A kernel without it wakes whoever waits a little later. The argument is the value itself.
    foreign("ioctl:value", (libc) => libc.func("int ioctl(int fd, ulong request, ulong argument)"))(
      fd,
      SET_FLAGS,
      Number(SYNC_WAKE_UP),
    )
  }
  /** Undefined once nobody is left who could ask. */
  next(): Question | undefined {
    const poll = foreign("poll", (libc) => libc.func("int poll(_Inout_ void *fds, ulong count, int timeout)"))
    for (;;) {
      this.#poll.writeInt16LE(0, 6)
      if (poll(this.#poll, 1, -1) < 0) {
        if (errnoName(koffi.errno()) === "EINTR") continue
        return undefined
      }
      if ((this.#poll.readInt16LE(6) & POLLIN) === 0) return undefined
      this.#question.fill(0)
      // Whoever asked may be gone by now.
      if (ioctl(this.#fd, RECV, this.#question) < 0) {
        const code = errnoName(koffi.errno())
        if (code === "ENOENT" || code === "EINTR") continue
        return undefined
      }
      return {
        pid: this.#question.readUInt32LE(8),
        number: this.#question.readInt32LE(16),
        argument: (index) => this.#question.readBigUInt64LE(32 + index * 8),
      }
    }
  }
  /**
   * Does the last question still wait? What was read of the one who asked under its number was then that one's: a process
   * that is gone has left its number to another, of whoever's.
   */
  isWaiting(): boolean {
    this.#id.set(this.#question.subarray(0, 8))
    return ioctl(this.#fd, ID_VALID, this.#id) === 0
  }
  goOn(): void {
    this.#answer.fill(0)
    this.#question.copy(this.#answer, 0, 0, 8)
    this.#answer.writeUInt32LE(CONTINUE, 20)
    ioctl(this.#fd, SEND, this.#answer)
  }
  close(): void {
    closeSync(this.#fd)
  }
}

interface Vectors {
  readonly read: (...args: unknown[]) => number
}
let vectors: Vectors | undefined
const openVectors = (): Vectors => {
  koffi.struct("caisson_iovec", { base: "void *", length: "size_t" })
  koffi.struct("caisson_remote", { base: "uint64_t", length: "size_t" })
  const declaration =
    "long process_vm_readv(int pid, const caisson_iovec *local, ulong locals, const caisson_remote *remote, ulong remotes, ulong flags)"
  return { read: foreign("process_vm_readv", (libc) => libc.func(declaration)) }
}

const PAGE = 4096n
/** Bytes of another process's memory, as far as they are there. */
const readMemory = (pid: number, address: bigint, buffer: Buffer): Buffer => {
  vectors ??= openVectors()
  const length = buffer.length
  const got = vectors.read(pid, { base: buffer, length }, 1, { base: address, length }, 1, 0)
  return buffer.subarray(0, Math.max(0, got))
}

const bytes = Buffer.alloc(4096)
/** A text of another process; undefined where it cannot be read, or is longer than a path. */
export const readText = (pid: number, address: bigint): string | undefined => {
  let text: Buffer = Buffer.alloc(0)
  let at = address
  for (let round = 0; round < 3; round += 1) {
    // Short ones first: most paths are, and a read costs what it copies. Never over a page's end with one read.
    const most = Math.min(round === 0 ? 256 : 4096, Number(PAGE - (at % PAGE)))
    const part = readMemory(pid, at, bytes.subarray(0, most))
    const end = part.indexOf(0)
    if (end >= 0) return Buffer.concat([text, part.subarray(0, end)]).toString("utf8")
    if (part.length === 0) return undefined
    text = Buffer.concat([text, part])
    at += BigInt(part.length)
  }
  return undefined
}
const AF_UNIX = 1
const SOCKET_ADDRESS = 110
/** The path of a socket's address; undefined where it has none. */
export const readSocketPath = (pid: number, address: bigint): string | undefined => {
  const part = readMemory(pid, address, bytes.subarray(0, 2))
  if (part.length < 2 || part.readUInt16LE(0) !== AF_UNIX) return undefined
  const whole = readMemory(pid, address, bytes.subarray(0, Math.min(SOCKET_ADDRESS, Number(PAGE - (address % PAGE)))))
  const path = whole.subarray(2)
  const end = path.indexOf(0)
  return path.subarray(0, end < 0 ? path.length : end).toString("utf8")
}
export const readWord = (pid: number, address: bigint): bigint | undefined => {
  const part = readMemory(pid, address, bytes.subarray(0, 8))
  return part.length === 8 ? part.readBigUInt64LE(0) : undefined
}

const O_PATH_CLOEXEC = 0o10000000n | 0o2000000n
const RESOLVE_IN_ROOT = 0x10n
/** What a path leads to below a root that is not ours; undefined: it leads nowhere. */
export const statInRoot = (root: number, path: string): Stats | undefined => {
  const how = Buffer.alloc(24)
  how.writeBigUInt64LE(O_PATH_CLOEXEC, 0)
  how.writeBigUInt64LE(RESOLVE_IN_ROOT, 16)
  let fd: number
  try {
    fd = raw("openat2", 437, "int dir, const char *path, void *how, size_t size", root, path, how, 24)
  } catch {
    return undefined
  }
  try {
    return fstatSync(fd)
  } finally {
    closeSync(fd)
  }
}
