/**
 * Layers that nobody writes to any more: read once, then committed, held or thrown away once.
 *
 * Guarantees: the same for layers of sandboxes, whichever backend mounted them, and for those that the host itself wrote. A
 * workspace's layer that cannot be told is refused, and the home that came with it is kept all the same.
 */
import { type Baseline, LayerRefused, readWriteSet } from "../effects/index.ts"
import type { WriteSet } from "../effects/types.ts"
import type { OpenFolder } from "../folder.ts"
import type { CommitResult } from "../terms.ts"
import type { Exchanged } from "../exchange.ts"
import type { HomeAfter } from "../home.ts"
import type { HoldAnswer, HoldRequest } from "./held.ts"
import type { LookBounds, Looked } from "./look.ts"
import type { Layer } from "./overlay.ts"
import { settle } from "./settling/settling.ts"
import type { ReadLayer } from "./settling/settling-work.ts"
import type { LayerPlace } from "./store.ts"
import { globFilter } from "./view/view.ts"

/** Unmounted and read; unjudged. */
export interface SealedLayers {
  readonly writes: WriteSet
  /** what of the home would be kept; absent where none is */
  readonly home?: WriteSet
  /** of a home in memory: what it holds; absent where there is none */
  readonly homeAfter?: HomeAfter
  /** files that were handed to the program and taken from it; absent where the job has none */
  readonly exchanged?: Exchanged
  /** The home settles by itself, before the workspace does. One in memory is kept by whoever is handed its content. */
  keepHome(): Promise<CommitResult>
  /** `cancel` ends a wait for another commit, and no more. `only`: of the effects, those at these paths. */
  commit(cancel?: AbortSignal, only?: readonly string[]): Promise<CommitResult>
  /** What files hold before and after; the layer is as before. */
  look(bounds: LookBounds): Promise<readonly Looked[]>
  /** The workspace's layer outlives the call. Where it cannot, it is as before. */
  hold(request: HoldRequest): Promise<HoldAnswer>
  discard(): void
}

/** One folder's layer together with what its commit needs. */
export interface Tracked {
  /** held open from the layer's mounting to its end */
  readonly folder: OpenFolder
  readonly layer: Pick<Layer, "upper" | "xattrPrefix">
  readonly since: Baseline
  readonly txRoot: string
}

const readLayer = ({ folder, layer: { upper, xattrPrefix } }: Tracked): Promise<WriteSet> =>
  readWriteSet({ lower: folder, upper, xattrPrefix })

const layerOf = ({ folder, layer: { upper, xattrPrefix }, since }: Tracked, writes: WriteSet): ReadLayer => ({
  fd: folder.fd,
  identity: folder.identity,
  upper,
  since,
  xattrPrefix,
  writes,
})

/** Of a home's layer, what the driver keeps: the rest was never more than the call's. */
const keptOf = ({ effects }: WriteSet, keep: (path: string) => boolean): WriteSet => {
  const kept = effects.filter(({ path, from }) => keep(path) || (from !== undefined && keep(from)))
  return { effects: kept, bytes: kept.reduce((sum, { size }) => sum + (size ?? 0), 0) }
}

/** Where the layers lie, and the end of that place. */
interface LayersPlace {
  readonly medium: LayerPlace["kind"]
  /** Once; again does nothing. */
  dispose(): void
}

/** The workspace's layer is refused as a whole; the driver's own state settles all the same, and its end is told with it. */
const refusedWith = async (
  error: LayerRefused,
  home: Tracked | undefined,
  patterns: readonly string[],
): Promise<never> => {
  if (home === undefined) throw error
  const settled = await readLayer(home)
    .then((writes) =>
      keptOf(writes, globFilter(patterns)).effects.length === 0
        ? undefined
        : settle({ do: "commit", layer: layerOf(home, writes), txRoot: home.txRoot, patterns }),
    )
    .catch((fault: unknown) => ({ ok: false, reason: "failed", message: String(fault) }) as const)
  if (settled === undefined) throw error
  const why = settled.ok ? "" : `: ${settled.reason === "conflict" ? "another call changed it" : settled.message}`
  throw new LayerRefused(error.code, `${error.message}; ${ownState(settled.ok)}${why}`)
}

/** What a refusal says of the driver's own state. */
export const ownState = (isKept: boolean): string => `the driver's own state was ${isKept ? "" : "not "}kept`

export const sealLayers = async (
  place: LayersPlace,
  workspace: Tracked,
  home?: Tracked,
  patterns: readonly string[] = [],
): Promise<SealedLayers> => {
  const writes = await readLayer(workspace).catch((error: unknown) => {
    if (error instanceof LayerRefused) return refusedWith(error, home, patterns)
    throw error
  })
  const homeWrites = home === undefined ? undefined : await readLayer(home)
  const keep = globFilter(patterns)
  const layers: SealedLayers = {
    writes,
    ...(homeWrites === undefined ? {} : { home: keptOf(homeWrites, keep) }),
    async keepHome() {
      if (home === undefined || homeWrites === undefined) return { ok: true }
      return settle({ do: "commit", layer: layerOf(home, homeWrites), txRoot: home.txRoot, patterns })
    },
    async commit(cancel, only) {
      const work = { do: "commit", layer: layerOf(workspace, writes), txRoot: workspace.txRoot, takes: true } as const
      try {
        return await settle(only === undefined ? work : { ...work, paths: only }, cancel)
      } finally {
        place.dispose()
      }
    },
    look: (bounds) => settle({ do: "look", layer: layerOf(workspace, writes), bounds }),
    async hold(request) {
      if (place.medium === "memory") return { ok: false, message: "what calls write is kept in memory here" }
      const answer = await settle({ do: "hold", layer: layerOf(workspace, writes), request })
      if (answer.ok) place.dispose()
      return answer
    },
    discard: () => place.dispose(),
  }
  return layers
}
