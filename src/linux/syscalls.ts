/**
 * The few system calls Node does not offer, in one small module.
 *
 * Guarantees: each wrapper either succeeds or throws a `SyscallError` that carries the errno's name as `code`.
 * Calls are synchronous and act on the calling thread; namespace changes concern that thread alone.
 * Assumes: Linux on a libc that exports these symbols (glibc or musl). Loading is lazy, so that importing this
 * module costs nothing and works anywhere.
 */
import koffi from "koffi"

export class SyscallError extends Error {
  readonly code: string
  readonly errno: number
  readonly syscall: string
  constructor(syscall: string, errno: number, detail: string) {
    const code = errnoName(errno)
    super(`${code}: ${syscall}${detail === "" ? "" : ` ${detail}`}`)
    this.code = code
    this.errno = errno
    this.syscall = syscall
  }
}

const errnoNames = new Map<number, string>()
const errnoName = (errno: number): string => {
  if (errnoNames.size === 0)
    for (const [name, number] of Object.entries(koffi.os.errno))
      if (!errnoNames.has(number)) errnoNames.set(number, name)
  return errnoNames.get(errno) ?? `errno ${errno}`
}

type Native = (...args: unknown[]) => number
const declarations = {
  mount: "int mount(const char *source, const char *target, const char *type, ulong flags, const char *data)",
  umount2: "int umount2(const char *target, int flags)",
  unshare: "int unshare(int flags)",
  setns: "int setns(int fd, int nstype)",
  prctl: "int prctl(int option, ulong a, ulong b, ulong c, ulong d)",
  ioctl: "int ioctl(int fd, ulong request, _Inout_ void *argument)",
  lgetxattr: "long lgetxattr(const char *path, const char *name, _Out_ void *value, size_t size)",
  setxattr: "int setxattr(const char *path, const char *name, const void *value, size_t size, int flags)",
  removexattr: "int removexattr(const char *path, const char *name)",
  lsetxattr: "int lsetxattr(const char *path, const char *name, const void *value, size_t size, int flags)",
  lremovexattr: "int lremovexattr(const char *path, const char *name)",
  llistxattr: "long llistxattr(const char *path, _Out_ void *list, size_t size)",
  linkat: "int linkat(int olddir, const char *oldpath, int newdir, const char *newpath, int flags)",
  unlinkat: "int unlinkat(int dir, const char *path, int flags)",
  mkdirat: "int mkdirat(int dir, const char *path, uint mode)",
  symlinkat: "int symlinkat(const char *target, int dir, const char *path)",
  fchmodat: "int fchmodat(int dir, const char *path, uint mode, int flags)",
  fchownat: "int fchownat(int dir, const char *path, uint uid, uint gid, int flags)",
  futimens: "int futimens(int fd, const void *times)",
  utimensat: "int utimensat(int dir, const char *path, const void *times, int flags)",
  renameat2: "int renameat2(int olddir, const char *oldpath, int newdir, const char *newpath, uint flags)",
  flock: "int flock(int fd, int operation)",
  syncfs: "int syncfs(int fd)",
  name_to_handle_at:
    "int name_to_handle_at(int dir, const char *path, _Inout_ void *handle, _Out_ void *mount, int flags)",
  statx: "int statx(int dir, const char *path, int flags, uint mask, _Out_ void *found)",
  lseek: "long lseek(int fd, long offset, int whence)",
  copy_file_range: "long copy_file_range(int in, void *inOffset, int out, void *outOffset, size_t length, uint flags)",
  prlimit: "int prlimit(int pid, int resource, const void *limit, void *old)",
  posix_openpt: "int posix_openpt(int flags)",
  grantpt: "int grantpt(int fd)",
  unlockpt: "int unlockpt(int fd)",
  ptsname_r: "int ptsname_r(int fd, _Out_ void *name, size_t length)",
  pipe2: "int pipe2(_Out_ void *fds, int flags)",
  wait4: "int wait4(int pid, _Out_ int *status, int options, _Out_ void *usage)",
} as const
type Name = keyof typeof declarations

let library: ReturnType<typeof koffi.load> | undefined
const loaded = new Map<string, Native>()
/** A function of libc by its declaration, for modules beside this one. */
export const foreign = (key: string, declare: (library: ReturnType<typeof koffi.load>) => unknown): Native => {
  let fn = loaded.get(key)
  if (fn === undefined) {
    library ??= koffi.load(null)
    fn = declare(library) as Native
    loaded.set(key, fn)
  }
  return fn
}
/** The result of a call, unless it failed. */
export const checked = (syscall: string, result: number, detail = ""): number => {
  if (result < 0) throw new SyscallError(syscall, koffi.errno(), detail)
  return result
}
const native = (name: Name): Native => foreign(name, (libc) => libc.func(declarations[name]))
/** `syscall(2)` for what libc has no wrapper for; every argument is passed as a long or a pointer. */
const raw = (name: string, number: number, signature: string, ...args: unknown[]): number => {
  const fn = foreign(`syscall:${signature}`, (libc) => libc.func(`long syscall(long number, ${signature})`))
  return checked(name, fn(number, ...args))
}
const call = (name: Name, detail: string, ...args: unknown[]): number => checked(name, native(name)(...args), detail)

export const AT_FDCWD = -100
export const AT_REMOVEDIR = 0x200
export const AT_SYMLINK_NOFOLLOW = 0x100
export const AT_EMPTY_PATH = 0x1000
export const RENAME_NOREPLACE = 1
export const RENAME_EXCHANGE = 2

export const MS = {
  RDONLY: 1,
  NOSUID: 2,
  NODEV: 4,
  NOEXEC: 8,
  REMOUNT: 32,
  BIND: 4096,
  MOVE: 8192,
  REC: 16384,
  PRIVATE: 1 << 18,
  SLAVE: 1 << 19,
  SHARED: 1 << 20,
} as const
export const MNT_DETACH = 2
export const CLONE = {
  NEWNS: 0x20000,
  NEWCGROUP: 0x2000000,
  NEWUTS: 0x4000000,
  NEWIPC: 0x8000000,
  NEWUSER: 0x10000000,
  NEWPID: 0x20000000,
  NEWNET: 0x40000000,
} as const

export const mount = (
  source: string,
  target: string,
  type: string | null,
  flags: number,
  data: string | null,
): void => {
  call("mount", `${source} on ${target}`, source, target, type, flags, data)
}
export const umount = (target: string, flags = 0): void => {
  call("umount2", target, target, flags)
}
export const unshare = (flags: number): void => {
  call("unshare", "", flags)
}
export const setns = (fd: number, type: number): void => {
  call("setns", "", fd, type)
}
export const prctl = (option: number, a = 0, b = 0, c = 0, d = 0): number =>
  call("prctl", `option ${option}`, option, a, b, c, d)

/** Mark every descriptor from `first` on close-on-exec, so that no child inherits what a parent left open. */
export const closeOnExecFrom = (first: number): void => {
  raw("close_range", 436, "uint first, uint last, uint flags", first, 0xffffffff, 4)
}

export const ioctl = (fd: number, request: number, argument: Uint8Array): number =>
  call("ioctl", `request 0x${request.toString(16)}`, fd, request, argument)

const [TCFLSH, TCIFLUSH] = [0x540b, 0]
/** Forget what was typed at a terminal and not read yet. */
export const dropTypedAhead = (terminal: number): void => {
  const flush = foreign("ioctl:int", (libc) => libc.func("int ioctl(int fd, ulong request, int argument)"))
  checked("ioctl", flush(terminal, TCFLSH, TCIFLUSH), "TCFLSH")
}

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

export const RLIMIT = { CPU: 0, FSIZE: 1, DATA: 2, STACK: 3, CORE: 4, NPROC: 6, NOFILE: 7, AS: 9 } as const
export const prlimit = (pid: number, resource: number, soft: bigint, hard: bigint): void => {
  const limit = Buffer.alloc(16)
  limit.writeBigUInt64LE(soft, 0)
  limit.writeBigUInt64LE(hard, 8)
  call("prlimit", `resource ${resource}`, pid, resource, limit, null)
}

/** A pipe of the kernel's own kind, which a program may open again by name (`/dev/stdout`); closed in children. */
export const makePipe = (): { read: number; write: number } => {
  const descriptors = Buffer.alloc(8)
  call("pipe2", "", descriptors, 0o2000000)
  return { read: descriptors.readInt32LE(0), write: descriptors.readInt32LE(4) }
}

/**
 * Reap one child by pid, without blocking: undefined while it lives. Once it is gone, the CPU time that it and all
 * its reaped descendants used, where the child was still there to be asked.
 */
export const reap = (pid: number): { readonly cpuMs: number | undefined } | undefined => {
  const WNOHANG = 1
  const usage = Buffer.alloc(144)
  const result = native("wait4")(pid, [0], WNOHANG, usage)
  if (result === pid) {
    const [user, system] = [0, 16].map((at) => usage.readBigInt64LE(at) * 1_000_000n + usage.readBigInt64LE(at + 8))
    return { cpuMs: Number((user ?? 0n) + (system ?? 0n)) / 1000 }
  }
  return result < 0 && errnoName(koffi.errno()) === "ECHILD" ? { cpuMs: undefined } : undefined
}

/** A handle on one process that never names another, even once its number is used again. The caller closes it. */
export const pidfdOpen = (pid: number): number => raw("pidfd_open", 434, "int pid, uint flags", pid, 0)
/** Signal the process behind a handle; one that is gone already is no error. */
export const pidfdSignal = (pidfd: number, signal: number): void => {
  try {
    raw("pidfd_send_signal", 424, "int pidfd, int signal, void *info, uint flags", pidfd, signal, null, 0)
  } catch (error) {
    if (!(error instanceof SyscallError) || error.code !== "ESRCH") throw error
  }
}
const SIGKILL = 9
export const pidfdKill = (pidfd: number): void => pidfdSignal(pidfd, SIGKILL)

/** A new pseudo terminal: the master's descriptor, which never blocks, and the slave's path. */
export const openPseudoTerminal = (): { master: number; slave: string } => {
  const O_RDWR_NOCTTY_NONBLOCK_CLOEXEC = 2 | 0o400 | 0o4000 | 0o2000000
  const master = call("posix_openpt", "", O_RDWR_NOCTTY_NONBLOCK_CLOEXEC)
  call("grantpt", "", master)
  call("unlockpt", "", master)
  const name = Buffer.alloc(64)
  const failed = native("ptsname_r")(master, name, name.length)
  if (failed !== 0) throw new SyscallError("ptsname_r", failed, "")
  return { master, slave: name.subarray(0, name.indexOf(0)).toString("latin1") }
}

/** Clone a mount as a detached tree, optionally with its owners mapped by a user namespace, and attach it. */
export const bindMapped = (source: string, target: string, usernsFd: number | undefined): void => {
  const OPEN_TREE_CLONE_CLOEXEC = 1 | 0o2000000
  const tree = raw(
    "open_tree",
    428,
    "int dirfd, const char *path, uint flags",
    AT_FDCWD,
    source,
    OPEN_TREE_CLONE_CLOEXEC,
  )
  try {
    if (usernsFd !== undefined) {
      const attributes = Buffer.alloc(32)
      attributes.writeBigUInt64LE(0x100000n, 0) // MOUNT_ATTR_IDMAP
      attributes.writeBigUInt64LE(BigInt(usernsFd), 24)
      raw(
        "mount_setattr",
        442,
        "int dirfd, const char *path, uint flags, const void *attributes, size_t size",
        tree,
        "",
        AT_EMPTY_PATH,
        attributes,
        32,
      )
    }
    raw(
      "move_mount",
      429,
      "int fromDir, const char *from, int toDir, const char *to, uint flags",
      tree,
      "",
      AT_FDCWD,
      target,
      4,
    )
  } finally {
    raw("close", process.arch === "arm64" ? 57 : 3, "int fd", tree)
  }
}
