/**
 * Tells a process that is slow from one that hangs, by the processor's time that it and those below it used.
 *
 * Guarantees: one that gets on, however little of the machine it is given, is waited for, up to a number of periods; one
 * that used nothing in a whole period, or is not there any more, is given up at its end.
 * Does not: tell a loop without end from work before the last period is over.
 */
import { readdirSync, readFileSync } from "node:fs"

const childrenOf = (pid: number): number[] => {
  try {
    return readdirSync(`/proc/${pid}/task`).flatMap((thread) =>
      readFileSync(`/proc/${pid}/task/${thread}/children`, "latin1").split(" ").filter(Boolean).map(Number),
    )
  } catch {
    // It ended, or this kernel does not list them: then the process itself has to show that it gets on.
    return []
  }
}

const parentOf = (pid: number): number | undefined => {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "latin1")
    return Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[1])
  } catch {
    return undefined
  }
}

/** The one process that this one started and waits for; itself where there is none to be seen. */
export const onlyChildOf = (pid: number): number => {
  const [listed] = childrenOf(pid)
  if (listed !== undefined) return listed
  const numbers = readdirSync("/proc").map(Number).filter(Number.isInteger)
  return numbers.find((other) => parentOf(other) === pid) ?? pid
}

/** In clock ticks: the process, what it waited for, and those that it started and their like. */
export const processorTime = (pid: number): number => {
  let own: number
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "latin1")
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ")
    // utime, stime, cutime, cstime
    own = fields.slice(11, 15).reduce((sum, ticks) => sum + Number(ticks), 0)
  } catch {
    return 0
  }
  return childrenOf(pid).reduce((sum, child) => sum + processorTime(child), own)
}

interface Period {
  readonly everyMs: number
  /** periods after which it is given up, whatever it does */
  readonly most: number
}

/** `stuck` is called once, unless stopped before. */
export const watchProgress = (used: () => number, { everyMs, most }: Period, stuck: () => void): { stop(): void } => {
  let before = used()
  let periods = 0
  const timer = setInterval(() => {
    const now = used()
    periods += 1
    if (now > before && periods < most) {
      before = now
      return
    }
    clearInterval(timer)
    stuck()
  }, everyMs)
  return { stop: () => clearInterval(timer) }
}
