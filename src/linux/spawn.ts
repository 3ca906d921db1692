/**
 * Start a program without a copy of this process: Node's own way copies its tables of memory each time, which costs
 * milliseconds of this thread and more for every page that it touches afterwards.
 *
 * Guarantees: the program has the given descriptors as 0, 1, 2 … and no other (all of this process's own close on
 * exec), no environment, default signals; it starts in the namespaces and the folder of the calling thread.
 * Does not: wait for its end, which is the caller's to reap.
 */
import { checked, foreign, SyscallError } from "./libc.ts"

type Native = ReturnType<typeof foreign>
const libc = (name: string, declaration: string): Native => foreign(name, (library) => library.func(declaration))

/** Room for the C library's own structures, which are smaller in glibc and musl alike. */
const STRUCTURE = 1024
const POSIX_SPAWN_SETSIGDEF = 0x04
const POSIX_SPAWN_SETSIGMASK = 0x08
const SIGNAL_SET = 128

const succeeded = (what: string, error: number): void => {
  if (error !== 0) throw new SyscallError(what, error, "")
}

const F_DUPFD_CLOEXEC = 1030
/** The same descriptor by a number that none of the program's will take. */
const moved = (fd: number, above: number): number =>
  checked("fcntl", libc("fcntl:int", "int fcntl(int fd, int command, int argument)")(fd, F_DUPFD_CLOEXEC, above))

const attributes = (): Buffer => {
  const made = Buffer.alloc(STRUCTURE)
  const init = libc("posix_spawnattr_init", "int posix_spawnattr_init(_Inout_ void *attributes)")
  succeeded("posix_spawnattr_init", init(made))
  const every = Buffer.alloc(SIGNAL_SET, 0xff)
  const none = Buffer.alloc(SIGNAL_SET)
  const set = "(_Inout_ void *attributes, const void *signals)"
  const setDefault = libc("posix_spawnattr_setsigdefault", `int posix_spawnattr_setsigdefault${set}`)
  succeeded("posix_spawnattr_setsigdefault", setDefault(made, every))
  succeeded(
    "posix_spawnattr_setsigmask",
    libc("posix_spawnattr_setsigmask", `int posix_spawnattr_setsigmask${set}`)(made, none),
  )
  const setFlags = libc(
    "posix_spawnattr_setflags",
    "int posix_spawnattr_setflags(_Inout_ void *attributes, short flags)",
  )
  succeeded("posix_spawnattr_setflags", setFlags(made, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK))
  return made
}

/** The number of the new process. `descriptors` stay the caller's. */
export const spawnProgram = (argv: readonly [string, ...string[]], descriptors: readonly number[]): number => {
  const actions = Buffer.alloc(STRUCTURE)
  const init = libc("posix_spawn_file_actions_init", "int posix_spawn_file_actions_init(_Inout_ void *actions)")
  const add = libc(
    "posix_spawn_file_actions_adddup2",
    "int posix_spawn_file_actions_adddup2(_Inout_ void *actions, int fd, int as)",
  )
  const destroy = libc(
    "posix_spawn_file_actions_destroy",
    "int posix_spawn_file_actions_destroy(_Inout_ void *actions)",
  )
  const start = libc(
    "posix_spawn",
    "int posix_spawn(_Out_ int *pid, const char *path, const void *actions, const void *attributes, const char **argv, const char **envp)",
  )
  const close = libc("close", "int close(int fd)")
  const own: number[] = []
  succeeded("posix_spawn_file_actions_init", init(actions))
  try {
    for (const [as, fd] of descriptors.entries()) {
      const source = fd < descriptors.length ? moved(fd, descriptors.length) : fd
      if (source !== fd) own.push(source)
      succeeded("posix_spawn_file_actions_adddup2", add(actions, source, as))
    }
    const pid = [0]
    succeeded("posix_spawn", start(pid, argv[0], actions, attributes(), [...argv, null], [null]))
    return pid[0] as number
  } finally {
    destroy(actions)
    for (const fd of own) close(fd)
  }
}
