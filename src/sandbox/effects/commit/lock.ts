/**
 * One commit or recovery at a time per folder, across backends and processes of a data folder.
 *
 * Guarantees: the lock is the kernel's, on a file in the data folder that nobody else can open, and dies with its
 * holder; the file goes when the lock does. Waiting ends with the caller's signal.
 * Does not: keep other programs, or hosts with another data folder, from writing to the folder.
 */
import { closeSync, constants, fstatSync, mkdirSync, openSync } from "node:fs"
import { setTimeout as delay } from "node:timers/promises"
import { LockWaitEnded } from "../../folder.ts"
import { flock, LOCK, openat2Beneath, unlinkat } from "../../../linux/files.ts"
import { errorCode, lstatIn } from "../beneath.ts"
import { fromBuffer } from "../names.ts"
import { LOCK_POLL_MS, LOCK_WAIT_MS } from "./limits.ts"

export interface LockOptions {
  /** ends the waiting */
  readonly signal?: AbortSignal | undefined
  readonly waitMs?: number | undefined
}

export const lockName = (key: string): string => `lock-${key}`

/** `txRoot` is a descriptor of the folder that locks live in. */
export const withFolderLock = async <T>(
  txRoot: number,
  key: string,
  { signal, waitMs = LOCK_WAIT_MS }: LockOptions,
  use: () => Promise<T>,
): Promise<T> => {
  const deadline = performance.now() + waitMs
  for (;;) {
    if (signal?.aborted === true) throw new LockWaitEnded("cancelled while another commit held this workspace")
    const held = tryLock(txRoot, lockName(key))
    if (held !== undefined) {
      try {
        return await use()
      } finally {
        release(txRoot, lockName(key), held)
      }
    }
    if (performance.now() > deadline)
      throw new LockWaitEnded(`another commit has held this workspace for ${Math.round(waitMs / 1000)} seconds`)
    await delay(LOCK_POLL_MS, undefined, { signal }).catch(() => undefined)
  }
}

/**
 * The first of these locks that is free, without waiting; it is given back when disposed of, or with this process. `folder`:
 * where they live, which is made where it is missing.
 */
export const takeLockIn = (folder: string, keys: Iterable<string>): Disposable | undefined => {
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const root = openSync(folder, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW)
  const free = (): Disposable | undefined => {
    for (const key of keys) {
      const held = tryLock(root, lockName(key))
      if (held !== undefined) return { [Symbol.dispose]: () => release(root, lockName(key), held) }
    }
    return undefined
  }
  let taken: Disposable | undefined
  try {
    taken = free()
  } finally {
    if (taken === undefined) closeSync(root)
  }
  const lock = taken
  if (lock === undefined) return undefined
  return {
    [Symbol.dispose]: () => {
      try {
        lock[Symbol.dispose]()
      } finally {
        closeSync(root)
      }
    },
  }
}

/** The descriptor that holds the lock, or undefined while another process does. */
const tryLock = (txRoot: number, name: string): number | undefined => {
  const fd = openat2Beneath(txRoot, name, constants.O_RDWR | constants.O_CREAT | constants.O_NOFOLLOW, 0o600)
  try {
    flock(fd, LOCK.EXCLUSIVE | LOCK.NONBLOCK)
    // Whoever held it before has removed the file: a lock on that one is nobody's business.
    const named = lstatIn(txRoot, fromBuffer(Buffer.from(name)))
    if (named !== undefined && named.ino === fstatSync(fd, { bigint: true }).ino) return fd
  } catch (error) {
    closeSync(fd)
    if (errorCode(error) === "EAGAIN" || errorCode(error) === "EWOULDBLOCK") return undefined
    throw error
  }
  closeSync(fd)
  return tryLock(txRoot, name)
}

const release = (txRoot: number, name: string, fd: number): void => {
  try {
    unlinkat(txRoot, name)
  } catch (error) {
    if (errorCode(error) !== "ENOENT") throw error
  } finally {
    closeSync(fd)
  }
}
