/**
 * Which calls with a key are under way, across processes: a file for each, locked for as long as its process lives.
 *
 * Guarantees: the file is there, and locked, from before the call is on record until its answer is. One that can be locked,
 * or is gone, is of a process that died.
 */
import { closeSync, openSync, rmSync } from "node:fs"
import { join } from "node:path"
import { callsFolder } from "../../data-folder/paths.ts"
import { flock, LOCK } from "../../linux/files.ts"
import { SyscallError } from "../../linux/libc.ts"

const fileOf = (data: string, call: string): string => join(callsFolder(data), `${call}.key`)

export const markUnderWay = (data: string, call: string): Disposable => {
  const file = fileOf(data, call)
  const fd = openSync(file, "wx", 0o600)
  flock(fd, LOCK.EXCLUSIVE | LOCK.NONBLOCK)
  return {
    [Symbol.dispose]: () => {
      rmSync(file, { force: true })
      closeSync(fd)
    },
  }
}

/** Has its process died? Then what it left of the marker is removed. */
export const isAbandoned = (data: string, call: string): boolean => {
  const file = fileOf(data, call)
  let fd: number
  try {
    fd = openSync(file, "r")
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "ENOENT"
  }
  try {
    flock(fd, LOCK.EXCLUSIVE | LOCK.NONBLOCK)
    rmSync(file, { force: true })
    return true
  } catch (error) {
    if (error instanceof SyscallError) return false
    throw error
  } finally {
    closeSync(fd)
  }
}
