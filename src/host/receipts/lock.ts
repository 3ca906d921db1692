/**
 * One writer at a time, across processes.
 *
 * Guarantees: the lock is the kernel's (`flock`), so it dies with its holder and never goes stale. Waiting does not
 * block the event loop.
 * Assumes: the data folder is on a local file system.
 */
import { closeSync, mkdirSync, openSync } from "node:fs"
import { setTimeout as pause } from "node:timers/promises"
import { auditFolder, auditLockFile } from "../../data-folder/paths.ts"
import { flock, LOCK } from "../../linux/files.ts"
import { SyscallError } from "../../linux/libc.ts"
import { hostLimits } from "../limits.ts"

interface HeldLock {
  release(): void
}

interface LogLock extends Disposable {
  acquire(kind: "exclusive"): Promise<HeldLock>
}

const attempt = (fd: number, kind: "exclusive" | "shared"): boolean => {
  try {
    flock(fd, (kind === "exclusive" ? LOCK.EXCLUSIVE : LOCK.SHARED) | LOCK.NONBLOCK)
    return true
  } catch (error) {
    if (
      error instanceof SyscallError &&
      (error.code === "EAGAIN" || error.code === "EWOULDBLOCK" || error.code === "EINTR")
    )
      return false
    throw error
  }
}

/**
 * Between two appends, for one look; without anything being made or written. Where there is no lock to take, or none may
 * be taken (a copy, a read-only disk, another user's folder), the look goes without.
 */
export const lookBetweenAppends = async <T>(data: string, look: () => T): Promise<T> => {
  let fd: number
  try {
    fd = openSync(auditLockFile(data), "r")
  } catch {
    return look()
  }
  try {
    const deadline = performance.now() + hostLimits.auditLockMs.value
    while (!attempt(fd, "shared") && performance.now() < deadline) await pause(2 + 8 * Math.random())
    return look()
  } finally {
    closeSync(fd)
  }
}

export const openLogLock = (data: string): LogLock => {
  const folder = auditFolder(data)
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const fd = openSync(auditLockFile(data), "a", 0o600)
  return {
    async acquire(kind) {
      const deadline = performance.now() + hostLimits.auditLockMs.value
      for (let wait = 1; !attempt(fd, kind); wait = Math.min(wait * 2, 20)) {
        if (performance.now() > deadline)
          throw new Error(
            `the audit log in ${folder} stayed locked by another process for ${hostLimits.auditLockMs.value} ms`,
          )
        await pause(wait * (0.5 + Math.random()))
      }
      return { release: () => flock(fd, LOCK.UNLOCK) }
    },
    [Symbol.dispose]: () => closeSync(fd),
  }
}
