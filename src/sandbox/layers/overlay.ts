/**
 * A folder of the host under a writable layer that belongs to one call.
 *
 * Guarantees: the folder itself is never written through the layer; what the call changes is in `upper`; nothing
 * on the layer is executable, a device or setuid in effect. As root the folder's owner appears as the sandbox's
 * user, so that its private files work without the sandbox being root.
 * Assumes: mount rights in the calling process's mount namespace.
 */
import { type ChildProcess, spawn } from "node:child_process"
import {
  chmodSync,
  chownSync,
  closeSync,
  mkdirSync,
  openSync,
  readFileSync,
  readlinkSync,
  statSync,
  writeFileSync,
} from "node:fs"
import { once } from "node:events"
import { join } from "node:path"
import { bindMapped, MNT_DETACH, MS, mount, SyscallError, umount } from "../syscalls.ts"

export interface Identity {
  readonly uid: number
  readonly gid: number
}
export interface Layer {
  /** the real folder */
  readonly source: string
  readonly upper: string
  /** where the layer is seen as a whole, while mounted */
  readonly merged: string
  readonly xattrPrefix: "trusted" | "user"
  unmount(): void
}

/** Thrown when a folder cannot be layered; carries what to tell the caller. */
export class LayerUnavailable extends Error {
  readonly fix: string
  constructor(message: string, fix: string) {
    super(message)
    this.fix = fix
  }
}

/** Mount points strictly below a folder, from the text of /proc/self/mountinfo. */
export const mountsBelow = (mountinfo: string, folder: string): string[] => {
  const unescape = (text: string): string =>
    text.replace(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)))
  const prefix = folder === "/" ? "/" : `${folder}/`
  return mountinfo
    .split("\n")
    .map((line) => unescape(line.split(" ")[4] ?? ""))
    .filter((point) => point !== folder && point.startsWith(prefix))
}

const identityMap = (from: number, to: number): string => {
  const top = 0xfffffffe
  const [low, high] = from < to ? [from, to] : [to, from]
  const rows: (readonly [number, number, number])[] = [
    [from, to, 1],
    [0, 0, low],
    [low + 1, low + 1, high - low - 1],
    [high + 1, high + 1, top - high],
  ]
  return rows
    .filter(([, , count]) => count > 0)
    .map((row) => row.join(" "))
    .join("\n")
}

/** User namespaces that map a folder's owner to the sandbox's user, one per owner, kept for the process's life. */
export class OwnerMaps {
  readonly #made = new Map<string, Promise<number>>()
  get(owner: Identity, sandbox: Identity): Promise<number> {
    const key = `${owner.uid}:${owner.gid}`
    let made = this.#made.get(key)
    if (made === undefined) {
      made = makeOwnerMap(owner, sandbox)
      this.#made.set(key, made)
    }
    return made
  }
  async dispose(): Promise<void> {
    for (const made of this.#made.values()) closeSync(await made)
    this.#made.clear()
  }
}

const makeOwnerMap = async (owner: Identity, sandbox: Identity): Promise<number> => {
  const holder: ChildProcess = spawn("/usr/bin/unshare", ["--user", "/bin/cat"], {
    stdio: ["pipe", "pipe", "ignore"],
    env: {},
  })
  try {
    const pid = holder.pid
    if (pid === undefined) throw new LayerUnavailable("unshare(1) could not be started", "install util-linux")
    // cat answers only after unshare has entered the new namespace and become it.
    holder.stdin?.write("\n")
    await once(holder.stdout as NodeJS.ReadableStream, "data")
    if (readlinkSync(`/proc/${pid}/ns/user`) === readlinkSync("/proc/self/ns/user"))
      throw new LayerUnavailable("no user namespace could be made", "see `caisson doctor`")
    writeFileSync(`/proc/${pid}/uid_map`, identityMap(owner.uid, sandbox.uid))
    writeFileSync(`/proc/${pid}/gid_map`, identityMap(owner.gid, sandbox.gid))
    return openSync(`/proc/${pid}/ns/user`, "r")
  } finally {
    holder.kill("SIGKILL")
  }
}

export interface LayerOptions {
  readonly source: string
  /** an empty folder on the call's own tmpfs */
  readonly at: string
  /** as root: who the sandbox runs as; else the layer is mounted with user xattrs */
  readonly sandbox: Identity | undefined
  readonly owners: OwnerMaps
}

export const openLayer = async ({ source, at, sandbox, owners }: LayerOptions): Promise<Layer> => {
  const below = mountsBelow(readFileSync("/proc/self/mountinfo", "utf8"), source)
  if (below.length > 0) {
    throw new LayerUnavailable(
      `other filesystems are mounted below the workspace: ${below.slice(0, 3).join(", ")}`,
      "unmount them, or choose a workspace without mounts in it",
    )
  }
  const stat = statSync(source)
  const [lower, upper, work, merged] = ["lower", "upper", "work", "merged"].map((name) => join(at, name)) as [
    string,
    string,
    string,
    string,
  ]
  for (const folder of [lower, upper, work, merged]) mkdirSync(folder, { mode: 0o755 })
  const map = sandbox === undefined || stat.uid === sandbox.uid ? undefined : await owners.get(stat, sandbox)
  try {
    bindMapped(source, lower, map)
  } catch (error) {
    if (!(error instanceof SyscallError)) throw error
    const why =
      map === undefined
        ? "the folder cannot be shown to the sandbox"
        : "the filesystem of the workspace cannot map owners (idmapped mounts)"
    throw new LayerUnavailable(
      `${why}: ${error.message}`,
      "use a workspace on ext4, xfs, btrfs or tmpfs with Linux 5.12 or newer, or run as the workspace's owner instead of root",
    )
  }
  if (sandbox !== undefined) chownSync(upper, sandbox.uid, sandbox.gid)
  chmodSync(upper, stat.mode & 0o777)
  const options = [
    `lowerdir=${lower}`,
    `upperdir=${upper}`,
    `workdir=${work}`,
    "redirect_dir=nofollow",
    "metacopy=off",
    "index=off",
    ...(sandbox === undefined ? ["userxattr"] : []),
  ]
  try {
    mount("overlay", merged, "overlay", MS.NOSUID | MS.NODEV | MS.NOEXEC, options.join(","))
  } catch (error) {
    umount(lower, MNT_DETACH)
    if (!(error instanceof SyscallError)) throw error
    throw new LayerUnavailable(
      `overlayfs refused the workspace: ${error.message}`,
      "use a workspace on an ordinary filesystem (not overlayfs, fuse or a network mount) and a kernel with overlayfs",
    )
  }
  let mounted = true
  return {
    source,
    upper,
    merged,
    xattrPrefix: sandbox === undefined ? "user" : "trusted",
    unmount() {
      if (!mounted) return
      mounted = false
      umount(merged, MNT_DETACH)
      umount(lower, MNT_DETACH)
    },
  }
}
