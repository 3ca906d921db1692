/**
 * Access to a tree by folder descriptors, so that no symlink planted in it is ever followed.
 *
 * Guarantees: every path is resolved below the root's descriptor with RESOLVE_BENEATH and without symlinks, magic
 * links or mount crossings; names handed out through `entry` have a single component below such a descriptor.
 * Assumes: /proc is mounted. Descriptors belong to the caller of `openDir` and `openFile`, or to `withDir`.
 */
import { closeSync, constants, fstatSync, lstatSync, openSync, readdirSync, type BigIntStats } from "node:fs"
import type { OpenFolder } from "../folder.ts"
import { openat2Beneath } from "../../linux/files.ts"
import { below, fromBuffer, toNative, type BytePath } from "./names.ts"

const O_PATH = 0o10000000
const DOT = "." as BytePath

export const openRoot = (dir: string | OpenFolder): number =>
  typeof dir === "string"
    ? openSync(dir, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW)
    : openat2Beneath(dir.fd, DOT, constants.O_RDONLY | constants.O_DIRECTORY)

export const openDir = (root: number, path: BytePath): number =>
  openat2Beneath(root, toNative(path === "" ? DOT : path), O_PATH | constants.O_DIRECTORY)

/** Open a regular file for reading; throws `EINVAL` for anything else. Never blocks on a fifo. */
export const openFile = (root: number, path: BytePath): number => {
  const fd = openat2Beneath(root, toNative(path), constants.O_RDONLY | constants.O_NONBLOCK)
  if (fstatSync(fd).isFile()) return fd
  closeSync(fd)
  throw Object.assign(new Error("EINVAL: not a regular file"), { code: "EINVAL" })
}

export const withDir = <T>(root: number, path: BytePath, use: (dir: number) => T): T => {
  const dir = openDir(root, path)
  try {
    return use(dir)
  } finally {
    closeSync(dir)
  }
}

/** A path to one name below a folder descriptor, for calls that take paths and do not follow the last component. */
export const entry = (dir: number, name: BytePath): Buffer => below(`/proc/self/fd/${dir}`, name)

export const namesIn = (dir: number): BytePath[] =>
  readdirSync(`/proc/self/fd/${dir}`, { encoding: "buffer" }).map(fromBuffer).sort()

export const lstatIn = (dir: number, name: BytePath): BigIntStats | undefined =>
  lstatSync(entry(dir, name), { bigint: true, throwIfNoEntry: false })

export const errorCode = (error: unknown): string =>
  error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : ""
