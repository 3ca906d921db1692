/**
 * A folder of the host by what it is, not by what it is called.
 *
 * Guarantees: whoever holds an `OpenFolder` works on one folder, however its path is swapped meanwhile; an identity that
 * crossed a process border opens that same folder or none. While one process holds it open, its inode is not reused.
 * Assumes: /proc is mounted. Does not: say who may use the folder.
 */
import { closeSync, constants, fstatSync, openSync, readlinkSync } from "node:fs"
import { createHash } from "node:crypto"
import { birthNsOf, openat2Plain } from "../linux/files.ts"

/** Plain data: it may cross process borders as JSON. */
export interface FolderIdentity {
  /** real path when it was opened */
  readonly path: string
  readonly dev: string
  readonly ino: string
  /** 0 where the file system does not know */
  readonly birthNs: string
}

export class FolderReplaced extends Error {
  constructor(path: string) {
    super(`the folder ${path} was moved or replaced meanwhile`)
    this.name = "FolderReplaced"
  }
}

/** The wait for another commit on the folder was too long, or ended by the caller. */
export class LockWaitEnded extends Error {}

export class OpenFolder implements Disposable {
  readonly fd: number
  readonly identity: FolderIdentity
  #open = true
  constructor(fd: number, identity: FolderIdentity) {
    this.fd = fd
    this.identity = identity
  }
  /** A path that leads here in this process, whatever the folder is called by now. */
  get here(): string {
    return `/proc/self/fd/${this.fd}`
  }
  /** The folder under the name it had, for messages and for calls that look again. */
  get path(): string {
    return this.identity.path
  }
  [Symbol.dispose](): void {
    if (!this.#open) return
    this.#open = false
    closeSync(this.fd)
  }
}

const identityOf = (fd: number, path: string): FolderIdentity => {
  const { dev, ino } = fstatSync(fd, { bigint: true })
  return { path, dev: String(dev), ino: String(ino), birthNs: String(birthNsOf(fd)) }
}

/** The folder that a path leads to now, links followed; its real path is the kernel's word. */
export const openFolder = (path: string): OpenFolder => {
  const fd = openSync(path, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NONBLOCK)
  try {
    return new OpenFolder(fd, identityOf(fd, readlinkSync(`/proc/self/fd/${fd}`)))
  } catch (error) {
    closeSync(fd)
    throw error
  }
}

const isSameFolder = (a: FolderIdentity, b: FolderIdentity): boolean =>
  a.dev === b.dev && a.ino === b.ino && a.birthNs === b.birthNs

/** After a reboot devices may be numbered anew; then path, inode and the instant of birth decide. */
const isSameRenumbered = (a: FolderIdentity, b: FolderIdentity): boolean =>
  a.path === b.path && a.ino === b.ino && a.birthNs === b.birthNs && a.birthNs !== "0"

/**
 * The folder of that identity, if its path still leads there without a link. Throws `FolderReplaced`. `rebooted`: the
 * identity is from another boot of the machine.
 */
export const reopenFolder = (identity: FolderIdentity, rebooted = false): OpenFolder => {
  let fd: number
  try {
    fd = openat2Plain(identity.path, constants.O_RDONLY | constants.O_DIRECTORY)
  } catch (error) {
    const code = (error as { code?: unknown }).code
    if (["ENOENT", "ENOTDIR", "ELOOP", "EACCES"].includes(String(code))) throw new FolderReplaced(identity.path)
    throw error
  }
  const found = identityOf(fd, identity.path)
  if (isSameFolder(found, identity)) return new OpenFolder(fd, identity)
  if (rebooted && isSameRenumbered(found, identity)) return new OpenFolder(fd, found)
  closeSync(fd)
  throw new FolderReplaced(identity.path)
}

/** What a path leads to now. Throws where that is no folder that this user may read. */
export const lookAt = (path: string): FolderIdentity => {
  using folder = openFolder(path)
  return folder.identity
}

/** Does the path still lead to the folder that is held? */
export const isStillThere = ({ identity }: OpenFolder): boolean => {
  try {
    using _found = reopenFolder(identity)
    return true
  } catch (error) {
    if (error instanceof FolderReplaced) return false
    throw error
  }
}

/** A short name for a folder that outlives reboots: devices may be numbered anew, inodes and birth times stay. */
export const folderKey = ({ ino, birthNs }: FolderIdentity): string =>
  createHash("sha256").update(`${ino}:${birthNs}`).digest("hex").slice(0, 24)
