/**
 * The two renames that everything is made of, between a name below a folder descriptor and a transaction's slot.
 *
 * Guarantees: neither follows a symlink; `place` never overwrites; `exchange` leaves no instant without an entry where
 * the file system can exchange names. A folder that its owner may not write to can be moved all the same.
 */
import { chmodSync, closeSync, constants, fstatSync, lstatSync } from "node:fs"
import { openat2Beneath, RENAME_EXCHANGE, RENAME_NOREPLACE, renameat2 } from "../../../linux/files.ts"
import { entry, errorCode } from "../beneath.ts"
import { toNative, type BytePath } from "../names.ts"

/** A name below a folder descriptor. */
export interface Place {
  readonly dir: number
  readonly name: BytePath
}

const UNSUPPORTED = ["EINVAL", "ENOSYS", "EOPNOTSUPP", "ENOTSUP"]

const rename = (from: Place, to: Place, flags: number): void => {
  const attempt = (): void => renameat2(from.dir, toNative(from.name), to.dir, toNative(to.name), flags)
  try {
    attempt()
  } catch (error) {
    if (errorCode(error) !== "EACCES") throw error
    const reopened = [from, ...(flags === RENAME_EXCHANGE ? [to] : [])].map(openUpFolder)
    if (!reopened.some((restore) => restore !== undefined)) throw error
    try {
      attempt()
    } finally {
      for (const restore of reopened) restore?.()
    }
  }
}

/** Moving a folder to another parent rewrites its `..`, which asks for write permission on the folder itself. */
const openUpFolder = (place: Place): (() => void) | undefined => {
  const O_PATH = 0o10000000
  let fd: number
  try {
    fd = openat2Beneath(place.dir, toNative(place.name), O_PATH | constants.O_DIRECTORY)
  } catch {
    return undefined
  }
  const mode = fstatSync(fd).mode & 0o7777
  const self = `/proc/self/fd/${fd}`
  if ((mode & 0o200) !== 0) {
    closeSync(fd)
    return undefined
  }
  chmodSync(self, mode | 0o200)
  return () => {
    chmodSync(self, mode)
    closeSync(fd)
  }
}

/** Move to a name that must be free; throws `EEXIST` where it is not. */
export const place = (from: Place, to: Place): void => {
  try {
    rename(from, to, RENAME_NOREPLACE)
  } catch (error) {
    if (!UNSUPPORTED.includes(errorCode(error))) throw error
    const taken = lstatSync(absolute(to), { throwIfNoEntry: false })
    if (taken !== undefined) throw Object.assign(new Error("EEXIST: the name is taken"), { code: "EEXIST" })
    rename(from, to, 0)
  }
}

/** Swap two entries; false where the file system cannot. */
export const exchange = (a: Place, b: Place): boolean => {
  try {
    rename(a, b, RENAME_EXCHANGE)
    return true
  } catch (error) {
    if (UNSUPPORTED.includes(errorCode(error))) return false
    throw error
  }
}

export const absolute = ({ dir, name }: Place): Buffer => entry(dir, name)
