/**
 * The folder that this host's containers are given parts of: one shared tmpfs, so that what is mounted in it later
 * appears in containers that already run.
 *
 * Guarantees: everything below is in memory and goes with one unmount; work folders of hosts that died are swept by
 * name at start, which tolerates whatever it finds and crosses no mount. Nothing here is visible to a container but what
 * it was given.
 * Assumes: root, in the mount namespace that the engine sees.
 */
import { closeSync, readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { makeFolder } from "../exact-modes.ts"
import { errorCode, openRoot } from "../effects/beneath.ts"
import { removeTree } from "../effects/commit/recovery/remove.ts"
import { fromBuffer } from "../effects/names.ts"
import { MNT_DETACH, MS, mount, umount } from "../../linux/mounts.ts"
import { mountsBelow } from "../layers/overlay.ts"

export interface WorkFolder {
  /** names this host in labels and paths: process id and start time */
  readonly host: string
  readonly dir: string
  /** a new numbered folder */
  fresh(): { readonly name: string; readonly path: string }
  dispose(): void
}

/** Start time of a process in clock ticks since boot, or undefined when it is gone or a zombie. */
export const startTime = (pid: number): string | undefined => {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "latin1")
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ")
    return fields[0] === "Z" || fields[0] === "X" ? undefined : fields[19]
  } catch {
    return undefined
  }
}
const HOST = /^(\d+)-(\d+)-(\d+)$/
/** Is the host of that name still there? Process ids are reused, start times with them are not. */
export const hostLives = (host: string): boolean => {
  const [, pid, started] = HOST.exec(host) ?? []
  return pid !== undefined && startTime(Number(pid)) === started
}

export const unmountBelow = (dir: string): void => {
  const points = mountsBelow(readFileSync("/proc/self/mountinfo", "utf8"), dir)
  for (const point of [...points].reverse()) {
    try {
      umount(point, MNT_DETACH)
    } catch {
      // Gone with one above it.
    }
  }
}
/** A work folder is a mount of ours, so all mounts below it are; without it, what is mounted there is somebody else's. */
const unmountWorkFolder = (dir: string): void => {
  const isMounted = readFileSync("/proc/self/mountinfo", "utf8")
    .split("\n")
    .some((line) => line.split(" ")[4] === dir)
  if (!isMounted) return
  unmountBelow(dir)
  umount(dir, MNT_DETACH)
}

/** Whatever a work folder left on disk goes, as far as no mount is in the way: what is mounted there is never looked into. */
const clear = (parent: string, name: string): boolean => {
  const root = openRoot(parent)
  try {
    unmountWorkFolder(join(parent, name))
    removeTree(root, fromBuffer(Buffer.from(name)))
    return true
  } catch {
    // Mounted in another namespace, or by somebody else. Tried again at the next start; in nobody's way meanwhile.
    return false
  } finally {
    closeSync(root)
  }
}

/** Hosts of this data folder that are no more and whose remains are gone when this returns. */
export const sweepWorkFolders = (parent: string): readonly string[] =>
  readdirSync(parent)
    .filter((name) => HOST.test(name) && !hostLives(name))
    .filter((name) => clear(parent, name))

let opened = 0
/** A name that is free: what a host of the same number left before a reboot may still be there. */
const makeOwn = (parent: string): string => {
  for (;;) {
    const host = `${process.pid}-${startTime(process.pid)}-${++opened}`
    try {
      makeFolder(join(parent, host), 0o711)
      return host
    } catch (error) {
      if (errorCode(error) !== "EEXIST") throw error
    }
  }
}

const GROUND_BYTES = 64 * 1024 * 1024

export const openWorkFolder = (parent: string): WorkFolder => {
  const host = makeOwn(parent)
  const dir = join(parent, host)
  mount("tmpfs", dir, "tmpfs", MS.NOSUID | MS.NODEV, `size=${GROUND_BYTES},mode=0711`)
  mount("none", dir, null, MS.SHARED, null)
  let count = 0
  let disposed = false
  return {
    host,
    dir,
    fresh() {
      const name = String(++count)
      const path = join(dir, name)
      makeFolder(path, 0o711)
      return { name, path }
    },
    dispose() {
      if (disposed) return
      disposed = true
      clear(parent, host)
    },
  }
}
