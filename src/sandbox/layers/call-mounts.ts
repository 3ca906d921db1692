/**
 * A call's mounts: its own folder, made empty before, with the layers of its workspace and home, and its files.
 *
 * Guarantees: the folder is as large as the call's limits say before anything of the call is in it; what a sandbox was
 * made with shows the workspace and the home once they `appear`, as they are then, and not before.
 */
import { dirname, join } from "node:path"
import { makeFile, makeFolders } from "../exact-modes.ts"
import type { Job } from "../terms.ts"
import { MNT_DETACH, MS, mount, umount } from "../../linux/mounts.ts"
import { closed, type EmptyMounts, refuseScarce } from "./empty-mounts.ts"
import { budgetOf } from "./limits.ts"
import { type MemoryHome, openMemoryHome } from "./home/memory.ts"
import { type Layer, type LayerParts, openLayer, type OwnerMaps } from "./overlay.ts"
import type { LayerPlace } from "./store.ts"
import { globFilter } from "./view/view.ts"

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
  /** of a home that lies in a folder */
  readonly home: Layer | undefined
  /** of one that is in memory alone */
  readonly memoryHome: MemoryHome | undefined
  readonly paths: LayerPaths
  /** the folder that layers are written to */
  readonly store: string
  /** folders that hold what the call wrote, where they are on disk */
  readonly written: readonly string[]
  /** what it lies on */
  readonly medium: LayerPlace["kind"]
  /**
   * Show workspace and home on the empty folders that a sandbox was made with, with all that lies over them; `files`: so
   * does /tmp where files were laid there, since what was mounted shows as it was at first, not as it was made then.
   */
  appear(files: boolean): void
  /** The layers stop being mounted; their upper folders stay readable. */
  seal(): void
  /** Once; again does nothing. */
  dispose(): void
}

interface CallMountsOptions {
  /** the call's from now on */
  readonly empty: EmptyMounts
  readonly workspace: string
  readonly job: Pick<Job, "home" | "files" | "limits" | "startsScratch">
  readonly memoryBytes: number
  readonly owners: OwnerMaps
  /** other calls would wait for a disk that takes its time */
  readonly apart: boolean
}

const filesRoot = "/run/caisson/"

export const writeFiles = (folder: string, files: Readonly<Record<string, string | Uint8Array>>): void => {
  for (const [path, content] of Object.entries(files)) {
    if (!path.startsWith(filesRoot) || path.includes(".."))
      throw new Error(`files are placed below ${filesRoot}, not at ${path}`)
    const target = join(folder, path.slice(filesRoot.length))
    makeFolders(dirname(target))
    makeFile(target, content, 0o444)
  }
}

/** Mount points and folders that count as entries there. */
const OWN_ENTRIES = 24
const sizeMemory = ({ empty, job, memoryBytes }: CallMountsOptions): void => {
  const { bytes, entries } = budgetOf(job.limits)
  const size = Math.min(bytes, memoryBytes)
  mount("tmpfs", empty.at, null, MS.REMOUNT | closed, `size=${size},nr_inodes=${entries + OWN_ENTRIES}`)
}

type InMemory = Extract<NonNullable<Job["home"]>, { readonly content: unknown }>
const homeInMemory = (
  { empty, job, memoryBytes }: CallMountsOptions,
  { content, keep }: InMemory,
): Promise<MemoryHome> => {
  const { bytes, entries } = budgetOf(job.limits)
  const { at, identity } = empty
  const keeps = globFilter(keep)
  return openMemoryHome({
    at: join(at, "m"),
    content,
    keeps,
    identity,
    bytes: Math.min(bytes, memoryBytes),
    entries: entries + OWN_ENTRIES,
  })
}

/** Lay a folder over itself from which, unlike from the rest of the call's, programs may be started. */
const openForPrograms = (folder: string): void => {
  mount(folder, folder, null, MS.BIND, null)
  mount("none", folder, null, MS.BIND | MS.REMOUNT | (closed & ~MS.NOEXEC), null)
}

export const openCallMounts = async (options: CallMountsOptions): Promise<CallMounts> => {
  const { empty, workspace, job, owners, apart } = options
  const { place, identity, dispose } = empty
  const layers: Pick<Layer, "unmount">[] = []
  const layer = async (parts: LayerParts, source: string): Promise<Layer> => {
    const made = await openLayer({ source, parts, sandbox: identity, owners, apart })
    layers.push(made)
    return made
  }
  const show = (merged: string, at: string): void => {
    mount(merged, at, null, MS.BIND | MS.REC, null)
    layers.push({ unmount: () => umount(at, MNT_DETACH) })
  }
  try {
    sizeMemory(options)
    if (place.kind === "disk") refuseScarce(empty.store, place.folder)
    const workspaceLayer = await layer(empty.workspaceParts, workspace)
    const { home } = job
    const homeLayer = home !== undefined && "dir" in home ? await layer(empty.parts("h"), home.dir) : undefined
    const memoryHome = home !== undefined && "content" in home ? await homeInMemory(options, home) : undefined
    if (memoryHome !== undefined) layers.push(memoryHome)
    const files = Object.keys(job.files).length > 0 ? empty.files : undefined
    if (files !== undefined) writeFiles(files, job.files)
    if (job.startsScratch === true) {
      openForPrograms(empty.tmp)
      layers.push({ unmount: () => umount(empty.tmp, MNT_DETACH) })
    }
    return {
      store: empty.store,
      medium: place.kind,
      workspace: workspaceLayer,
      home: homeLayer,
      memoryHome,
      paths: {
        workspace: workspaceLayer.merged,
        home: homeLayer?.merged ?? memoryHome?.at ?? empty.home,
        tmp: empty.tmp,
        shm: empty.shm,
        ...(files === undefined ? {} : { files }),
      },
      written: [
        workspaceLayer.upper,
        ...(homeLayer === undefined ? [] : [homeLayer.upper]),
        join(empty.store, "s", "upper"),
      ],
      appear(laid) {
        show(workspaceLayer.merged, empty.workspace)
        if (laid || job.startsScratch === true) show(empty.tmp, empty.tmp)
        const shownHome = homeLayer?.merged ?? memoryHome?.at
        if (shownHome !== undefined) show(shownHome, empty.home)
      },
      seal() {
        if (place.kind === "disk") empty.unmount()
        else for (const each of layers.splice(0).reverse()) each.unmount()
      },
      dispose,
    }
  } catch (error) {
    dispose()
    throw error
  }
}
