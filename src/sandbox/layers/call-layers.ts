/**
 * The layers of one call, from their mounting to their end: open → sealed → committed, held or discarded.
 *
 * Guarantees: both backends go through the same steps in the same order; a layer is read only after it is no longer
 * mounted, is written once or thrown away once, and a driver's home settles apart
 * from the workspace, by its own patterns.
 * Assumes: `seal` is called when every process that could write to the layers is gone.
 */
import { statfsSync, statSync } from "node:fs"
import type { Job, Unavailable } from "../terms.ts"
import { beginSnapshot, LayerRefused } from "../effects/index.ts"
import { type FolderIdentity, FolderReplaced, openFolder, reopenFolder } from "../folder.ts"
import { type ShownView, showView } from "./view/view.ts"
import { type Identity, LayerUnavailable, type OwnerMaps } from "./overlay.ts"
import { budgetOf, FULL_BELOW } from "./limits.ts"
import { type MeterOptions, startMeter } from "./meter.ts"
import { type SealedLayers, sealLayers, type Tracked } from "./sealed-layers.ts"
import { callBegins } from "./settling/settling.ts"
import type { LayerPlace } from "./store.ts"
import { isOver, measure } from "./usage.ts"
import { type LayerPaths, openCallMounts, type CallMounts } from "./call-mounts.ts"

const unwatched = { stop: () => undefined }

/** Where the commits of a call's layers are staged. */
export interface LayerTransactions {
  readonly workspace: string
  /** where the job keeps a home */
  readonly home?: string
}

interface CallLayersOptions {
  /** a path that is free, in a folder of the caller's */
  readonly at: string
  /** where layers lie */
  readonly place: LayerPlace
  /** the workspace as it was admitted; another folder at its path is refused */
  readonly workspace: FolderIdentity
  readonly job: Pick<Job, "view" | "write" | "home" | "files" | "limits">
  /** of the whole call: what it may hold in memory counts against it */
  readonly memoryBytes: number
  /** as root: who the sandbox runs as */
  readonly identity: Identity | undefined
  readonly owners: OwnerMaps
  /** a folder for blank entries that hide others */
  readonly blank: string
  readonly transactions: LayerTransactions
}

type Watching = Pick<MeterOptions, "processes" | "exceeded">

/** How the call stands with its limit of bytes and entries, at its end. */
export interface DiskUse {
  /** more than it may: the call fails, whatever it says of itself */
  readonly exceeded: boolean
  /** so little is left that a program which fails has failed for it */
  readonly full: boolean
}

/** Mounted; the call's processes may write to them. */
export interface OpenLayers {
  readonly paths: LayerPaths
  /** Watch what the call writes until `stop`; `exceeded` is called once it is too much. */
  watch(watching: Watching): { stop(): void }
  /** The writers are gone: how much they wrote. */
  usage(): Promise<DiskUse>
  /** The writers are gone: unmount the layers and read what they hold. */
  seal(): Promise<SealedLayers>
  discard(): void
}

export const openLayers = async (options: CallLayersOptions): Promise<OpenLayers> => {
  const { job, transactions } = options
  using failed = new DisposableStack()
  const workspace = failed.use(reopenFolder(options.workspace))
  const homeFolder = job.home === undefined ? undefined : failed.use(openFolder(job.home.dir))
  const since = beginSnapshot(workspace)
  const homeSince = homeFolder === undefined ? undefined : beginSnapshot(homeFolder)
  const mounted = await openCallMounts({ ...options, workspace: workspace.here })
  const folders = failed.move()
  folders.defer(callBegins())
  const callMounts: CallMounts = {
    ...mounted,
    dispose() {
      mounted.dispose()
      folders.dispose()
    },
  }
  let shown: ShownView
  try {
    shown = showView({
      source: workspace.here,
      merged: callMounts.workspace.merged,
      view: job.view,
      write: job.write,
      blank: options.blank,
      identity: options.identity,
    })
  } catch (error) {
    callMounts.dispose()
    throw error
  }
  const own: Tracked = { folder: workspace, layer: callMounts.workspace, since, txRoot: transactions.workspace }
  const home: Tracked | undefined =
    callMounts.home === undefined ||
    homeFolder === undefined ||
    homeSince === undefined ||
    transactions.home === undefined
      ? undefined
      : { folder: homeFolder, layer: callMounts.home, since: homeSince, txRoot: transactions.home }
  const written = {
    folders: callMounts.written,
    budget: budgetOf(job.limits),
    memory: new Set([statSync(callMounts.paths.shm, { bigint: true }).dev]),
  }
  return {
    paths: callMounts.paths,
    watch: ({ processes, exceeded }) =>
      callMounts.medium === "memory"
        ? unwatched
        : startMeter({ ...written, at: callMounts.store, processes, exceeded }),
    async usage() {
      if (callMounts.medium === "memory") {
        const { bavail, bsize, ffree } = statfsSync(callMounts.paths.tmp)
        return { exceeded: false, full: bavail * bsize < FULL_BELOW.bytes || ffree < FULL_BELOW.entries }
      }
      const used = await measure(written)
      const { budget } = written
      const full = budget.bytes - used.bytes < FULL_BELOW.bytes || budget.entries - used.entries < FULL_BELOW.entries
      return { exceeded: isOver(used, budget), full }
    },
    async seal() {
      shown.unmount()
      shown.check()
      callMounts.seal()
      return sealLayers(callMounts, own, home, job.home?.keep ?? [])
    },
    discard() {
      shown.unmount()
      callMounts.dispose()
    },
  }
}

/** What to tell the caller of a failure that these layers explain; undefined for any other. */
export const layerRefusal = (error: unknown): Unavailable | undefined => {
  if (error instanceof LayerUnavailable)
    return { ok: false, control: "workspace-layer", message: error.message, fix: error.fix }
  if (error instanceof FolderReplaced)
    return {
      ok: false,
      control: "workspace",
      message: error.message,
      fix: "call again when the folder stays in its place",
    }
  if (error instanceof LayerRefused)
    return {
      ok: false,
      control: "write-set",
      message: error.message,
      fix: "let the tool write less, or in a workspace of its own",
    }
  return undefined
}
