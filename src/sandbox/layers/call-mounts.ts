/**
 * A mounts: the call's own folder with its layers, its home and its scratch.
 *
 * Guarantees: everything the call can write is in this folder, on disk below the data folder, or in memory that the
 * call's own limit counts: `/dev/shm` always, the rest where the disk cannot hold layers. Nothing in it is executable, a
 * device or setuid in effect. Mount points lie in memory in any case, so that one unmounting takes all of them at once;
 * what is on disk is removed afterwards, when nobody waits for it.
 */
import { randomUUID } from "node:crypto"
import { chownSync, rmdirSync, rmSync } from "node:fs"
import { dirname, join } from "node:path"
import { makeFile, makeFolder, makeFolders } from "../exact-modes.ts"
import type { Job } from "../terms.ts"
import { MNT_DETACH, MS, mount, umount } from "../../linux/syscalls.ts"
import { budgetOf } from "./limits.ts"
import { diskOf, isScarce } from "./meter.ts"
import {
  type Identity,
  type Layer,
  type LayerFolders,
  LayerUnavailable,
  openLayer,
  openScratch,
  type OwnerMaps,
} from "./overlay.ts"
import { removeLater } from "./remove.ts"
import type { LayerPlace } from "./store.ts"

/** What the sandbox is shown, by the places it has inside. */
export interface LayerPaths {
  readonly workspace: string
  readonly home: string
  readonly tmp: string
  readonly shm: string
  readonly files?: string
}

export interface CallMounts {
  readonly workspace: Layer
  readonly home: Layer | undefined
  readonly paths: LayerPaths
  /** the folder that layers are written to */
  readonly store: string
  /** folders that hold what the call wrote, where they are on disk */
  readonly written: readonly string[]
  /** what it lies on */
  readonly medium: LayerPlace["kind"]
  /** The layers stop being mounted; their upper folders stay readable. */
  seal(): void
  /** Once; again does nothing. */
  dispose(): void
}

interface CallMountsOptions {
  /** a path that is free, in a folder of the caller's; where the mounts is mounted */
  readonly at: string
  readonly place: LayerPlace
  readonly workspace: string
  readonly job: Pick<Job, "home" | "files" | "limits">
  readonly memoryBytes: number
  readonly identity: Identity | undefined
  readonly owners: OwnerMaps
}

const filesRoot = "/run/caisson/"

const writeFiles = (folder: string, files: Readonly<Record<string, Uint8Array>>): void => {
  for (const [path, content] of Object.entries(files)) {
    if (!path.startsWith(filesRoot) || path.includes(".."))
      throw new Error(`files are placed below ${filesRoot}, not at ${path}`)
    const target = join(folder, path.slice(filesRoot.length))
    makeFolders(dirname(target))
    makeFile(target, content, 0o444)
  }
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

const closed = MS.NOSUID | MS.NODEV | MS.NOEXEC

/** Mount points that count as entries there. */
const OWN_ENTRIES = 16
const mountMemory = (at: string, { job, memoryBytes }: CallMountsOptions): void => {
  const { bytes, entries } = budgetOf(job.limits)
  const size = Math.min(bytes, memoryBytes)
  mount("tmpfs", at, "tmpfs", closed, `size=${size},nr_inodes=${entries + OWN_ENTRIES},mode=0755`)
}

interface Store {
  readonly folder: string
  remove(): void
}
/** Where a call's layers are written to. */
export const openStore = (at: string, place: LayerPlace): Store => {
  if (place.kind === "memory") return { folder: at, remove: () => undefined }
  const name = randomUUID()
  const folder = join(place.folder, name)
  makeFolder(folder)
  try {
    if (isScarce(diskOf(folder)))
      throw new LayerUnavailable(
        `the disk below ${place.folder} is nearly full`,
        "free disk space, or set CAISSON_DATA to a folder on another disk",
      )
  } catch (error) {
    removeLater(place.folder, name)
    throw error
  }
  return { folder, remove: () => removeLater(place.folder, name) }
}

export const openCallMounts = async (options: CallMountsOptions): Promise<CallMounts> => {
  const { at, place, workspace, job, identity, owners } = options
  const onDisk = place.kind === "disk"
  makeFolder(at)
  let store: Store
  try {
    mountMemory(at, options)
    store = openStore(at, place)
  } catch (error) {
    unmountQuietly(at)
    rmdirSync(at)
    throw error
  }
  // Placed by the host, so it counts for nothing and lies beside the mounts.
  const placed = `${at}.files`
  const layers: Pick<Layer, "unmount">[] = []
  let mounted = true
  const unmount = (): void => {
    if (mounted) umount(at, MNT_DETACH)
    mounted = false
  }
  const seal = (): void => {
    if (onDisk) unmount()
    else for (const layer of layers.splice(0)) layer.unmount()
  }
  let disposed = false
  const dispose = (): void => {
    if (disposed) return
    disposed = true
    unmount()
    rmdirSync(at)
    removePlaced(placed)
    store.remove()
  }
  try {
    const own = (name: string, mode: number): string => {
      const path = join(at, name)
      makeFolder(path, mode)
      if (identity !== undefined) chownSync(path, identity.uid, identity.gid)
      return path
    }
    const folders = (name: string): LayerFolders => {
      const made = { at: join(at, name), store: join(store.folder, name) }
      for (const folder of new Set(Object.values(made))) makeFolder(folder)
      return made
    }
    const layer = async (name: string, source: string): Promise<Layer> => {
      const made = await openLayer({ source, ...folders(name), sandbox: identity, owners })
      layers.push(made)
      return made
    }
    const scratchOnDisk = (): { readonly tmp: string; readonly home: string } => {
      const scratch = openScratch(folders("s"), identity, { tmp: 0o1777, home: 0o700 })
      return { tmp: join(scratch.merged, "tmp"), home: join(scratch.merged, "home") }
    }
    const workspaceLayer = await layer("w", workspace)
    const homeLayer = job.home === undefined ? undefined : await layer("h", job.home.dir)
    const files = Object.keys(job.files).length > 0 ? placed : undefined
    if (files !== undefined) {
      makeFolder(files)
      writeFiles(files, job.files)
    }
    const places = onDisk ? scratchOnDisk() : { tmp: own("tmp", 0o1777), home: own("home", 0o700) }
    const shm = own("shm", 0o1777)
    return {
      store: store.folder,
      medium: place.kind,
      workspace: workspaceLayer,
      home: homeLayer,
      paths: {
        workspace: workspaceLayer.merged,
        home: homeLayer?.merged ?? places.home,
        tmp: places.tmp,
        shm,
        ...(files === undefined ? {} : { files }),
      },
      written: [
        workspaceLayer.upper,
        ...(homeLayer === undefined ? [] : [homeLayer.upper]),
        join(store.folder, "s", "upper"),
      ],
      seal,
      dispose,
    }
  } catch (error) {
    dispose()
    throw error
  }
}
