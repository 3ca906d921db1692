/**
 * A slot: the call's own tmpfs with its layers, scratch and files. Its size is the call's disk limit.
 *
 * Guarantees: everything the call can write is on this tmpfs; unmounting it frees all of it.
 */
import { chmodSync, chownSync, mkdirSync, rmdirSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import type { SandboxProfile } from "../backend.ts"
import { MNT_DETACH, MS, mount, umount } from "../syscalls.ts"
import { type Identity, type Layer, openLayer, type OwnerMaps } from "./overlay.ts"

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
  /** The layers stop being mounted; their upper folders stay readable. */
  seal(): void
  /** Once; again does nothing. */
  dispose(): void
}

export interface SlotOptions {
  readonly at: string
  readonly workspace: string
  readonly profile: SandboxProfile
  readonly identity: Identity | undefined
  readonly owners: OwnerMaps
}

const inodesPerMegabyte = 256
const filesRoot = "/run/caisson/"

const writeFiles = (folder: string, files: Readonly<Record<string, Uint8Array>>): void => {
  for (const [path, content] of Object.entries(files)) {
    if (!path.startsWith(filesRoot) || path.includes(".."))
      throw new Error(`files are placed below ${filesRoot}, not at ${path}`)
    const target = join(folder, path.slice(filesRoot.length))
    mkdirSync(dirname(target), { recursive: true, mode: 0o755 })
    writeFileSync(target, content, { mode: 0o444 })
  }
}

export const openSlot = async ({ at, workspace, profile, identity, owners }: SlotOptions): Promise<Slot> => {
  mkdirSync(at, { mode: 0o755 })
  const bytes = profile.limits.diskBytes
  const inodes = Math.max(4096, Math.ceil((bytes / 1048576) * inodesPerMegabyte))
  mount("tmpfs", at, "tmpfs", MS.NOSUID | MS.NODEV | MS.NOEXEC, `size=${bytes},nr_inodes=${inodes},mode=0755`)
  const layers: Layer[] = []
  const seal = (): void => {
    for (const layer of layers.splice(0)) layer.unmount()
  }
  let disposed = false
  const dispose = (): void => {
    if (disposed) return
    disposed = true
    seal()
    umount(at, MNT_DETACH)
    rmdirSync(at)
  }
  try {
    const own = (name: string, mode: number): string => {
      const path = join(at, name)
      mkdirSync(path)
      chmodSync(path, mode)
      if (identity !== undefined) chownSync(path, identity.uid, identity.gid)
      return path
    }
    const layer = async (name: string, source: string): Promise<Layer> => {
      const folder = join(at, name)
      mkdirSync(folder, { mode: 0o755 })
      const made = await openLayer({ source, at: folder, sandbox: identity, owners })
      layers.push(made)
      return made
    }
    const workspaceLayer = await layer("w", workspace)
    const homeLayer = profile.home === undefined ? undefined : await layer("h", profile.home.dir)
    const files = Object.keys(profile.files).length > 0 ? join(at, "files") : undefined
    if (files !== undefined) {
      mkdirSync(files, { mode: 0o755 })
      writeFiles(files, profile.files)
    }
    return {
      workspace: workspaceLayer,
      home: homeLayer,
      paths: {
        workspace: workspaceLayer.merged,
        home: homeLayer?.merged ?? own("home", 0o700),
        tmp: own("tmp", 0o1777),
        shm: own("shm", 0o1777),
        ...(files === undefined ? {} : { files }),
      },
      seal,
      dispose,
    }
  } catch (error) {
    dispose()
    throw error
  }
}
