/**
 * One at a time, across processes and within this one, by a lock on a file.
 *
 * Guarantees: the lock is the kernel's (`flock`), so it dies with its holder and never goes stale; the file stays, and
 * holds nothing. Waiting does not block the event loop, and ends with the caller's signal or after a fixed time.
 * Assumes: the data folder is on a local file system.
 */
import { closeSync, constants, mkdirSync, openSync } from "node:fs"
import { dirname } from "node:path"
import { setTimeout as pause } from "node:timers/promises"
import { flock, LOCK } from "../../linux/files.ts"
import { SyscallError } from "../../linux/libc.ts"

interface LockWait {
  readonly waitMs: number
  readonly signal?: AbortSignal
  /** with others who ask for it so, and with nobody else */
  readonly shared?: boolean
  /** told once, where another one holds it */
  readonly onWait?: () => void
}

const HELD = ["EAGAIN", "EWOULDBLOCK", "EINTR"]
/** Asked for more seldom the longer it takes. */
const PAUSE = { firstMs: 2, mostMs: 100 } as const

/** The lock, if nobody has it. */
export const tryFileLock = (file: string, shared = false): Disposable | undefined => {
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
  const fd = openSync(file, constants.O_RDWR | constants.O_CREAT | constants.O_NOFOLLOW, 0o600)
  try {
    flock(fd, (shared ? LOCK.SHARED : LOCK.EXCLUSIVE) | LOCK.NONBLOCK)
    return { [Symbol.dispose]: () => closeSync(fd) }
  } catch (error) {
    closeSync(fd)
    if (error instanceof SyscallError && HELD.includes(error.code)) return undefined
    throw error
  }
}

/** The lock, or undefined where the wait ended without it. */
export const fileLock = async (
  file: string,
  { waitMs, signal, onWait, shared }: LockWait,
): Promise<Disposable | undefined> => {
  const deadline = performance.now() + waitMs
  for (let wait: number = PAUSE.firstMs, first = true; ; wait = Math.min(wait * 2, PAUSE.mostMs), first = false) {
    if (signal?.aborted === true) return undefined
    const held = tryFileLock(file, shared)
    if (held !== undefined) return held
    if (performance.now() > deadline) return undefined
    if (first) onWait?.()
    await pause(wait * (0.5 + Math.random()), undefined, signal === undefined ? {} : { signal }).catch(() => undefined)
  }
}
