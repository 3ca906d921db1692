/**
 * The instant a call began, on the clock that its workspace's file system stamps changes with.
 *
 * Guarantees: whatever changed in the workspace before `beginSnapshot` returns and is not still changing carries a
 * change time below the baseline; whatever changes afterwards carries one at or above it. On kernels with coarse
 * stamps this waits for the next tick (a few milliseconds), so that fresh files are not taken for conflicts.
 * Assumes: the wall clock is not set back during the call. A workspace whose root takes no file lies on a local
 * file system. Leaves nothing in the workspace.
 */
import { closeSync, fchmodSync, fstatSync, openSync, constants } from "node:fs"
import { randomUUID } from "node:crypto"
import { tmpdir } from "node:os"
import type { OpenFolder } from "../../folder.ts"
import { openat2Beneath, unlinkat } from "../../../linux/files.ts"
import { errorCode, openRoot } from "../beneath.ts"

/** Plain data: it may cross process borders as JSON. */
export interface Baseline {
  readonly sinceNs: string
}

const O_TMPFILE = 0o20200000

const PAUSE = new Int32Array(new SharedArrayBuffer(4))

/** A file without a name on the folder's file system; a name is taken for an instant where there is no other way. */
export const openNameless = (dir: number): number => {
  try {
    return openSync(`/proc/self/fd/${dir}`, O_TMPFILE | constants.O_RDWR, 0o600)
  } catch (error) {
    if (!["EOPNOTSUPP", "ENOTSUP", "EISDIR", "EINVAL"].includes(errorCode(error))) throw error
    const name = `.caisson-tx-${randomUUID()}`
    const fd = openat2Beneath(dir, name, constants.O_RDWR | constants.O_CREAT | constants.O_EXCL, 0o600)
    unlinkat(dir, name)
    return fd
  }
}

export const beginSnapshot = (workspace: string | OpenFolder): Baseline => {
  const dir = openRoot(workspace)
  try {
    return takeSnapshot(dir)
  } finally {
    closeSync(dir)
  }
}

const takeSnapshot = (dir: number): Baseline => {
  let fd: number
  try {
    fd = openNameless(dir)
  } catch (error) {
    if (!["EACCES", "EROFS", "EPERM"].includes(errorCode(error))) throw error
    // The root takes no file; folders below may. Local file systems all stamp with the kernel's one clock, which a busy
    // or emulated machine may leave far behind the one that programs read.
    const elsewhere = openRoot(tmpdir())
    try {
      fd = openNameless(elsewhere)
    } finally {
      closeSync(elsewhere)
    }
  }
  try {
    const first = fstatSync(fd, { bigint: true }).ctimeNs
    for (;;) {
      fchmodSync(fd, 0o600)
      const now = fstatSync(fd, { bigint: true }).ctimeNs
      if (now > first) return { sinceNs: String(now) }
      Atomics.wait(PAUSE, 0, 0, 1)
    }
  } finally {
    closeSync(fd)
  }
}
