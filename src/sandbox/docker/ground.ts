/**
 * The folder that this host's containers are given parts of: one shared tmpfs, so that what is mounted in it later
 * appears in containers that already run.
 *
 * Guarantees: everything below is in memory and goes with one unmount; grounds of hosts that died are swept by
 * name at start. Nothing here is visible to a container but what it was given.
 * Assumes: root, in the mount namespace that the engine sees.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync } from "node:fs"
import { join } from "node:path"
import { MNT_DETACH, MS, mount, umount } from "../syscalls.ts"
import { mountsBelow } from "../layers/overlay.ts"

export interface Ground {
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
const clear = (dir: string): void => {
  unmountBelow(dir)
  const isMounted = readFileSync("/proc/self/mountinfo", "utf8")
    .split("\n")
    .some((line) => line.split(" ")[4] === dir)
  if (isMounted) umount(dir, MNT_DETACH)
  rmdirSync(dir)
}

/** Hosts of this data folder that are no more; their mounts are gone when this returns. */
export const sweepGrounds = (parent: string): readonly string[] => {
  if (!existsSync(parent)) return []
  const dead = readdirSync(parent).filter((name) => HOST.test(name) && !hostLives(name))
  for (const name of dead) clear(join(parent, name))
  return dead
}

let opened = 0
const GROUND_BYTES = 64 * 1024 * 1024

export const openGround = (parent: string): Ground => {
  mkdirSync(parent, { recursive: true, mode: 0o700 })
  const host = `${process.pid}-${startTime(process.pid)}-${++opened}`
  const dir = join(parent, host)
  mkdirSync(dir, { mode: 0o711 })
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
      mkdirSync(path, { mode: 0o711 })
      return { name, path }
    },
    dispose() {
      if (disposed) return
      disposed = true
      clear(dir)
    },
  }
}
