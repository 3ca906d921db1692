/**
 * The layers of one call, from their mounting to their end: open → sealed → committed, held or discarded.
 *
 * Guarantees: both backends go through the same steps in the same order; a layer is read only after it is no longer
 * mounted, is written once or thrown away once, and a driver's home settles apart
 * from the workspace, by its own patterns.
 * Assumes: `seal` is called when every process that could write to the layers is gone.
 */
import { statfsSync, statSync } from "node:fs"
import { join } from "node:path"
import type { Job, Unavailable } from "../terms.ts"
import { beginSnapshot, LayerRefused } from "../effects/index.ts"
import { holdsAny } from "../effects/tree-print.ts"
import { type FolderIdentity, FolderReplaced, openFolder, reopenFolder } from "../folder.ts"
import { handOver, takeBack } from "./exchange/mounted.ts"
import { NotStaged } from "./exchange/stage.ts"
import { notStaged } from "./exchange/told.ts"
import type { StagedInput } from "../exchange.ts"
import { globFilter, type ShownView, showView } from "./view/view.ts"
import { LayerUnavailable, type OwnerMaps } from "./overlay.ts"
import { budgetOf, FULL_BELOW } from "./limits.ts"
import { type MeterOptions, startMeter } from "./meter.ts"
import { ownState, type SealedLayers, sealLayers, type Tracked } from "./sealed-layers.ts"
import { callBegins, othersWait } from "./settling/settling.ts"
import { isOver, measure } from "./usage.ts"
import { type LayerPaths, openCallMounts, type CallMounts } from "./call-mounts.ts"
import type { EmptyMounts } from "./empty-mounts.ts"

const unwatched = { stop: () => undefined }

/** Where the commits of a call's layers are staged. */
export interface LayerTransactions {
  readonly workspace: string
  /** where the job keeps a home */
  readonly home?: string
}

interface CallLayersOptions {
  /** the call's from now on */
  readonly empty: EmptyMounts
  /** the workspace as it was admitted; another folder at its path is refused */
  readonly workspace: FolderIdentity
  readonly job: Pick<Job, "view" | "write" | "home" | "files" | "limits" | "exchange">
  /** of the whole call: what it may hold in memory counts against it */
  readonly memoryBytes: number
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
  /** Show them to a sandbox that was made with the empty folders. */
  appear(): void
  /** Watch what the call writes until `stop`; `exceeded` is called once it is too much. */
  watch(watching: Watching): { stop(): void }
  /** Is there anything so far that would have to be judged, or kept? */
  written(): Promise<boolean>
  /** The writers are gone: how much they wrote. */
  usage(): Promise<DiskUse>
  /** The writers are gone: unmount the layers and read what they hold. */
  seal(): Promise<SealedLayers>
  discard(): void
}

export const openLayers = async (options: CallLayersOptions): Promise<OpenLayers> => {
  const { job, transactions } = options
  using failed = new DisposableStack()
  failed.defer(() => options.empty.dispose())
  const workspace = failed.use(reopenFolder(options.workspace))
  const homeFolder = job.home === undefined || "content" in job.home ? undefined : failed.use(openFolder(job.home.dir))
  const since = beginSnapshot(workspace)
  const homeSince = homeFolder === undefined ? undefined : beginSnapshot(homeFolder)
  const mounted = await openCallMounts({ ...options, workspace: workspace.here, apart: othersWait() })
  const folders = failed.move()
  folders.defer(callBegins())
  const callMounts: CallMounts = {
    ...mounted,
    dispose() {
      mounted.dispose()
      folders.dispose()
    },
  }
  const { exchange } = job
  const { tmp } = callMounts.paths
  const exchanging = { tmp, identity: options.empty.identity, most: budgetOf(job.limits).bytes }
  let staged: readonly StagedInput[] = []
  let shown: ShownView
  try {
    shown = showView({
      source: workspace.here,
      merged: callMounts.workspace.merged,
      view: job.view,
      write: job.write,
      blank: options.blank,
      identity: options.empty.identity,
    })
    if (exchange !== undefined)
      staged = await handOver({ ...exchanging, exchange, workspace: workspace.fd, view: job.view })
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
    memory: new Set([
      statSync(callMounts.paths.shm, { bigint: true }).dev,
      ...(callMounts.memoryHome === undefined ? [] : [callMounts.memoryHome.dev]),
    ]),
  }
  const homeIsFull = (): boolean => callMounts.memoryHome?.isFull() ?? false
  return {
    paths: callMounts.paths,
    appear: () => callMounts.appear(exchange !== undefined),
    watch: ({ processes, exceeded }) =>
      callMounts.medium === "memory"
        ? unwatched
        : startMeter({ ...written, at: callMounts.store, processes, exceeded }),
    async written() {
      const most = written.budget.entries
      const { workspace: mine, home: kept, memoryHome } = callMounts
      if (await holdsAny(mine.upper, most)) return true
      if (memoryHome !== undefined) return memoryHome.written()
      return kept !== undefined && holdsAny(kept.upper, most, globFilter(job.home?.keep ?? []))
    },
    async usage() {
      if (callMounts.medium === "memory") {
        const { bavail, bsize, ffree } = statfsSync(callMounts.paths.tmp)
        const isFull = bavail * bsize < FULL_BELOW.bytes || ffree < FULL_BELOW.entries
        return { exceeded: false, full: isFull || homeIsFull() }
      }
      const used = await measure(written)
      const { budget } = written
      const full = budget.bytes - used.bytes < FULL_BELOW.bytes || budget.entries - used.entries < FULL_BELOW.entries
      return { exceeded: isOver(used, budget), full: full || homeIsFull() }
    },
    async seal() {
      shown.unmount()
      shown.check()
      const at = join(options.empty.at, "out")
      const { merged } = callMounts.workspace
      const exchanged =
        exchange === undefined
          ? undefined
          : await takeBack({ ...exchanging, exchange, staged, merged, at, view: job.view })
      // Before it stops being mounted: it lies nowhere else.
      const inMemory = await callMounts.memoryHome?.read()
      callMounts.seal()
      const sealed = await sealLayers(callMounts, own, home, job.home?.keep ?? []).catch((error: unknown) => {
        // One in memory is kept by whoever is handed it, which nobody is now.
        if (!(error instanceof LayerRefused) || (inMemory?.changes.effects.length ?? 0) === 0) throw error
        throw new LayerRefused(error.code, `${error.message}; ${ownState(false)}`)
      })
      return {
        ...sealed,
        ...(inMemory === undefined ? {} : { home: inMemory.changes, homeAfter: inMemory.after }),
        ...(exchanged === undefined ? {} : { exchanged }),
      }
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
  if (error instanceof NotStaged) return notStaged(error)
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
