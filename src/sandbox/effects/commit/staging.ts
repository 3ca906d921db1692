/**
 * Where a transaction's content is made ready, and where what it replaced waits: on the workspace's own file system.
 *
 * Guarantees: a fresh folder of this user's, closed to everybody else, used through its descriptor alone. It lies in the
 * transaction's own folder if a file can be moved from there to the workspace without copying, shown by a real link
 * across; else in the workspace, under a random name that was written down in the data folder before it was made. In a
 * workspace nothing is believed: a folder counts as ours by that name and the inode written down beside it.
 */
import { closeSync, constants, fchmodSync, fstatSync, fsyncSync, writeSync } from "node:fs"
import { randomBytes } from "node:crypto"
import {
  AT_FDCWD,
  AT_REMOVEDIR,
  linkat,
  openat2Beneath,
  removexattrOf,
  renameat2,
  unlinkat,
} from "../../../linux/files.ts"
import { errorCode, namesIn } from "../beneath.ts"
import { fromBuffer } from "../names.ts"
import { openNameless } from "./baseline.ts"
import { parsePlace, type StagedIn } from "./recovery/journal.ts"
import { PLACE_BYTES } from "./limits.ts"
import type { Place } from "./moves.ts"
import { removeTree } from "./recovery/remove.ts"
import { TOP_FOLDER, tellingAt } from "./told.ts"
import { isOwnFolder, makePrivateFolder, openFolderIn, readOwnFile } from "./recovery/tx-root.ts"

const AT_SYMLINK_FOLLOW = 0x400
const SLOTS = "slots"
const PLACE = "place"
/** new content before an operation and the old entry after it; the old entry where names cannot be exchanged; the new entry taken back */
const ENTRY = /^[son]\d+$/

export class Staging {
  readonly dir: number
  /** set where it lies in the workspace */
  readonly inside: StagedIn | undefined
  constructor(dir: number, inside?: StagedIn) {
    this.dir = dir
    this.inside = inside
  }
  #place(letter: string, slot: number): Place {
    return { dir: this.dir, name: fromBuffer(Buffer.from(`${letter}${slot}`)) }
  }
  slot(slot: number): Place {
    return this.#place("s", slot)
  }
  old(slot: number): Place {
    return this.#place("o", slot)
  }
  aside(slot: number): Place {
    return this.#place("n", slot)
  }
  close(): void {
    closeSync(this.dir)
  }
}

/** `transaction` is a descriptor of its folder in the data folder, `workspace` one of the workspace's root. */
export const makeStaging = (transaction: number, workspace: number, failpoint: (name: string) => void): Staging => {
  const here = makePrivateFolder(transaction, SLOTS)
  if (linksAcross(workspace, here)) return new Staging(here)
  closeSync(here)
  unlinkat(transaction, SLOTS, AT_REMOVEDIR)
  const name = `.caisson-tx-${randomBytes(16).toString("hex")}`
  writePlace(transaction, { name })
  failpoint("named")
  const dir = tellingAt(TOP_FOLDER, () => makePrivateFolder(workspace, name))
  try {
    failpoint("made")
    const inside = { name, ino: String(fstatSync(dir, { bigint: true }).ino) }
    for (const acl of ["system.posix_acl_access", "system.posix_acl_default"]) dropAttribute(dir, acl)
    fchmodSync(dir, 0o700)
    writePlace(transaction, inside)
    return new Staging(dir, inside)
  } catch (error) {
    dropStaging(new Staging(dir, { name }), workspace)
    closeSync(dir)
    throw error
  }
}

const dropAttribute = (dir: number, name: string): void => {
  try {
    removexattrOf(dir, name)
  } catch (error) {
    if (!["ENODATA", "ENOTSUP", "EOPNOTSUPP"].includes(errorCode(error))) throw error
  }
}

const writePlace = (transaction: number, place: StagedIn): void => {
  writeDurably(transaction, PLACE, Buffer.from(JSON.stringify(place)))
}

/** A file in a folder of ours, whole under its name or not there at all, and on disk when this returns. */
export const writeDurably = (dir: number, name: string, bytes: Buffer): void => {
  const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_TRUNC | constants.O_NOFOLLOW
  const fd = openat2Beneath(dir, `${name}.tmp`, flags, 0o600)
  try {
    for (let at = 0; at < bytes.length; ) at += writeSync(fd, bytes, at)
    fsyncSync(fd)
  } finally {
    closeSync(fd)
  }
  renameat2(dir, `${name}.tmp`, dir, name)
  fsyncSync(dir)
}

const linksAcross = (workspace: number, here: number): boolean => {
  if (fstatSync(workspace).dev !== fstatSync(here).dev) return false
  let fd: number | undefined
  try {
    fd = openNameless(workspace)
    linkat(AT_FDCWD, `/proc/self/fd/${fd}`, here, "probe", AT_SYMLINK_FOLLOW)
    unlinkat(here, "probe")
    return true
  } catch {
    return false
  } finally {
    if (fd !== undefined) closeSync(fd)
  }
}

/** What a transaction staged, as far as it is still there and its own. */
export const findStaging = (transaction: number, workspace: number): Staging | undefined => {
  const note = readOwnFile(transaction, PLACE, PLACE_BYTES)
  if (note === undefined) {
    const dir = openIfThere(transaction, SLOTS)
    return dir === undefined ? undefined : new Staging(dir)
  }
  const inside = parsePlace(note)
  const dir = openIfThere(workspace, inside.name)
  if (dir === undefined) return undefined
  // Without an inode nothing was put into it yet: it can only be removed as an empty folder.
  if (isOwnFolder(dir) && (inside.ino === undefined || inside.ino === String(fstatSync(dir, { bigint: true }).ino)))
    return new Staging(dir, inside)
  closeSync(dir)
  return undefined
}

const openIfThere = (parent: number, name: string): number | undefined => {
  try {
    return openFolderIn(parent, name)
  } catch (error) {
    if (["ENOENT", "ENOTDIR", "ELOOP", "EXDEV", "EACCES"].includes(errorCode(error))) return undefined
    throw error
  }
}

/** Take away what was staged in the workspace; in the data folder it goes with the transaction. */
export const dropStaging = ({ dir, inside }: Staging, workspace: number): void => {
  if (inside === undefined) return
  if (inside.ino !== undefined) for (const name of namesIn(dir)) if (ENTRY.test(name)) removeTree(dir, name)
  try {
    // What lies under the name by now may be another folder: only an empty one goes.
    unlinkat(workspace, inside.name, AT_REMOVEDIR)
  } catch (error) {
    if (!["ENOENT", "ENOTEMPTY", "EEXIST", "ENOTDIR"].includes(errorCode(error))) throw error
  }
}
