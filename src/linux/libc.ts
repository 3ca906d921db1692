/**
 * libc's functions by their declarations, for the modules beside this one that give them names and types.
 *
 * Guarantees: what fails throws a `SyscallError` that carries the errno's name as `code`. Calls are synchronous and act on the
 * calling thread. Assumes: Linux on a libc that exports these symbols (glibc or musl). Loading is lazy, so that importing
 * this costs nothing and works anywhere.
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

export const errnoName = (errno: number): string => {
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

export const native = (name: Name): Native => foreign(name, (libc) => libc.func(declarations[name]))

/** `syscall(2)` for what libc has no wrapper for; every argument is passed as a long or a pointer. */
export const raw = (name: string, number: number, signature: string, ...args: unknown[]): number => {
  const fn = foreign(`syscall:${signature}`, (libc) => libc.func(`long syscall(long number, ${signature})`))
  return checked(name, fn(number, ...args))
}

/**
 * The same beside this thread, for what may wait for a disk. What failed there is done once more here: the reason is the
 * thread's that asked.
 */
export const callApart = (name: Name, detail: string, ...args: unknown[]): Promise<number> =>
  new Promise((resolve, reject) => {
    const apart = native(name) as unknown as { async(...args: unknown[]): void }
    apart.async(...args, (error: Error | null, result: number) => {
      try {
        resolve(error === null && result >= 0 ? result : call(name, detail, ...args))
      } catch (failure) {
        reject(failure as Error)
      }
    })
  })

export const call = (name: Name, detail: string, ...args: unknown[]): number =>
  checked(name, native(name)(...args), detail)
