/** Limits on the layers of calls: who owns each, its value, and what happens at it. */
import type { Limits } from "../terms.ts"

const KiB = 1024
const MiB = 1024 * KiB

/** What one call may have in its layers, by its `diskBytes`. The meter owns it; above any of them the call ends. */
export interface LayerBudget {
  /** bytes of file content, exactly as declared */
  readonly bytes: number
  /** bytes of the disk that hold it: content beyond a file's end and small files cost more than their bytes */
  readonly allocated: number
  /** files, folders and links */
  readonly entries: number
}

/** At 256 entries a megabyte small files are no way around the limit of bytes. */
export const budgetOf = ({ diskBytes }: Pick<Limits, "diskBytes">): LayerBudget => {
  const entries = Math.max(4096, Math.ceil((diskBytes / MiB) * 256))
  return { bytes: diskBytes, allocated: 2 * diskBytes + 16 * MiB + entries * 4 * KiB, entries }
}

/** Less room than this left, and a failing program is taken to have failed for it. */
export const FULL_BELOW = { bytes: 64 * KiB, entries: 8 } as const

/**
 * Free space that layers leave alone, of the file system they lie on: a share of it, and no more than a fixed part.
 * The meter owns it; a call that grows when it is touched ends as broken, and none starts.
 */
export const reserveOf = (totalBytes: number): number => Math.min(256 * MiB, Math.floor(totalBytes / 50))

/** How often the meter looks, in milliseconds: as soon as a fast disk could have used up what is left. */
export const METER = {
  soonestMs: 10,
  latestMs: 500,
  bytesPerMs: 2 * MiB,
  /** a look at the whole layer even where the disk did not grow: others may have freed what the call took */
  walkEveryMs: 3_000,
  /** entries looked at before other work gets its turn */
  slice: 256,
  /** descriptors and mapped files without a name looked at in one round; beyond them the count is not whole */
  held: 50_000,
  /** bytes of the kernel's tables of mappings read in one round; beyond them the count is not whole */
  mapsBytes: 64 * MiB,
  /** counts in a row that are not whole before the call answers for what the disk lost: a passing state is none */
  hidden: 3,
} as const

/** Folders that are emptied before one of them is brought up to the top: descriptors held at once. */
export const REMOVE = { depth: 32, slice: 256, laterMs: 25 } as const

/** What may be kept of one layer beyond its bytes, which whoever keeps it bounds. Above either it is not kept. */
export const HELD = {
  /** changed paths: more than anybody looks at */
  effects: 20_000,
  /** bytes of the description that lies beside it */
  descriptionBytes: 64 * MiB,
} as const

/** `settling`: what is written in the calling thread where no other call is there; more is written beside it. */
export const SETTLE = { hereEffects: 64, hereBytes: MiB } as const

/** Layers that the host itself writes. Their owner is `hosted/layer.ts`. */
export const HOSTED = {
  /** bytes of a file read or copied before other work gets its turn */
  chunkBytes: 256 * KiB,
  /** entries of one folder that are listed; one with more is refused */
  listedEntries: 100_000,
} as const

/** What may be kept of a home that lies in memory. Its owner is `home/read.ts`; above any of them nothing of it is kept. */
export const HOME = { bytes: 32 * MiB, entries: 10_000, pathBytes: 4_000 } as const
