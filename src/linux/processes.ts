/**
 * Processes of this machine: limits, handles, ends, and the pipes and terminals that they are given.
 *
 * Guarantees: each call succeeds or throws a `SyscallError`.
 */
import koffi from "koffi"
import { SyscallError, call, checked, errnoName, foreign, native, raw } from "./libc.ts"

/** Mark every descriptor from `first` on close-on-exec, so that no child inherits what a parent left open. */
export const closeOnExecFrom = (first: number): void => {
  raw("close_range", 436, "uint first, uint last, uint flags", first, 0xffffffff, 4)
}

export const ioctl = (fd: number, request: number, argument: Uint8Array): number =>
  call("ioctl", `request 0x${request.toString(16)}`, fd, request, argument)

const [TCFLSH, TCIFLUSH] = [0x540b, 0]

/** Forget what was typed at a terminal and not read yet. */
export const dropTypedAhead = (terminal: number): void => {
  const flush = foreign("ioctl:int", (libc) => libc.func("int ioctl(int fd, ulong request, int argument)"))
  checked("ioctl", flush(terminal, TCFLSH, TCIFLUSH), "TCFLSH")
}

export const RLIMIT = { CPU: 0, FSIZE: 1, DATA: 2, STACK: 3, CORE: 4, NPROC: 6, NOFILE: 7, AS: 9 } as const

export const prlimit = (pid: number, resource: number, soft: bigint, hard: bigint): void => {
  const limit = Buffer.alloc(16)
  limit.writeBigUInt64LE(soft, 0)
  limit.writeBigUInt64LE(hard, 8)
  call("prlimit", `resource ${resource}`, pid, resource, limit, null)
}

/**
 * No crash of this process, or of what it starts, leaves its memory in a file or with a core handler: one byte stops both,
 * where zero would let a handler (a pipe) have it. The hard limit stays whoever started this process's.
 */
export const leaveNoCore = (): void => {
  const old = Buffer.alloc(16)
  call("prlimit", "RLIMIT_CORE", 0, RLIMIT.CORE, null, old)
  const hard = old.readBigUInt64LE(8)
  if (old.readBigUInt64LE(0) === 1n) return
  try {
    prlimit(0, RLIMIT.CORE, 1n, hard < 1n ? 1n : hard)
  } catch (error) {
    // Where the hard limit is zero, and stays that: no file is written.
    if (!(error instanceof SyscallError) || error.code !== "EPERM") throw error
  }
}

/** A pipe of the kernel's own kind, which a program may open again by name (`/dev/stdout`); closed in children. */
export const makePipe = (): { read: number; write: number } => {
  const descriptors = Buffer.alloc(8)
  call("pipe2", "", descriptors, 0o2000000)
  return { read: descriptors.readInt32LE(0), write: descriptors.readInt32LE(4) }
}

export interface Reaped {
  readonly cpuMs: number | undefined
  /** as the kernel tells how it ended */
  readonly status: number | undefined
}

/**
 * Reap one child by pid, without blocking: undefined while it lives. Once it is gone, how it ended and the CPU time that
 * it and all its reaped descendants used, where the child was still there to be asked.
 */
export const reap = (pid: number): Reaped | undefined => {
  const WNOHANG = 1
  const usage = Buffer.alloc(144)
  const status = [0]
  const result = native("wait4")(pid, status, WNOHANG, usage)
  if (result === pid) {
    const [user, system] = [0, 16].map((at) => usage.readBigInt64LE(at) * 1_000_000n + usage.readBigInt64LE(at + 8))
    return { cpuMs: Number((user ?? 0n) + (system ?? 0n)) / 1000, status: status[0] }
  }
  return result < 0 && errnoName(koffi.errno()) === "ECHILD" ? { cpuMs: undefined, status: undefined } : undefined
}

/** A handle on one process that never names another, even once its number is used again. The caller closes it. */
export const pidfdOpen = (pid: number): number => raw("pidfd_open", 434, "int pid, uint flags", pid, 0)

/** Signal the process behind a handle; one that is gone already is no error. */
export const pidfdSignal = (pidfd: number, signal: number): void => {
  try {
    raw("pidfd_send_signal", 424, "int pidfd, int signal, void *info, uint flags", pidfd, signal, null, 0)
  } catch (error) {
    if (!(error instanceof SyscallError) || error.code !== "ESRCH") throw error
  }
}

const SIGKILL = 9

export const pidfdKill = (pidfd: number): void => pidfdSignal(pidfd, SIGKILL)

/** A new pseudo terminal: the master's descriptor, which never blocks, and the slave's path. */
export const openPseudoTerminal = (): { master: number; slave: string } => {
  const O_RDWR_NOCTTY_NONBLOCK_CLOEXEC = 2 | 0o400 | 0o4000 | 0o2000000
  const master = call("posix_openpt", "", O_RDWR_NOCTTY_NONBLOCK_CLOEXEC)
  call("grantpt", "", master)
  call("unlockpt", "", master)
  const name = Buffer.alloc(64)
  const failed = native("ptsname_r")(master, name, name.length)
  if (failed !== 0) throw new SyscallError("ptsname_r", failed, "")
  return { master, slave: name.subarray(0, name.indexOf(0)).toString("latin1") }
}
