/**
 * Entries of a layer that the host writes, made as an overlay would make them from what lies below.
 *
 * Guarantees: everything is made below the layer's own descriptor and finished on the descriptor of what was made. A copy
 * has mode, owner, access lists and attributes of what it was copied from, so that only what is written to it shows as a
 * change; a copied file is marked, so that one whose origin is gone at the commit is a conflict and no new file.
 */
import { closeSync, constants, fchmodSync, fchownSync, fstatSync, type BigIntStats } from "node:fs"
import { mkdirat, openat2Beneath, setxattrOf } from "../../../linux/files.ts"
import { entry, errorCode, openDir, withDir } from "../../effects/beneath.ts"
import { baseOf, type BytePath, parentOf, toNative } from "../../effects/names.ts"
import { readAttributes } from "../../effects/xattrs.ts"
import type { ActsAs } from "./permission.ts"

/** Of a layer that nothing was mounted from: the host's user may always set these. */
export const HOSTED_XATTRS = "user"
const ORIGIN = `${HOSTED_XATTRS}.overlay.origin`

/** What the host's user needs while the call goes on. */
const OPEN = 0o700

const likeLower = (fd: number, lower: number, path: BytePath, stats: BigIntStats, as: ActsAs, open = 0): void => {
  if (as !== undefined) fchownSync(fd, Number(stats.uid), Number(stats.gid))
  const { payload } = withDir(lower, parentOf(path), (dir) => readAttributes(entry(dir, baseOf(path)), undefined))
  for (const [name, value] of payload) setxattrOf(fd, name, value)
  fchmodSync(fd, (Number(stats.mode) & 0o7777) | open)
}

/** A folder of the layer over one that is there, open to the host until its mode is set. */
export const copyFolder = (upper: number, lower: number, path: BytePath, stats: BigIntStats, as: ActsAs): void => {
  withDir(upper, parentOf(path), (dir) => mkdirat(dir, toNative(baseOf(path)), OPEN))
  const fd = openat2Beneath(upper, toNative(path), constants.O_RDONLY | constants.O_DIRECTORY)
  try {
    likeLower(fd, lower, path, stats, as, OPEN)
  } finally {
    closeSync(fd)
  }
}

/** A folder of the layer where there is none, the owner's as any that a sandbox makes. */
export const newFolder = (upper: number, path: BytePath, as: ActsAs): void => {
  const inherits = withDir(upper, parentOf(path), (dir) => {
    mkdirat(dir, toNative(baseOf(path)), OPEN)
    return (fstatSync(dir).mode & 0o2000) === 0 ? undefined : fstatSync(dir).gid
  })
  const fd = openat2Beneath(upper, toNative(path), constants.O_RDONLY | constants.O_DIRECTORY)
  try {
    if (as !== undefined) fchownSync(fd, as.uid, inherits ?? as.gid)
    fchmodSync(fd, 0o755 | (inherits === undefined ? 0 : 0o2000))
  } finally {
    closeSync(fd)
  }
}

const makeFile = (upper: number, path: BytePath): number => {
  const dir = openDir(upper, parentOf(path))
  try {
    return openat2Beneath(dir, toNative(baseOf(path)), constants.O_RDWR | constants.O_CREAT | constants.O_EXCL, 0o666)
  } finally {
    closeSync(dir)
  }
}

/** A file system without attributes: then a commit does not tell a file that is gone from one that never was. */
const markOrigin = (fd: number): void => {
  try {
    setxattrOf(fd, ORIGIN, new Uint8Array([0]))
  } catch (error) {
    if (!["ENOTSUP", "EOPNOTSUPP"].includes(errorCode(error))) throw error
  }
}

/** An empty file of the layer over one that is there. The caller closes it. */
export const copyFile = (upper: number, lower: number, path: BytePath, stats: BigIntStats, as: ActsAs): number => {
  const fd = makeFile(upper, path)
  try {
    likeLower(fd, lower, path, stats, as)
    markOrigin(fd)
    return fd
  } catch (error) {
    closeSync(fd)
    throw error
  }
}

const hasDefaults = (upper: number, folder: BytePath): boolean =>
  withDir(upper, folder, (dir) => readAttributes(Buffer.from(`/proc/self/fd/${dir}/.`), HOSTED_XATTRS)).payload.has(
    "system.posix_acl_default",
  )

/** An empty new file of the layer, the owner's as any that a sandbox makes. The caller closes it. */
export const newFile = (upper: number, path: BytePath, as: ActsAs): number => {
  const fd = makeFile(upper, path)
  try {
    if (as !== undefined) fchownSync(fd, as.uid, inheritedGroup(fd, upper, path) ?? as.gid)
    if (!hasDefaults(upper, parentOf(path))) fchmodSync(fd, 0o644)
    return fd
  } catch (error) {
    closeSync(fd)
    throw error
  }
}

const inheritedGroup = (fd: number, upper: number, path: BytePath): number | undefined =>
  withDir(upper, parentOf(path), (dir) => ((fstatSync(dir).mode & 0o2000) === 0 ? undefined : fstatSync(fd).gid))
