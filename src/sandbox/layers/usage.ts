/**
 * What a call's layers hold, counted while the call runs and once it ended.
 *
 * Guarantees: content is counted once however many names it has; files without a name that the call's processes keep
 * open or mapped count too. Holes cost nothing. Counting stops at the budget and lets other work have its turn.
 * No symlink is followed, whatever the call does to its folders meanwhile; an entry that vanishes is not counted.
 */
import { closeSync, readdirSync, readlinkSync, statSync } from "node:fs"
import { setImmediate as turn } from "node:timers/promises"
import { lstatIn, namesIn, openDir, openRoot } from "../effects/beneath.ts"
import { type BytePath, join, ROOT } from "../effects/names.ts"
import { type LayerBudget, METER } from "./limits.ts"

export interface Usage {
  readonly bytes: number
  readonly allocated: number
  readonly entries: number
}

export const isOver = (used: Usage, budget: LayerBudget): boolean =>
  used.bytes > budget.bytes || used.allocated > budget.allocated || used.entries > budget.entries

class Tally {
  bytes = 0
  allocated = 0
  entries = 0
  readonly #seen = new Set<string>()
  #looked = 0
  add(stats: { dev: bigint; ino: bigint; nlink: bigint; size: bigint; blocks: bigint }, file: boolean): void {
    if (stats.nlink !== 1n && file) {
      const key = `${stats.dev}:${stats.ino}`
      if (this.#seen.has(key)) return
      this.#seen.add(key)
    }
    const allocated = Number(stats.blocks) * 512
    this.allocated += allocated
    if (file) this.bytes += Math.min(Number(stats.size), allocated)
  }
  /** Time for others after every slice. */
  async pause(): Promise<void> {
    this.#looked += 1
    if (this.#looked % METER.slice === 0) await turn()
  }
}

const quietly = <T>(look: () => T): T | undefined => {
  try {
    return look()
  } catch {
    return undefined
  }
}

const walk = async (folder: string, tally: Tally, budget: LayerBudget): Promise<void> => {
  const root = quietly(() => openRoot(folder))
  if (root === undefined) return
  try {
    const left: BytePath[] = [ROOT]
    for (let path = left.pop(); path !== undefined && !isOver(tally, budget); path = left.pop()) {
      const dir = quietly(() => openDir(root, path as BytePath))
      if (dir === undefined) continue
      try {
        for (const name of quietly(() => namesIn(dir)) ?? []) {
          const stats = quietly(() => lstatIn(dir, name))
          if (stats === undefined) continue
          tally.entries += 1
          tally.add(stats, stats.isFile())
          if (stats.isDirectory()) left.push(join(path, name))
          if (isOver(tally, budget)) return
          await tally.pause()
        }
      } finally {
        closeSync(dir)
      }
    }
  } finally {
    closeSync(root)
  }
}

/** Files of these processes that have no name any more. Those in memory are the memory limit's. */
const held = async (pids: readonly number[], memory: ReadonlySet<bigint>, tally: Tally): Promise<void> => {
  let left: number = METER.held
  for (const pid of pids) {
    for (const kind of ["fd", "map_files"]) {
      const folder = `/proc/${pid}/${kind}`
      for (const name of quietly(() => readdirSync(folder)) ?? []) {
        if ((left -= 1) < 0) return
        await tally.pause()
        const stats = quietly(() => statSync(`${folder}/${name}`, { bigint: true }))
        if (stats === undefined || !stats.isFile() || stats.nlink !== 0n || memory.has(stats.dev)) continue
        if (quietly(() => readlinkSync(`${folder}/${name}`))?.startsWith("/memfd:") !== true) tally.add(stats, true)
      }
    }
  }
}

export interface MeasureOptions {
  readonly folders: readonly string[]
  readonly budget: LayerBudget
  /** processes that may hold files without names; none once the call ended */
  readonly processes?: readonly number[]
  /** devices whose files are in memory */
  readonly memory?: ReadonlySet<bigint>
}

export const measure = async ({ folders, budget, processes, memory }: MeasureOptions): Promise<Usage> => {
  const tally = new Tally()
  for (const folder of folders) await walk(folder, tally, budget)
  if (processes !== undefined && !isOver(tally, budget)) await held(processes, memory ?? new Set(), tally)
  const { bytes, allocated, entries } = tally
  return { bytes, allocated, entries }
}
