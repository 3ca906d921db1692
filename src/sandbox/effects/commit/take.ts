/**
 * A layer's file itself, moved to where its copy would be made.
 *
 * Guarantees: taken is only what a copy could not be told from by anybody who looks: one name, plain permission bits, no
 * attribute but those that a commit carries, no flag but those that the file system gives by itself, no more of the disk
 * than its content needs. Anything else is left where it is, to be copied, as is all of a layer on another file system.
 * Assumes: the layer's writers are dead and nothing is mounted of it, and it goes when the commit is over, however that
 * ends.
 */
import { closeSync, constants, openSync, type BigIntStats } from "node:fs"
import { AT_FDCWD, RENAME_NOREPLACE, llistxattr, removexattrOf, renameat2 } from "../../../linux/files.ts"
import { SyscallError } from "../../../linux/libc.ts"
import { ioctl } from "../../../linux/processes.ts"
import { errorCode } from "../beneath.ts"
import { toNative } from "../names.ts"
import type { XattrPrefix } from "../xattrs.ts"
import type { Place } from "./moves.ts"

const FS_IOC_GETFLAGS = 0x80086601
/** Its blocks are told in extents; its content lies in its record. */
const GIVEN = 0x80000 | 0x10000000

/** Room that was set aside behind its end: nobody sees it, and it stays taken. A few blocks tell where the others are. */
const holdsMore = ({ size, blocks, blksize }: BigIntStats): boolean => {
  const block = blksize > 0n ? blksize : 4096n
  const needed = (size + block - 1n) / block
  return blocks * 512n > (needed + needed / 64n + 1n) * block
}

const hasOwnFlags = (fd: number): boolean => {
  const flags = Buffer.alloc(8)
  try {
    ioctl(fd, FS_IOC_GETFLAGS, flags)
  } catch (error) {
    // A file system without such flags.
    if (["ENOTTY", "EOPNOTSUPP", "ENOTSUP", "EINVAL", "ENOSYS"].includes(errorCode(error))) return false
    throw error
  }
  return (flags.readUInt32LE(0) & ~GIVEN) !== 0
}

const native = (path: Buffer): string => Buffer.concat([path, Buffer.from([0])]) as unknown as string
const isCarried = (name: string): boolean => /^(user\.(?!overlay\.)|system\.posix_acl_)/.test(name)

/**
 * `to`: a free name in a folder that is closed to others. `finish` is given what was taken. `left`: it is still where it
 * was, as any other would be where it lies `elsewhere`.
 */
export const takeFile = (
  from: Buffer,
  stats: BigIntStats,
  to: Place,
  { prefix, finish }: { readonly prefix: XattrPrefix; readonly finish: (fd: number) => void },
): "taken" | "left" | "elsewhere" => {
  if (stats.nlink !== 1n || (stats.mode & 0o7000n) !== 0n || holdsMore(stats)) return "left"
  const origin = `${prefix}.overlay.origin`
  const names = llistxattr(native(from))
  if (names.some((name) => name !== origin && !isCarried(name))) return "left"
  const fd = openSync(from, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
  try {
    if (hasOwnFlags(fd)) return "left"
    try {
      renameat2(AT_FDCWD, native(from), to.dir, toNative(to.name), RENAME_NOREPLACE)
    } catch (error) {
      if (error instanceof SyscallError && ["EXDEV", "EINVAL"].includes(error.code)) return "elsewhere"
      throw error
    }
    if (names.includes(origin)) removexattrOf(fd, origin)
    finish(fd)
    return "taken"
  } finally {
    closeSync(fd)
  }
}
