/**
 * The folder of the data folder that transactions and their locks live in: the only place where one is looked for.
 *
 * Guarantees: a real folder of this user's, closed to everybody else, held by descriptor; files in it are opened without
 * following a link and never block. Nothing that lies in a workspace is evidence of anything.
 * Assumes: the data folder exists, or its parent does.
 */
import { closeSync, constants, fchmodSync, fstatSync, mkdirSync, readSync } from "node:fs"
import { join } from "node:path"
import { mkdirat, openat2Beneath } from "../../../../linux/files.ts"
import { errorCode, openRoot } from "../../beneath.ts"

/** Where the transactions of this data folder are, whatever folder they are for. */
export const txRootOf = (dataDir: string): string => join(dataDir, "tx")

const me = (): number => process.geteuid?.() ?? 0

/** Opens it, and makes it where it is not there yet. */
export const openTxRoot = (txRoot: string): number => {
  try {
    mkdirSync(txRoot, { recursive: true, mode: 0o700 })
  } catch (error) {
    if (errorCode(error) !== "EEXIST") throw error
  }
  return checkOwn(openRoot(txRoot), txRoot)
}

/** Undefined where no commit has made it yet. */
export const findTxRoot = (txRoot: string): number | undefined => {
  let fd: number
  try {
    fd = openRoot(txRoot)
  } catch (error) {
    if (errorCode(error) === "ENOENT") return undefined
    throw error
  }
  return checkOwn(fd, txRoot)
}

const checkOwn = (fd: number, shown: string): number => {
  const { uid, mode } = fstatSync(fd)
  if (uid !== me()) {
    closeSync(fd)
    throw new Error(`the folder ${shown} belongs to another user (uid ${uid}); remove it`)
  }
  if ((mode & 0o077) !== 0) fchmodSync(fd, 0o700)
  return fd
}

/** A new folder below a descriptor, private to this user; the name must be free. */
export const makePrivateFolder = (parent: number, name: string): number => {
  mkdirat(parent, name, 0o700)
  const fd = openFolderIn(parent, name)
  const { uid, mode } = fstatSync(fd)
  if (uid === me() && (mode & 0o077) === 0) return fd
  closeSync(fd)
  throw new Error("a folder made for this commit was swapped for another")
}

export const openFolderIn = (parent: number, name: string): number =>
  openat2Beneath(parent, name, constants.O_RDONLY | constants.O_DIRECTORY)

export const isOwnFolder = (fd: number): boolean => {
  const stats = fstatSync(fd)
  return stats.isDirectory() && stats.uid === me()
}

/** A small regular file of this user's, or why it is none; undefined where there is nothing of that name. */
export const readOwnFile = (dir: number, name: string, maxBytes: number): Buffer | undefined => {
  let fd: number
  try {
    fd = openat2Beneath(dir, name, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
  } catch (error) {
    if (errorCode(error) === "ENOENT") return undefined
    if (["ELOOP", "ENXIO", "EXDEV"].includes(errorCode(error))) throw new Error(`${name} is no regular file`)
    throw error
  }
  try {
    const stats = fstatSync(fd)
    if (!stats.isFile()) throw new Error(`${name} is no regular file`)
    if (stats.uid !== me()) throw new Error(`${name} belongs to another user`)
    if (stats.size > maxBytes) throw new Error(`${name} is larger than ${maxBytes} bytes`)
    const bytes = Buffer.alloc(stats.size)
    let at = 0
    for (let read = -1; at < bytes.length && read !== 0; at += read)
      read = readSync(fd, bytes, at, bytes.length - at, at)
    return bytes.subarray(0, at)
  } finally {
    closeSync(fd)
  }
}
