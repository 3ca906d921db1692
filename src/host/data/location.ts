/**
 * Where a folder lies, so that no second name hides that one folder is inside another.
 *
 * Guarantees: `isInside` holds for any path, link or bind mount by which either folder was reached: the folders above it
 * are compared by device and inode, and its place on its file system by what the kernel says of its mount.
 * Assumes: /proc is mounted.
 */
import { closeSync, constants, fstatSync, openSync, readFileSync } from "node:fs"
import { type OpenFolder, openFolder } from "../../sandbox/folder.ts"

export interface Location {
  /** `device:inode` of the folder and of all above it, itself first */
  readonly chain: readonly string[]
  /** device of its file system and path on it; undefined where the kernel does not say */
  readonly onDevice: { readonly device: string; readonly path: string } | undefined
}

const O_PATH = 0o10000000
/** A chain longer than any path that the kernel takes. */
const MAX_DEPTH = 4096

const chainOf = (folder: OpenFolder): string[] => {
  const chain: string[] = []
  let fd = openSync(`${folder.here}/.`, O_PATH | constants.O_DIRECTORY)
  try {
    while (chain.length < MAX_DEPTH) {
      const { dev, ino } = fstatSync(fd, { bigint: true })
      const name = `${dev}:${ino}`
      // The parent of the root is the root.
      if (name === chain.at(-1)) return chain
      chain.push(name)
      const up = openSync(`/proc/self/fd/${fd}/..`, O_PATH | constants.O_DIRECTORY)
      closeSync(fd)
      fd = up
    }
    return chain
  } finally {
    closeSync(fd)
  }
}

const unescape = (text: string): string =>
  text.replace(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)))

/** `text` is that of mountinfo, `mount` the id of a mount in it. */
export const placeOnDevice = (text: string, mount: string, path: string): Location["onDevice"] => {
  const start = text.startsWith(`${mount} `) ? 0 : text.indexOf(`\n${mount} `) + 1
  if (start === 0 && !text.startsWith(`${mount} `)) return undefined
  const [, , device, root, point] = text.slice(start).split(" ", 5).map(unescape)
  if (device === undefined || root === undefined || point === undefined) return undefined
  const rest =
    point === "/" ? path : path === point ? "" : path.startsWith(`${point}/`) ? path.slice(point.length) : undefined
  return rest === undefined
    ? undefined
    : { device, path: `${root === "/" ? "" : root}${rest === "/" ? "" : rest}` || "/" }
}

/** What the kernel says of all mounts now; for several questions of one look. */
export const mountsNow = (): string => readFileSync("/proc/self/mountinfo", "latin1")

const onDevice = (folder: OpenFolder, mounts: string): Location["onDevice"] => {
  const mount = /^mnt_id:\s*(\d+)$/m.exec(readFileSync(`/proc/self/fdinfo/${folder.fd}`, "latin1"))?.[1]
  if (mount === undefined) return undefined
  return placeOnDevice(mounts, mount, Buffer.from(folder.path).toString("latin1"))
}

export const locate = (folder: OpenFolder, mounts = mountsNow()): Location => ({
  chain: chainOf(folder),
  onDevice: onDevice(folder, mounts),
})

export const locatePath = (path: string, mounts?: string): Location => {
  using folder = openFolder(path)
  return locate(folder, mounts)
}

/** Path of `inner` below `outer` on the device that both are on, `` where they are one; undefined where it is not below. */
const belowOnDevice = (inner: Location["onDevice"], outer: Location["onDevice"]): string | undefined => {
  if (inner === undefined || outer === undefined || inner.device !== outer.device) return undefined
  if (inner.path === outer.path) return ""
  const prefix = outer.path === "/" ? "/" : `${outer.path}/`
  return inner.path.startsWith(prefix) ? inner.path.slice(prefix.length) : undefined
}

/** Is `inner` the folder `outer` or below it? */
export const isInside = (inner: Location, outer: Location): boolean =>
  inner.chain.includes(outer.chain[0] ?? "") || belowOnDevice(inner.onDevice, outer.onDevice) !== undefined

/** The names that lead from `outer` to `inner`, one byte a character; undefined where none do. */
export const namesBetween = (inner: Location, outer: Location): string | undefined =>
  belowOnDevice(inner.onDevice, outer.onDevice)
