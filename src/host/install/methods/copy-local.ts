/**
 * A folder that comes with a driver, copied so that it can be frozen: what ran is then named by its content.
 *
 * Guarantees: the copy holds what the folder held, bounded; no link is followed, and no file that is not a plain one is
 * opened. Assumes: what lies there is the driver's; a change while it is copied may be in the copy or not.
 */
import { closeSync, constants, copyFileSync, fstatSync, mkdirSync, openSync, readlinkSync, symlinkSync } from "node:fs"
import { join } from "node:path"
import { setImmediate as breath } from "node:timers/promises"
import { type Entry, NotALayer } from "../listing.ts"

const SLICE = 64

const copyOne = (from: string, to: string, { path, kind, executable }: Entry): void => {
  if (kind === "folder") {
    mkdirSync(to, { recursive: true, mode: 0o755 })
    return
  }
  if (kind === "link") {
    symlinkSync(readlinkSync(from), to)
    return
  }
  const fd = openSync(from, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
  try {
    if (!fstatSync(fd).isFile()) throw new NotALayer(`${path} was replaced while it was copied`)
    closeSync(openSync(to, "wx", executable ? 0o755 : 0o644))
    copyFileSync(`/proc/self/fd/${fd}`, to, constants.COPYFILE_FICLONE)
  } finally {
    closeSync(fd)
  }
}

export const copyLocal = async (
  source: string,
  target: string,
  entries: readonly Entry[],
  signal: AbortSignal,
): Promise<void> => {
  let copied = 0
  for (const entry of entries) {
    copyOne(join(source, entry.path), join(target, entry.path), entry)
    copied += 1
    if (copied % SLICE === 0) {
      await breath()
      signal.throwIfAborted()
    }
  }
}
