/**
 * What a call's layers hold, counted while the call runs and once it ended.
 *
 * Guarantees: content is counted once however many names it has and however deep it lies; files without a name that the
 * call's processes keep open or mapped count too. Holes cost nothing. Counting stops at the budget and lets other work
 * have its turn. No symlink is followed, whatever the call does to its folders meanwhile; an entry that vanishes is not
 * counted. Where a running call kept something from being looked at, the count says that it is not whole.
 * Assumes: the threads of a process share one table of descriptors (the system-call filter sees to it).
 */
import { closeSync, constants, fstatSync, openSync, readdirSync, readFileSync, readlinkSync, statSync } from "node:fs"
import { readFile } from "node:fs/promises"
import { setImmediate as turn } from "node:timers/promises"
import { lstatIn, namesIn, openDir, openRoot } from "../effects/beneath.ts"
import type { BytePath } from "../effects/names.ts"
import { type LayerBudget, METER } from "./limits.ts"

interface Usage {
  readonly bytes: number
  readonly allocated: number
  readonly entries: number
  /** false where there may be more: descriptors on their way through a socket, too many to look at, moving folders */
  readonly whole: boolean
}

export const isOver = (used: Omit<Usage, "whole">, budget: LayerBudget): boolean =>
  used.bytes > budget.bytes || used.allocated > budget.allocated || used.entries > budget.entries

class Tally {
  bytes = 0
  allocated = 0
  entries = 0
  whole = true
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

interface Above {
  readonly dev: bigint
  readonly ino: bigint
  /** folders in it that are still to be counted */
  readonly left: BytePath[]
}

/** Counts what lies in one folder; answers the folders in it. */
const count = async (dir: number, tally: Tally, budget: LayerBudget): Promise<BytePath[]> => {
  const folders: BytePath[] = []
  for (const name of quietly(() => namesIn(dir)) ?? []) {
    const stats = quietly(() => lstatIn(dir, name))
    if (stats === undefined) continue
    tally.entries += 1
    tally.add(stats, stats.isFile())
    if (stats.isDirectory()) folders.push(name)
    if (isOver(tally, budget)) break
    await tally.pause()
  }
  return folders
}

/** The folder above, if it is the one that we came from; a running call may have moved this one meanwhile. */
const up = (dir: number, { dev, ino }: Above): number | undefined => {
  const above = quietly(() => openSync(`/proc/self/fd/${dir}/..`, constants.O_RDONLY | constants.O_DIRECTORY))
  if (above === undefined) return undefined
  const stats = fstatSync(above, { bigint: true })
  if (stats.dev === dev && stats.ino === ino) return above
  closeSync(above)
  return undefined
}

/** One name at a time and one descriptor at a time: no path gets too long, no depth too great. */
const walk = async (folder: string, tally: Tally, budget: LayerBudget): Promise<void> => {
  let dir = quietly(() => openRoot(folder))
  if (dir === undefined) return
  try {
    const above: Above[] = []
    let left = await count(dir, tally, budget)
    while (!isOver(tally, budget)) {
      const name = left.pop()
      const from = name === undefined ? above.pop() : undefined
      if (name === undefined && from === undefined) return
      const here: number = dir
      const next = from === undefined ? quietly(() => openDir(here, name as BytePath)) : up(here, from)
      if (next === undefined) {
        if (from !== undefined || quietly(() => lstatIn(here, name as BytePath)) !== undefined) tally.whole = false
        if (from === undefined) continue
        return
      }
      if (from === undefined) {
        const { dev, ino } = fstatSync(here, { bigint: true })
        above.push({ dev, ino, left })
      }
      closeSync(here)
      dir = next
      left = from === undefined ? await count(dir, tally, budget) : from.left
    }
  } finally {
    closeSync(dir)
  }
}

/** A thread of the process that still has its descriptors: the first one may have ended before the others. */
const threadOf = (pid: number): string | undefined =>
  (quietly(() => readdirSync(`/proc/${pid}/task`)) ?? []).find(
    (thread) => (quietly(() => readdirSync(`/proc/${thread}/fd`)) ?? []).length > 0,
  )

/** Descriptors that were sent through a socket and are in nobody's table until they are received. */
const carriesDescriptors = (folder: string, name: string): boolean =>
  /^scm_fds:\s*[1-9]/m.test(quietly(() => readFileSync(`${folder}info/${name}`, "utf8")) ?? "")

const DELETED_MAPPING = /^0*([0-9a-f]+)-0*([0-9a-f]+) \S+ \S+ (\S+ \d+) .* \(deleted\)$/gm

/** One mapping of each file without a name that a process has mapped. A process may have tens of thousands. */
const deletedMappings = (maps: string): string[] => {
  const found = new Map<string, string>()
  for (const [, start, end, file] of maps.matchAll(DELETED_MAPPING)) found.set(file as string, `${start}-${end}`)
  return [...found.values()]
}

/** Files of these processes that have no name any more. Those in memory are the memory limit's. */
const held = async (pids: readonly number[], memory: ReadonlySet<bigint>, tally: Tally): Promise<void> => {
  let left: number = METER.held
  let leftOfMaps: number = METER.mapsBytes
  for (const pid of pids) {
    const process = `/proc/${threadOf(pid) ?? pid}`
    const maps = await readFile(`${process}/maps`, "latin1").catch(() => "")
    const names = {
      fd: quietly(() => readdirSync(`${process}/fd`)) ?? [],
      map_files: deletedMappings(maps),
    }
    left -= names.fd.length + names.map_files.length
    leftOfMaps -= maps.length
    if (left < 0 || leftOfMaps < 0) {
      tally.whole = false
      return
    }
    for (const kind of ["fd", "map_files"] as const) {
      const folder = `${process}/${kind}`
      for (const name of names[kind]) {
        await tally.pause()
        const stats = quietly(() => statSync(`${folder}/${name}`, { bigint: true }))
        if (stats?.isSocket() === true && carriesDescriptors(folder, name)) tally.whole = false
        if (stats === undefined || !stats.isFile() || stats.nlink !== 0n || memory.has(stats.dev)) continue
        if (quietly(() => readlinkSync(`${folder}/${name}`))?.startsWith("/memfd:") !== true) tally.add(stats, true)
      }
    }
  }
}

interface MeasureOptions {
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
  const { bytes, allocated, entries, whole } = tally
  return { bytes, allocated, entries, whole }
}
