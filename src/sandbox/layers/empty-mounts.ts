/**
 * A call's own folder before there is a call: scratch and home in place, the workspace's layer laid out and not mounted.
 *
 * Guarantees: everything the call will be able to write is in this folder, on disk below the data folder, or in memory
 * that the call's own limit counts: `/dev/shm` always, the rest where the disk cannot hold layers. Nothing in it is
 * executable, a device or setuid in effect. Mount points lie in memory in any case, so that one unmounting takes all of
 * them at once; what is on disk is removed afterwards, when nobody waits for it. It holds nothing of any call.
 */
import { randomUUID } from "node:crypto"
import { chownSync, rmdirSync, rmSync } from "node:fs"
import { join } from "node:path"
import { makeFile, makeFolder } from "../exact-modes.ts"
import { MNT_DETACH, MS, mount, umount } from "../../linux/mounts.ts"
import { diskOf, isScarce } from "./meter.ts"
import {
  type Identity,
  type LayerFolders,
  type LayerParts,
  LayerUnavailable,
  makeParts,
  openScratchApart,
} from "./overlay.ts"
import { removeLater } from "./remove-later.ts"
import type { LayerPlace } from "./store.ts"

export const closed = MS.NOSUID | MS.NODEV | MS.NOEXEC

interface EmptyMountsOptions {
  /** a path that is free, in a folder of the caller's; where they are mounted */
  readonly at: string
  readonly place: LayerPlace
  /** as root: who the sandbox runs as */
  readonly identity: Identity | undefined
  /** what is mounted in it later appears in sandboxes that were made with its folders */
  readonly shared?: boolean
}

export interface EmptyMounts {
  readonly at: string
  readonly place: LayerPlace
  readonly identity: Identity | undefined
  /** the folder that layers are written to */
  readonly store: string
  /** an empty folder that the workspace goes on */
  readonly workspace: string
  /** an empty file in it that a terminal may go on: it is covered when the workspace appears */
  readonly terminal: string
  readonly home: string
  readonly tmp: string
  readonly shm: string
  /** beside the mounts: what the host places there counts for nothing */
  readonly files: string
  readonly workspaceParts: LayerParts
  /** Folders for one layer more. */
  parts(name: string): LayerParts
  /** All of it stops being mounted; what is on disk stays. */
  unmount(): void
  /** Once; again does nothing. */
  dispose(): void
}

interface Store {
  readonly folder: string
  remove(): void
}

export const refuseScarce = (folder: string, shown: string): void => {
  if (isScarce(diskOf(folder)))
    throw new LayerUnavailable(
      `the disk below ${shown} is nearly full`,
      "free disk space, or set CAISSON_DATA to a folder on another disk",
    )
}

/** Where a call's layers are written to. */
export const openStore = (at: string, place: LayerPlace): Store => {
  if (place.kind === "memory") return { folder: at, remove: () => undefined }
  const name = randomUUID()
  const folder = join(place.folder, name)
  makeFolder(folder)
  try {
    refuseScarce(folder, place.folder)
  } catch (error) {
    removeLater(place.folder, name)
    throw error
  }
  return { folder, remove: () => removeLater(place.folder, name) }
}

const unmountQuietly = (at: string): void => {
  try {
    umount(at, MNT_DETACH)
  } catch {
    // Not mounted.
  }
}
/** A backend may have made them read-only where they lie. */
const removePlaced = (placed: string): void => {
  unmountQuietly(placed)
  rmSync(placed, { recursive: true, force: true })
}

/** Mount points and folders are all that is in it until the call's own limit is set. */
const mountSmall = (at: string, shared: boolean): void => {
  mount("tmpfs", at, "tmpfs", closed, "size=64k,nr_inodes=64,mode=0755")
  if (shared) mount("none", at, null, MS.SHARED, null)
}

const scratch = async (
  at: string,
  folders: (name: string) => LayerFolders,
  { place, identity }: Pick<EmptyMountsOptions, "place" | "identity">,
): Promise<Pick<EmptyMounts, "tmp" | "home">> => {
  const modes = { tmp: 0o1777, home: 0o700 }
  if (place.kind === "disk") {
    const { merged } = await openScratchApart(folders("s"), identity, modes)
    return { tmp: join(merged, "tmp"), home: join(merged, "home") }
  }
  const own = (name: keyof typeof modes): string => ownFolder(join(at, name), modes[name], identity)
  return { tmp: own("tmp"), home: own("home") }
}

const ownFolder = (path: string, mode: number, identity: Identity | undefined): string => {
  makeFolder(path, mode)
  if (identity !== undefined) chownSync(path, identity.uid, identity.gid)
  return path
}

export const openEmptyMounts = async (options: EmptyMountsOptions): Promise<EmptyMounts> => {
  const { at, place, identity, shared = false } = options
  makeFolder(at)
  let store: Store
  try {
    mountSmall(at, shared)
    store = openStore(at, place)
  } catch (error) {
    unmountQuietly(at)
    rmdirSync(at)
    throw error
  }
  const files = `${at}.files`
  let mounted = true
  const unmount = (): void => {
    if (mounted) umount(at, MNT_DETACH)
    mounted = false
  }
  let disposed = false
  const dispose = (): void => {
    if (disposed) return
    disposed = true
    unmount()
    rmdirSync(at)
    removePlaced(files)
    store.remove()
  }
  const folders = (name: string): LayerFolders => {
    const made = { at: join(at, name), store: join(store.folder, name) }
    for (const folder of new Set(Object.values(made))) makeFolder(folder)
    return made
  }
  const parts = (name: string): LayerParts => makeParts(folders(name), identity)
  try {
    const workspace = join(at, "workspace")
    const terminal = join(workspace, "terminal")
    makeFolder(workspace)
    makeFile(terminal, "")
    makeFolder(files)
    return {
      at,
      place,
      identity,
      store: store.folder,
      workspace,
      ...(await scratch(at, folders, options)),
      shm: ownFolder(join(at, "shm"), 0o1777, identity),
      terminal,
      files,
      workspaceParts: parts("w"),
      parts,
      unmount,
      dispose,
    }
  } catch (error) {
    dispose()
    throw error
  }
}
