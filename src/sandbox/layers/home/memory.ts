/**
 * A home in memory alone: filled from what was kept, written to by one call, read when its writers are gone.
 *
 * Guarantees: it lies on a file system of its own in the caller's private mounts, which ends with them, however they end,
 * and of which no disk holds anything; where the kernel knows how, nor does swap. It is as large as the call may write, and
 * no larger than its memory. Nothing in it is executable, a device or setuid in effect.
 * Assumes: `read` is called when every process that could write to it is gone.
 */
import {
  chmodSync,
  chownSync,
  closeSync,
  lchownSync,
  mkdirSync,
  type PathLike,
  statfsSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs"
import { SyscallError } from "../../../linux/libc.ts"
import { MNT_DETACH, MS, mount, umount } from "../../../linux/mounts.ts"
import { errorCode, openRoot } from "../../effects/beneath.ts"
import { below, displayName, parseName, toBuffer } from "../../effects/names.ts"
import { makeFolder } from "../../exact-modes.ts"
import type { WriteSet } from "../../effects/types.ts"
import { FULL_BELOW } from "../limits.ts"
import { type Identity, LayerUnavailable } from "../overlay.ts"
import type { HomeAfter, HomeContent } from "../../home.ts"
import { homeChanges, isWhole } from "./content.ts"
import { readHome, seeHome } from "./read.ts"

export interface MemoryHome {
  readonly at: string
  readonly dev: bigint
  /** Is anything that is kept another than at first? Yes, too, where that cannot be told. */
  written(): Promise<boolean>
  /** so little is left that a program which fails has failed for it */
  isFull(): boolean
  read(): Promise<{ readonly after: HomeAfter; readonly changes: WriteSet }>
  unmount(): void
}

interface MemoryHomeOptions {
  /** a path that is free, in the call's own mounts */
  readonly at: string
  readonly content: HomeContent
  readonly keeps: (path: string) => boolean
  readonly identity: Identity | undefined
  readonly bytes: number
  readonly entries: number
}

const FLAGS = MS.NOSUID | MS.NODEV | MS.NOEXEC

const mountTmpfs = (at: string, size: string): void => {
  try {
    mount("tmpfs", at, "tmpfs", FLAGS, `${size},noswap`)
  } catch (error) {
    // Kernels before 6.4 do not know the word, and others give it to the machine's own root alone.
    if (!(error instanceof SyscallError) || error.code !== "EINVAL") throw error
    mount("tmpfs", at, "tmpfs", FLAGS, size)
  }
}

const fill = (at: string, content: HomeContent, identity: Identity | undefined): void => {
  const own = (path: PathLike): void => {
    if (identity !== undefined) lchownSync(path, identity.uid, identity.gid)
  }
  const place = (path: string): Buffer => below(at, parseName(path))
  for (const entry of content) {
    const path = place(entry.path)
    if (entry.kind === "folder") mkdirSync(path, { mode: 0o700 })
    else if (entry.kind === "link") symlinkSync(toBuffer(parseName(entry.target)), path)
    else {
      writeFileSync(path, entry.content, { mode: 0o600, flag: "wx" })
      utimesSync(path, entry.mtimeMs / 1000, entry.mtimeMs / 1000)
      chmodSync(path, entry.mode)
    }
    own(path)
  }
  // Modes of folders last: they may shut what is still to be filled.
  for (const entry of [...content].reverse()) if (entry.kind === "folder") chmodSync(place(entry.path), entry.mode)
}

/** What `stat` tells of each path that is kept. */
const printOf = async (at: string, keeps: (path: string) => boolean): Promise<string> => {
  const root = openRoot(at)
  try {
    const rows = (await seeHome(root)).flatMap(({ path, stats }) => {
      const name = displayName(path)
      if (!keeps(name)) return []
      const { ino, mode, size, mtimeNs, ctimeNs } = stats
      return [[name, ino, mode, ...(stats.isDirectory() ? [] : [size, mtimeNs, ctimeNs])].join("\0")]
    })
    return rows.sort().join("\n")
  } finally {
    closeSync(root)
  }
}

export const openMemoryHome = async (options: MemoryHomeOptions): Promise<MemoryHome> => {
  const { at, content, keeps, identity, bytes, entries } = options
  if (!isWhole(content)) throw new Error("what a home held is no tree")
  makeFolder(at)
  mountTmpfs(at, `size=${bytes},nr_inodes=${entries},mode=0700`)
  const unmount = (): void => umount(at, MNT_DETACH)
  try {
    if (identity !== undefined) chownSync(at, identity.uid, identity.gid)
    fill(at, content, identity)
    const print = await printOf(at, keeps)
    return {
      at,
      dev: statSync(at, { bigint: true }).dev,
      written: async () => {
        try {
          return (await printOf(at, keeps)) !== print
        } catch {
          return true
        }
      },
      isFull() {
        const { bavail, bsize, ffree } = statfsSync(at)
        return bavail * bsize < FULL_BELOW.bytes || ffree < FULL_BELOW.entries
      },
      async read() {
        const after = await readHome(at, keeps)
        // What cannot be kept was changed: nobody has to tell in what.
        const changes: WriteSet = after.ok
          ? homeChanges(content, after.content, keeps)
          : { effects: [{ kind: "modify", path: "." }], bytes: 0 }
        return { after, changes }
      },
      unmount,
    }
  } catch (error) {
    unmount()
    if (errorCode(error) !== "ENOSPC") throw error
    throw new LayerUnavailable(
      "what the driver keeps in its home does not fit what this call may write",
      "raise the call's `memory` or disk limit, or let the driver keep less",
    )
  }
}
