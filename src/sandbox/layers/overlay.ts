/**
 * A folder of the host under a writable layer that belongs to one call.
 *
 * Guarantees: the folder itself is never written through the layer; what the call changes is in `upper`; nothing
 * on the layer is executable, a device or setuid in effect. As root the folder's owner appears as the sandbox's
 * user, so that its private files work without the sandbox being root.
 * Assumes: mount rights in the calling process's mount namespace.
 */
import { chownSync, readFileSync, realpathSync, statSync } from "node:fs"
import { join } from "node:path"
import { makeFolder, setMode } from "../exact-modes.ts"
import { type Identity, LayerUnavailable, type OwnerMaps } from "./owner-maps.ts"
import { mountOverlay, mountOverlayApart } from "./mount-overlay.ts"
import { SyscallError } from "../../linux/libc.ts"
import { bindMapped, MNT_DETACH, MS, umount } from "../../linux/mounts.ts"

export { type Identity, LayerUnavailable, OwnerMaps } from "./owner-maps.ts"

export interface Layer {
  /** the real folder, by a path that leads to it in this process */
  readonly source: string
  readonly upper: string
  /** where the layer is seen as a whole, while mounted */
  readonly merged: string
  readonly xattrPrefix: "trusted" | "user"
  unmount(): void
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

/** Two empty folders of the call's own, which may be one. */
export interface LayerFolders {
  /** for mount points, which nothing is written to */
  readonly at: string
  /** for what is written */
  readonly store: string
}
/** Those of one layer, made before what it lies over is known. */
export interface LayerParts extends LayerFolders {
  readonly lower: string
  readonly merged: string
  readonly upper: string
  readonly work: string
}
interface LayerOptions {
  readonly source: string
  readonly parts: LayerParts
  /** as root: who the sandbox runs as; else the layer is mounted with user xattrs */
  readonly sandbox: Identity | undefined
  readonly owners: OwnerMaps
  /** mount beside this thread: others wait for it */
  readonly apart: boolean
}

/** Nobody waits for a layer to be durable: what is kept of it is copied and synced by the commit. */
const layerOptions =
  (sandbox: Identity | undefined, ...more: readonly string[]) =>
  (points: string, written: string): readonly string[] => [
    `lowerdir=${points}/lower`,
    `upperdir=${written}/upper`,
    `workdir=${written}/work`,
    "redirect_dir=nofollow",
    "metacopy=off",
    "index=off",
    ...(sandbox === undefined ? ["userxattr"] : []),
    ...more,
  ]
const layerFlags = MS.NOSUID | MS.NODEV | MS.NOEXEC
/** Kernels before 5.10 do not know the word `volatile`. */
const isUnknownOption = (error: unknown): boolean => error instanceof SyscallError && error.code === "EINVAL"

const mountLayer = ({ at, store }: LayerFolders, merged: string, sandbox: Identity | undefined): void => {
  const lay = (...more: readonly string[]): void =>
    mountOverlay([at, store] as const, merged, layerFlags, layerOptions(sandbox, ...more))
  try {
    lay("volatile")
  } catch (error) {
    if (!isUnknownOption(error)) throw error
    lay()
  }
}
/** The same beside this thread: it makes folders on a disk that others keep busy. */
const mountLayerApart = async (
  { at, store }: LayerFolders,
  merged: string,
  sandbox: Identity | undefined,
): Promise<void> => {
  const lay = (...more: readonly string[]): Promise<void> =>
    mountOverlayApart([at, store] as const, merged, layerFlags, layerOptions(sandbox, ...more))
  try {
    await lay("volatile")
  } catch (error) {
    if (!isUnknownOption(error)) throw error
    await lay()
  }
}

export const makeParts = ({ at, store }: LayerFolders, sandbox: Identity | undefined): LayerParts => {
  const parts = {
    lower: join(at, "lower"),
    merged: join(at, "merged"),
    upper: join(store, "upper"),
    work: join(store, "work"),
  }
  for (const folder of Object.values(parts)) makeFolder(folder)
  if (sandbox !== undefined) chownSync(parts.upper, sandbox.uid, sandbox.gid)
  return { at, store, ...parts }
}

/** Folders of a layer over nothing, for what the call alone has. */
const scratchParts = (
  own: LayerFolders,
  sandbox: Identity | undefined,
  folders: Readonly<Record<string, number>>,
): LayerParts => {
  const parts = makeParts(own, undefined)
  for (const [name, mode] of Object.entries(folders)) {
    makeFolder(join(parts.upper, name), mode)
    if (sandbox !== undefined) chownSync(join(parts.upper, name), sandbox.uid, sandbox.gid)
  }
  return parts
}

/** A layer over nothing. Where it lies cannot be told from inside, as a bind would. */
export const openScratch = (
  own: LayerFolders,
  sandbox: Identity | undefined,
  folders: Readonly<Record<string, number>>,
) => {
  const { upper, merged } = scratchParts(own, sandbox, folders)
  mountLayer(own, merged, sandbox)
  return { upper, merged, unmount: () => umount(merged, MNT_DETACH) }
}
export const openScratchApart = async (
  own: LayerFolders,
  sandbox: Identity | undefined,
  folders: Readonly<Record<string, number>>,
): Promise<{ readonly merged: string }> => {
  const { merged } = scratchParts(own, sandbox, folders)
  await mountLayerApart(own, merged, sandbox)
  return { merged }
}

export const openLayer = async ({ source, parts, sandbox, owners, apart }: LayerOptions): Promise<Layer> => {
  const below = mountsBelow(readFileSync("/proc/self/mountinfo", "utf8"), realpathSync.native(source))
  if (below.length > 0) {
    throw new LayerUnavailable(
      `other filesystems are mounted below the workspace: ${below.slice(0, 3).join(", ")}`,
      "unmount them, or choose a workspace without mounts in it",
    )
  }
  const stat = statSync(source)
  const { lower, upper, merged } = parts
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
  setMode(upper, stat.mode & 0o777)
  try {
    if (apart) await mountLayerApart(parts, merged, sandbox)
    else mountLayer(parts, merged, sandbox)
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
