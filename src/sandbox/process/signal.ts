/**
 * A signal to a program that runs below a first process of ours (bubblewrap's, or a container's bridge).
 *
 * Guarantees: reaches the process that was the program's when it was looked up, or none: numbers used again do not count.
 * A program that is not there yet is waited for as long as its run goes on.
 */
import { closeSync, readdirSync, readFileSync, readlinkSync } from "node:fs"
import { constants } from "node:os"
import { setTimeout as delay } from "node:timers/promises"
import { SyscallError } from "../../linux/libc.ts"
import { pidfdOpen, pidfdSignal } from "../../linux/processes.ts"
import { TREE } from "./limits.ts"

interface Stat {
  readonly pid: number
  readonly parent: number
  readonly started: bigint
}
const statOf = (pid: number): Stat | undefined => {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, "latin1")
    const fields = text.slice(text.lastIndexOf(")") + 2).split(" ")
    // Its first thread may have ended while others go on: it lives as long as any of them.
    const isGone = fields[0] === "Z" && Number(fields[17]) <= 1
    return isGone ? undefined : { pid, parent: Number(fields[1]), started: BigInt(fields[19] ?? 0) }
  } catch {
    return undefined
  }
}

/** The first process's oldest child: all others came from it. */
const programBelow = (first: number): number | undefined => {
  const children = readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map((name) => statOf(Number(name)))
    .filter((stat) => stat?.parent === first) as Stat[]
  return children.sort((a, b) => (a.started < b.started ? -1 : a.started > b.started ? 1 : a.pid - b.pid))[0]?.pid
}

const deliver = (pid: number, first: number, signal: number): void => {
  let handle: number
  try {
    handle = pidfdOpen(pid)
  } catch (error) {
    if (error instanceof SyscallError) return
    throw error
  }
  try {
    if (statOf(pid)?.parent === first) pidfdSignal(handle, signal)
  } finally {
    closeSync(handle)
  }
}

/** Does it still run the code of whoever starts the program? */
const isStarter = (pid: number, starter: string | undefined): boolean => {
  if (starter === undefined) return false
  try {
    return readlinkSync(`/proc/${pid}/exe`) === starter
  } catch {
    return false
  }
}

interface SignalTarget {
  /** number of the first process, once it is known */
  readonly first: () => number | undefined
  /** the run has ended */
  readonly over: () => boolean
  /** whoever runs this is not the program yet */
  readonly starter?: string
}

export const signalProgram = async (name: NodeJS.Signals, { first, over, starter }: SignalTarget): Promise<void> => {
  while (!over()) {
    const above = first()
    const found = above === undefined ? undefined : programBelow(above)
    const program = found === undefined || isStarter(found, starter) ? undefined : found
    if (above !== undefined && program !== undefined) return deliver(program, above, constants.signals[name])
    await delay(TREE.lookMs)
  }
}
