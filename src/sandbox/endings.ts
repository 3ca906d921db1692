/**
 * An exit code → how the call ended, the same for every backend. Pure.
 *
 * A death by signal N and an exit with 128+N are the same to the caller, as a shell tells it; the kernel's counters
 * tell which limit was behind a failure.
 */
import type { Ending, Executables, Limits } from "./backend.ts"

const signalNames: Readonly<Record<number, string>> = {
  1: "SIGHUP",
  2: "SIGINT",
  3: "SIGQUIT",
  4: "SIGILL",
  5: "SIGTRAP",
  6: "SIGABRT",
  7: "SIGBUS",
  8: "SIGFPE",
  9: "SIGKILL",
  11: "SIGSEGV",
  13: "SIGPIPE",
  14: "SIGALRM",
  15: "SIGTERM",
  24: "SIGXCPU",
  25: "SIGXFSZ",
  31: "SIGSYS",
}

/**
 * The kernel's own limit of CPU time, in seconds and for each process. Where the tree's time is watched it is only a
 * backstop and lies above the limit, so that what ends the call is the limit and not a bare SIGKILL.
 */
export const cpuBackstop = (
  cpuMs: number | undefined,
  watched: boolean,
): readonly { readonly soft: number; readonly hard: number }[] => {
  if (cpuMs === undefined) return []
  const soft = Math.max(1, Math.ceil(cpuMs / 1000)) + (watched ? 1 : 0)
  return [{ soft, hard: soft + 1 }]
}

/** The machine's trouble, not the call's: others fill the same disk. */
export const diskNearlyFull: Ending = {
  by: "infrastructure",
  message: "the disk that holds the call's layers is nearly full: free disk space, then run it again",
}

/** What the kernel counted and refused by the end of a call. */
interface Refused {
  readonly pids: number
  /** CPU time of the whole tree, where it is known */
  readonly cpuMs: number | undefined
  readonly disk: { readonly exceeded: boolean; readonly full: boolean }
}

/** Of what was asked for, what an exit code is read by. */
export interface AskedFor {
  readonly executables: Pick<Executables, "program" | "children">
  readonly limits: Omit<Limits, "outputBytes">
}

export const endingOfExit = (code: number, asked: AskedFor, refused: Refused): Ending => {
  const most = asked.limits.cpuMs
  if (most !== undefined && refused.cpuMs !== undefined && refused.cpuMs > most) return { by: "limit", limit: "cpu" }
  if (refused.disk.exceeded) return { by: "limit", limit: "disk" }
  if (code === 0) return { by: "exit", code }
  const signal = code > 128 ? signalNames[code - 128] : undefined
  if (signal === "SIGSYS" && !asked.executables.children) return { by: "exec-denied" }
  if (signal === "SIGXCPU") return { by: "limit", limit: "cpu" }
  if (signal === "SIGXFSZ") return { by: "limit", limit: "disk" }
  if (refused.pids > 0) return { by: "limit", limit: "pids" }
  if (refused.disk.full) return { by: "limit", limit: "disk" }
  return signal === undefined ? { by: "exit", code } : { by: "signal", signal }
}
