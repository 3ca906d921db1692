/**
 * Who sandboxes run as where the host is root: users that nothing on the machine belongs to, one for each that is there
 * at the same time. The kernel counts inotify instances, pipe pages, keys and signals per user: with a user of its own no
 * sandbox takes another's share.
 *
 * Guarantees: two hosts on one machine never use the same users at once (a block of them is held by a lock of the
 * kernel's, which dies with its holder); within a block a user is given to one sandbox at a time. Where no block can be
 * held, or all of it is in use, sandboxes share one user, and `own` says so.
 * Assumes: root; users from 1 878 982 656 to 1 879 048 191 belong to nobody.
 */
import { closeSync, constants, lstatSync, mkdirSync, openSync } from "node:fs"
import { join } from "node:path"
import type { Identity } from "./layers/owner-maps.ts"
import { flock, LOCK } from "../linux/files.ts"
import { SyscallError } from "../linux/libc.ts"

const firstUser = 1_878_982_656
export const usersPerBlock = 128
const blocks = 512
/** Shared by all who have no user of their own. */
const sharedUser = firstUser + blocks * usersPerBlock - 1
const lockFolder = "/run/caisson-users"

/** Users that one host's sandboxes may run as; the first ones are given out, the last one is shared. */
export interface UserBlock {
  readonly first: number
  readonly count: number
}
interface HeldBlock extends UserBlock {
  readonly own: boolean
  release(): void
}

const usable = (folder: string): boolean => {
  try {
    mkdirSync(folder, { mode: 0o700 })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") return false
  }
  const found = lstatSync(folder, { throwIfNoEntry: false })
  return found?.isDirectory() === true && found.uid === process.getuid?.() && (found.mode & 0o022) === 0
}
const lockOf = (file: string): number | undefined => {
  const fd = openSync(file, constants.O_CREAT | constants.O_RDWR | constants.O_NOFOLLOW, 0o600)
  try {
    flock(fd, LOCK.EXCLUSIVE | LOCK.NONBLOCK)
    return fd
  } catch (error) {
    closeSync(fd)
    if (error instanceof SyscallError) return undefined
    throw error
  }
}
const alone: HeldBlock = { first: sharedUser, count: 1, own: false, release: () => undefined }

/** Hold a block of users until it is released or this process ends. */
export const holdUsers = (folder = lockFolder): HeldBlock => {
  try {
    if (!usable(folder)) return alone
    // The last block holds the shared user.
    for (let block = 0; block < blocks - 1; block += 1) {
      const fd = lockOf(join(folder, String(block)))
      if (fd === undefined) continue
      let held = true
      return {
        first: firstUser + block * usersPerBlock,
        count: usersPerBlock,
        own: true,
        release() {
          if (held) closeSync(fd)
          held = false
        },
      }
    }
  } catch {
    // A full or read-only disk: what follows says that users are shared.
  }
  return alone
}

export interface Lease {
  readonly identity: Identity
  /** Once; again does nothing. */
  release(): void
}

/** The users of a block, lowest free one first, so that few of them are ever seen. */
export class Users {
  readonly #block: UserBlock
  readonly #taken = new Set<number>()
  constructor(block: UserBlock) {
    this.#block = block
  }
  take(): Lease {
    const { first, count } = this.#block
    const last = first + count - 1
    let uid = first
    while (uid < last && this.#taken.has(uid)) uid += 1
    this.#taken.add(uid)
    return { identity: { uid, gid: uid }, release: () => void this.#taken.delete(uid) }
  }
}

/** Half of what this user has of them: one call must not take what the user's other programs need. */
export const inotifyShare = (allowed: string): string => String(Math.max(8, Math.floor(Number(allowed.trim()) / 2)))
