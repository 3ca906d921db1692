/**
 * A slot: the call's own folder with its layers, its home and its scratch.
 *
 * Guarantees: everything the call can write is in this folder, on disk below the data folder, or in memory that the
 * call's own limit counts: `/dev/shm` always, the rest where the disk cannot hold layers. Nothing in it is executable, a
 * device or setuid in effect. Disposing unmounts all of it at once and removes it from the disk afterwards.
 */
import { randomUUID } from "node:crypto"
import { chmodSync, chownSync, rmdirSync, rmSync } from "node:fs"
import { dirname, join } from "node:path"
import { makeFile, makeFolder, makeFolders } from "../exact-modes.ts"
import type { SandboxProfile } from "../backend.ts"
import { MNT_DETACH, MS, mount, umount } from "../syscalls.ts"
import { budgetOf } from "./limits.ts"
import { diskOf, isScarce } from "./meter.ts"
import { type Identity, type Layer, LayerUnavailable, openLayer, openScratch, type OwnerMaps } from "./overlay.ts"
import { removeEntry } from "./remove.ts"
import type { LayerPlace } from "./store.ts"

/** What the sandbox is shown, by the places it has inside. */
export interface LayerPaths {
  readonly workspace: string
  readonly home: string
  readonly tmp: string
  readonly shm: string
  readonly files?: string
}

export interface Slot {
  readonly workspace: Layer
  readonly home: Layer | undefined
  readonly paths: LayerPaths
  /** where it is mounted */
  readonly at: string
  /** folders that hold what the call wrote, where they are on disk */
  readonly written: readonly string[]
  /** what it lies on */
  readonly medium: LayerPlace["kind"]
  /** The layers stop being mounted; their upper folders stay readable. */
  seal(): void
  /** Once; again does nothing. */
  dispose(): void
}

export interface SlotOptions {
  /** a path that is free, in a folder of the caller's; where the slot is mounted */
  readonly at: string
  readonly place: LayerPlace
  readonly workspace: string
  readonly profile: SandboxProfile
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

/** A backend may have made them read-only where they lie. */
const removePlaced = (placed: string): void => {
  try {
    umount(placed, MNT_DETACH)
  } catch {
    // Not mounted.
  }
  rmSync(placed, { recursive: true, force: true })
}

const closed = MS.NOSUID | MS.NODEV | MS.NOEXEC

const mountMemory = (at: string, { limits }: SandboxProfile): void => {
  const { bytes, entries } = budgetOf(limits)
  const size = Math.min(bytes, limits.memoryBytes)
  mount("tmpfs", at, "tmpfs", closed, `size=${size},nr_inodes=${entries},mode=0755`)
}

/** Mount the slot's folder; answers the step that removes what it leaves. */
const mountSlot = (at: string, place: LayerPlace, profile: SandboxProfile): (() => void) => {
  if (place.kind === "memory") {
    mountMemory(at, profile)
    return () => undefined
  }
  const name = randomUUID()
  const folder = join(place.folder, name)
  makeFolder(folder)
  try {
    if (isScarce(diskOf(folder)))
      throw new LayerUnavailable(
        `the disk below ${place.folder} is nearly full`,
        "free disk space, or set CAISSON_DATA to a folder on another disk",
      )
    mount(folder, at, null, MS.BIND, null)
    mount("none", at, null, MS.BIND | MS.REMOUNT | closed, null)
  } catch (error) {
    void removeEntry(place.folder, name)
    throw error
  }
  return () => void removeEntry(place.folder, name)
}

export const openSlot = async ({ at, place, workspace, profile, identity, owners }: SlotOptions): Promise<Slot> => {
  makeFolder(at)
  let remove: () => void
  try {
    remove = mountSlot(at, place, profile)
  } catch (error) {
    rmdirSync(at)
    throw error
  }
  // Placed by the host, so it counts for nothing and lies beside the slot.
  const placed = `${at}.files`
  const layers: Pick<Layer, "unmount">[] = []
  const seal = (): void => {
    for (const layer of layers.splice(0)) layer.unmount()
  }
  let shared: string | undefined
  let disposed = false
  const dispose = (): void => {
    if (disposed) return
    disposed = true
    seal()
    if (shared !== undefined) umount(shared, MNT_DETACH)
    umount(at, MNT_DETACH)
    rmdirSync(at)
    removePlaced(placed)
    remove()
  }
  try {
    const own = (name: string, mode: number): string => {
      const path = join(at, name)
      makeFolder(path, mode)
      if (identity !== undefined) chownSync(path, identity.uid, identity.gid)
      return path
    }
    const layer = async (name: string, source: string): Promise<Layer> => {
      const folder = join(at, name)
      makeFolder(folder)
      const made = await openLayer({ source, at: folder, sandbox: identity, owners })
      layers.push(made)
      return made
    }
    const onDisk = (): { readonly tmp: string; readonly home: string } => {
      const folder = join(at, "s")
      makeFolder(folder)
      const scratch = openScratch(folder, identity, { tmp: 0o1777, home: 0o700 })
      layers.push(scratch)
      return { tmp: join(scratch.merged, "tmp"), home: join(scratch.merged, "home") }
    }
    const workspaceLayer = await layer("w", workspace)
    const homeLayer = profile.home === undefined ? undefined : await layer("h", profile.home.dir)
    const files = Object.keys(profile.files).length > 0 ? placed : undefined
    if (files !== undefined) {
      makeFolder(files)
      writeFiles(files, profile.files)
    }
    const places = place.kind === "disk" ? onDisk() : { tmp: own("tmp", 0o1777), home: own("home", 0o700) }
    const shm = own("shm", 0o1777)
    if (place.kind === "disk") {
      mountMemory(shm, profile)
      shared = shm
      chmodSync(shm, 0o1777)
      if (identity !== undefined) chownSync(shm, identity.uid, identity.gid)
    }
    return {
      at,
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
      written: [workspaceLayer.upper, ...(homeLayer === undefined ? [] : [homeLayer.upper]), join(at, "s", "upper")],
      seal,
      dispose,
    }
  } catch (error) {
    dispose()
    throw error
  }
}
