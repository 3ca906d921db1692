/**
 * A signal to a program that runs below a first process of ours (bubblewrap's, or a container's bridge).
 *
 * Guarantees: reaches the process that was the program's when it was looked up, or none: numbers used again do not count.
 * A program that is not there yet is waited for as long as its run goes on.
 */
import { closeSync, readdirSync, readFileSync } from "node:fs"
import { constants } from "node:os"
import { setTimeout as delay } from "node:timers/promises"
import { pidfdOpen, pidfdSignal, SyscallError } from "../../linux/syscalls.ts"
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
    return fields[0] === "Z" ? undefined : { pid, parent: Number(fields[1]), started: BigInt(fields[19] ?? 0) }
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

/** `first`: its number, once it is known. `over`: the run has ended. */
export const signalProgram = async (
  name: NodeJS.Signals,
  first: () => number | undefined,
  over: () => boolean,
): Promise<void> => {
  while (!over()) {
    const above = first()
    const program = above === undefined ? undefined : programBelow(above)
    if (above !== undefined && program !== undefined) return deliver(program, above, constants.signals[name])
    await delay(TREE.lookMs)
  }
}
