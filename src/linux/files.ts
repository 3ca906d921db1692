/**
 * Files by descriptor and by path, as far as Node has no call for them: below a folder and through no link, attributes,
 * times, locks, holes.
 *
 * Guarantees: each call succeeds or throws a `SyscallError`.
 */
import koffi from "koffi"
import { SyscallError, call, errnoName, native, raw } from "./libc.ts"

export const AT_FDCWD = -100

export const AT_REMOVEDIR = 0x200

export const AT_SYMLINK_NOFOLLOW = 0x100

export const AT_EMPTY_PATH = 0x1000

export const RENAME_NOREPLACE = 1

export const RENAME_EXCHANGE = 2

/** The value of an extended attribute, or undefined where the file does not carry it. */
export const lgetxattr = (path: string, name: string): Buffer | undefined => {
  for (let size = 256; ; size *= 8) {
    const buffer = Buffer.alloc(size)
    const length = native("lgetxattr")(path, name, buffer, size)
    if (length >= 0) return buffer.subarray(0, length)
    const errno = koffi.errno()
    const code = errnoName(errno)
    if (code === "ENODATA" || code === "ENOTSUP" || code === "EOPNOTSUPP") return undefined
    if (code !== "ERANGE" || size > 1 << 20) throw new SyscallError("lgetxattr", errno, path)
  }
}

export const lsetxattr = (path: string, name: string, value: Uint8Array): void => {
  call("lsetxattr", path, path, name, value, value.length, 0)
}

export const lremovexattr = (path: string, name: string): void => {
  call("lremovexattr", path, path, name)
}

/** By descriptor, one opened with O_PATH included: what it refers to gets the attribute, whatever it is called by now. */
export const setxattrOf = (fd: number, name: string, value: Uint8Array): void => {
  call("setxattr", name, `/proc/self/fd/${fd}`, name, value, value.length, 0)
}

export const removexattrOf = (fd: number, name: string): void => {
  call("removexattr", name, `/proc/self/fd/${fd}`, name)
}

export const llistxattr = (path: string): string[] => {
  for (let size = 1024; ; size *= 8) {
    const buffer = Buffer.alloc(size)
    const length = native("llistxattr")(path, buffer, size)
    if (length >= 0)
      return buffer
        .subarray(0, length)
        .toString("latin1")
        .split("\0")
        .filter((name) => name !== "")
    const errno = koffi.errno()
    const code = errnoName(errno)
    if (code === "ENOTSUP" || code === "EOPNOTSUPP") return []
    if (code !== "ERANGE" || size > 1 << 20) throw new SyscallError("llistxattr", errno, path)
  }
}

const RESOLVE = { NO_XDEV: 1, NO_MAGICLINKS: 2, NO_SYMLINKS: 4, BENEATH: 8 } as const

const openat2 = (dirfd: number, path: string, flags: number, mode: number, resolve: number): number => {
  const how = Buffer.alloc(24)
  how.writeBigUInt64LE(BigInt(flags | 0o2000000), 0)
  how.writeBigUInt64LE(BigInt(mode), 8)
  how.writeBigUInt64LE(BigInt(resolve), 16)
  return raw("openat2", 437, "int dirfd, const char *path, const void *how, size_t size", dirfd, path, how, 24)
}

/** Open below `dirfd`, never through a symlink, never out of the tree, never onto another mount. */
export const openat2Beneath = (dirfd: number, path: string, flags: number, mode = 0): number =>
  openat2(dirfd, path, flags, mode, RESOLVE.NO_XDEV | RESOLVE.NO_MAGICLINKS | RESOLVE.NO_SYMLINKS | RESOLVE.BENEATH)

/** The same, with whatever is mounted on the way. */
export const openat2Below = (dirfd: number, path: string, flags: number): number =>
  openat2(dirfd, path, flags, 0, RESOLVE.NO_MAGICLINKS | RESOLVE.NO_SYMLINKS | RESOLVE.BENEATH)

/** Open an absolute path on which nothing is a symlink. */
export const openat2Plain = (path: string, flags: number): number =>
  openat2(AT_FDCWD, path, flags, 0, RESOLVE.NO_MAGICLINKS | RESOLVE.NO_SYMLINKS)

const STATX_BTIME = 0x800

/**
 * When what a descriptor holds was made, in nanoseconds; 0 where the file system does not know. Node's own answer turns
 * into the time of the last change, for good, once any of its calls met a refusal that it takes for an old kernel.
 */
export const birthNsOf = (fd: number): bigint => {
  const found = Buffer.alloc(256)
  call("statx", `fd ${fd}`, fd, "", AT_EMPTY_PATH, STATX_BTIME, found)
  if ((found.readUInt32LE(0) & STATX_BTIME) === 0) return 0n
  return found.readBigInt64LE(80) * 1_000_000_000n + BigInt(found.readUInt32LE(88))
}

export const renameat2 = (oldDir: number, oldPath: string, newDir: number, newPath: string, flags = 0): void => {
  call("renameat2", `${oldPath} to ${newPath}`, oldDir, oldPath, newDir, newPath, flags)
}

export const linkat = (oldDir: number, oldPath: string, newDir: number, newPath: string, flags = 0): void => {
  call("linkat", `${oldPath} to ${newPath}`, oldDir, oldPath, newDir, newPath, flags)
}

export const unlinkat = (dir: number, path: string, flags = 0): void => {
  call("unlinkat", path, dir, path, flags)
}

export const mkdirat = (dir: number, path: string, mode: number): void => {
  call("mkdirat", path, dir, path, mode)
}

export const symlinkat = (target: string, dir: number, path: string): void => {
  call("symlinkat", path, target, dir, path)
}

export const fchmodat = (dir: number, path: string, mode: number): void => {
  call("fchmodat", path, dir, path, mode, 0)
}

export const fchownat = (dir: number, path: string, uid: number, gid: number): void => {
  call("fchownat", path, dir, path, uid, gid, AT_SYMLINK_NOFOLLOW)
}

/** Set access and modification time, in nanoseconds since the epoch, of the link itself; without a path, of `dir`. */
export const utimensat = (dir: number, path: string | null, atimeNs: bigint, mtimeNs: bigint): void => {
  const times = Buffer.alloc(32)
  times.writeBigInt64LE(atimeNs / 1_000_000_000n, 0)
  times.writeBigInt64LE(atimeNs % 1_000_000_000n, 8)
  times.writeBigInt64LE(mtimeNs / 1_000_000_000n, 16)
  times.writeBigInt64LE(mtimeNs % 1_000_000_000n, 24)
  if (path === null) call("futimens", "", dir, times)
  else call("utimensat", path, dir, path, times, AT_SYMLINK_NOFOLLOW)
}

export const LOCK = { SHARED: 1, EXCLUSIVE: 2, NONBLOCK: 4, UNLOCK: 8 } as const

export const flock = (fd: number, operation: number): void => {
  call("flock", "", fd, operation)
}

/** Everything written to the descriptor's file system is on disk when this returns. */
export const syncfs = (fd: number): void => {
  call("syncfs", "", fd)
}

type Apart = { async(fd: number, done: (error: unknown, result: number) => void): void }

/** The same on a thread of its own: a slow disk may take seconds over it. */
export const syncfsApart = async (fd: number): Promise<void> => {
  const result = await new Promise<number>((resolve, reject) => {
    ;(native("syncfs") as unknown as Apart).async(fd, (error, answer) =>
      error === null || error === undefined ? resolve(answer) : reject(error as Error),
    )
  })
  if (result >= 0) return
  // What went wrong is known on the thread that asked, and told once: it is asked again for the name alone.
  syncfs(fd)
  throw new SyscallError("syncfs", koffi.os.errno["EIO"] ?? 5, "")
}

/** The file system's own name for what a descriptor refers to, its type byte first; undefined where it has none. */
export const fileHandle = (fd: number): Buffer | undefined => {
  const MAX_HANDLE = 128
  const handle = Buffer.alloc(8 + MAX_HANDLE)
  handle.writeUInt32LE(MAX_HANDLE, 0)
  if (native("name_to_handle_at")(fd, "", handle, Buffer.alloc(4), AT_EMPTY_PATH) < 0) return undefined
  return Buffer.concat([handle.subarray(4, 5), handle.subarray(8, 8 + handle.readUInt32LE(0))])
}

const SEEK = { DATA: 3, HOLE: 4, SET: 0 } as const

/** Copy a file's data and leave its holes holes. Both descriptors are regular files; `size` is the source's. */
export const copySparse = (from: number, to: number, size: number): void => {
  let position = 0
  while (position < size) {
    let start: number
    try {
      start = call("lseek", "", from, position, SEEK.DATA)
    } catch (error) {
      if (error instanceof SyscallError && error.code === "ENXIO") break
      throw error
    }
    const end = call("lseek", "", from, start, SEEK.HOLE)
    call("lseek", "", from, start, SEEK.SET)
    call("lseek", "", to, start, SEEK.SET)
    for (let left = end - start; left > 0; ) {
      const copied = call("copy_file_range", "", from, null, to, null, Math.min(left, 1 << 30), 0)
      if (copied === 0) return
      left -= copied
    }
    position = end
  }
}
