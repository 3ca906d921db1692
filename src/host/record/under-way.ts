/**
 * Which calls with a key are under way, across processes: a file for each, locked for as long as its process lives.
 *
 * Guarantees: the file is there, and locked, from before the call is on record until its answer is. One that can be locked,
 * or is gone, is of a process that died; also of one that died before its call was on record, which nobody would ask after.
 */
import { closeSync, fstatSync, openSync, readdirSync, rmSync } from "node:fs"
import { join } from "node:path"
import { callsFolder } from "../../data-folder/paths.ts"
import { flock, LOCK } from "../../linux/files.ts"
import { SyscallError } from "../../linux/libc.ts"

const fileOf = (data: string, call: string): string => join(callsFolder(data), `${call}.key`)

/** Whoever tidies up may have taken it for a dead one's, between its making and its lock. */
const openLocked = (file: string): number => {
  for (let attempt = 0; ; attempt += 1) {
    const fd = openSync(file, "wx", 0o600)
    try {
      flock(fd, LOCK.EXCLUSIVE | LOCK.NONBLOCK)
      if (fstatSync(fd).nlink > 0) return fd
    } catch (error) {
      if (!(error instanceof SyscallError) || attempt >= 3) {
        closeSync(fd)
        rmSync(file, { force: true })
        throw error
      }
    }
    closeSync(fd)
    rmSync(file, { force: true })
  }
}

export const markUnderWay = (data: string, call: string): Disposable => {
  const file = fileOf(data, call)
  let held: number | undefined = openLocked(file)
  return {
    [Symbol.dispose]: () => {
      if (held === undefined) return
      const fd = held
      // By its number, a second time, it would be somebody else's.
      held = undefined
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

const MARKER = /^[0-9A-HJKMNP-TV-Z]{26}\.key$/

/** Markers of processes that died, whether their calls came on record or not, are removed. */
export const removeAbandoned = (data: string): void => {
  for (const name of readdirSync(callsFolder(data))) if (MARKER.test(name)) isAbandoned(data, name.slice(0, -4))
}
