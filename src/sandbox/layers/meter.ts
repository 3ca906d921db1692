/**
 * Watches how much a running call has written, and says when it is more than it may.
 *
 * Guarantees: looking costs one question to the file system while it could not have grown by what is left to the call;
 * the layers themselves are counted only when it could, and now and then besides. Nothing here blocks other calls.
 * A call that keeps its files from being counted is taken to hold all that the disk has lost since it began.
 * Does not: stop a write. Between two looks a call may write more than its limit; nothing of it is committed, because
 * the count at the end is exact.
 */
import { statfsSync } from "node:fs"
import { type LayerBudget, METER, reserveOf } from "./limits.ts"
import { isOver, measure } from "./usage.ts"

export interface MeterOptions {
  /** the folder that holds the layers */
  readonly at: string
  readonly folders: readonly string[]
  readonly budget: LayerBudget
  readonly memory: ReadonlySet<bigint>
  /** the call's processes, asked when the layers are counted */
  readonly processes: () => readonly number[]
  /** `limit`: the call's own; `reserve`: the disk is nearly full and the call makes it fuller */
  readonly exceeded: (what: "limit" | "reserve") => void
}

interface Disk {
  readonly free: number
  readonly available: number
  readonly total: number
  readonly entries: number
}
export const diskOf = (at: string): Disk => {
  const { bfree, bavail, blocks, bsize, ffree } = statfsSync(at)
  return { free: bfree * bsize, available: bavail * bsize, total: blocks * bsize, entries: ffree }
}

/** Is there less room than what layers leave alone? */
export const isScarce = ({ available, total }: Disk): boolean => available < reserveOf(total)

export const startMeter = (options: MeterOptions): { stop(): void } => {
  const { at, budget } = options
  const start = diskOf(at)
  let stopped = false
  /** by so much may the disk have grown before the layers are counted */
  let untilBytes = budget.bytes
  let untilEntries = budget.entries
  let walkedAt = Date.now()
  let walkMs = 0
  /** counts in a row that the call kept from being whole, while the disk lost more than the call may take */
  let hidden = 0
  let timer: NodeJS.Timeout

  const count = async (grown: number, made: number): Promise<void> => {
    const began = Date.now()
    const used = await measure({ ...options, processes: options.processes() })
    if (stopped) return
    walkedAt = Date.now()
    walkMs = walkedAt - began
    hidden = !used.whole && grown > budget.allocated ? hidden + 1 : 0
    if (isOver(used, budget) || hidden >= METER.hidden) return options.exceeded("limit")
    untilBytes = hidden > 0 ? 0 : grown + (budget.bytes - used.bytes)
    untilEntries = made + (budget.entries - used.entries)
  }
  const look = async (): Promise<void> => {
    const now = diskOf(at)
    const grown = start.free - now.free
    const made = start.entries - now.entries
    if (grown > 0 && isScarce(now)) {
      const used = await measure({ ...options, processes: options.processes() })
      if (!stopped && used.allocated > 0) return options.exceeded("reserve")
    }
    const due = Date.now() - walkedAt > Math.max(METER.walkEveryMs, 50 * walkMs)
    if (grown > untilBytes || made > untilEntries || due) await count(grown, made)
    if (stopped) return
    const left = (untilBytes - grown) / METER.bytesPerMs
    plan(Math.min(METER.latestMs, Math.max(METER.soonestMs, left, hidden > 0 ? walkMs : 4 * walkMs)))
  }
  const plan = (ms: number): void => {
    timer = setTimeout(() => {
      look().catch(() => {
        // A look that failed says nothing; the next one, and the count at the end, do.
        if (!stopped) plan(METER.latestMs)
      })
    }, ms)
  }
  plan(Math.min(METER.latestMs, Math.max(METER.soonestMs, budget.bytes / METER.bytesPerMs)))
  return {
    stop() {
      stopped = true
      clearTimeout(timer)
    },
  }
}
