/**
 * One commit or recovery at a time per workspace, across processes.
 *
 * Guarantees: the lock is the kernel's, on the workspace folder itself: it leaves no file and dies with its holder.
 * Does not: keep other programs from writing to the workspace.
 */
import { closeSync, fstatSync, lstatSync } from "node:fs"
import { setTimeout as delay } from "node:timers/promises"
import { LOCK, flock } from "../../syscalls.ts"
import { errorCode, openRoot } from "../beneath.ts"

const POLL_MS = 5
const WAIT_MS = 120_000

/** Runs with a descriptor of the workspace's root. Rejects when the lock is not free within two minutes. */
export const withWorkspaceLock = async <T>(workspace: string, use: (root: number) => Promise<T>): Promise<T> => {
  const root = openRoot(workspace)
  try {
    for (const deadline = Date.now() + WAIT_MS; !tryLock(root); await delay(POLL_MS)) {
      if (Date.now() > deadline) throw new Error("another commit has held this workspace for two minutes")
    }
    const held = fstatSync(root)
    const named = lstatSync(workspace)
    if (held.dev !== named.dev || held.ino !== named.ino) throw new Error("the workspace folder was replaced meanwhile")
    return await use(root)
  } finally {
    closeSync(root)
  }
}

const tryLock = (fd: number): boolean => {
  try {
    flock(fd, LOCK.EXCLUSIVE | LOCK.NONBLOCK)
    return true
  } catch (error) {
    if (errorCode(error) === "EAGAIN" || errorCode(error) === "EWOULDBLOCK") return false
    throw error
  }
}
