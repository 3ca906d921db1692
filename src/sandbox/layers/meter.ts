/**
 * Watches how much a running call has written, and says when it is more than it may.
 *
 * Guarantees: looking costs one question to the file system while it could not have grown by what is left to the call;
 * the layers themselves are counted only when it could, and now and then besides. Nothing here blocks other calls.
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
  let timer: NodeJS.Timeout

  const count = async (grown: number, made: number): Promise<void> => {
    const began = Date.now()
    const used = await measure({ ...options, processes: options.processes() })
    if (stopped) return
    walkedAt = Date.now()
    walkMs = walkedAt - began
    if (isOver(used, budget)) return options.exceeded("limit")
    untilBytes = grown + (budget.bytes - used.bytes)
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
    plan(Math.min(METER.latestMs, Math.max(METER.soonestMs, left, 4 * walkMs)))
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
