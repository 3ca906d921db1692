/**
 * Mounts and namespaces. Namespace changes concern the calling thread alone.
 *
 * Guarantees: each call succeeds or throws a `SyscallError`.
 */
import { AT_EMPTY_PATH, AT_FDCWD } from "./files.ts"
import { call, callApart, raw } from "./libc.ts"

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
  /** the thread's own root, folder and file mask */
  FS: 0x200,
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

/** Beside the calling thread, in the mount namespace that this process began in. */
export const mountApart = async (
  source: string,
  target: string,
  type: string | null,
  flags: number,
  data: string | null,
): Promise<void> => {
  await callApart("mount", `${source} on ${target}`, source, target, type, flags, data)
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

/** A clone of what lies at a path, attached nowhere yet: a descriptor, which the caller closes. */
export const cloneTree = (source: string): number => {
  const OPEN_TREE_CLONE_CLOEXEC = 1 | 0o2000000
  return raw("open_tree", 428, "int dirfd, const char *path, uint flags", AT_FDCWD, source, OPEN_TREE_CLONE_CLOEXEC)
}

/** Attach a detached tree, once, in the mount namespace of the calling thread. */
export const attachTree = (tree: number, target: string): void => {
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
}

/** Clone a mount as a detached tree, optionally with its owners mapped by a user namespace, and attach it. */
export const bindMapped = (source: string, target: string, usernsFd: number | undefined): void => {
  const tree = cloneTree(source)
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
    attachTree(tree, target)
  } finally {
    raw("close", process.arch === "arm64" ? 57 : 3, "int fd", tree)
  }
}
