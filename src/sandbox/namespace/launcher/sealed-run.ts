/**
 * One job in one parked process: start bubblewrap, watch it, and say how it ended once the whole tree is gone.
 *
 * Guarantees: says `settled` only after the sandbox's pid namespace is empty, so that nothing writes to the layer any
 * more; the deadline, cancellation and whatever else ends a run kill the tree at once.
 */
import { closeSync } from "node:fs"
import { finished } from "node:stream/promises"
import type { Ending, Job, SandboxShape } from "../../backend.ts"
import { cpuBackstop, endingOfExit } from "../../endings.ts"
import type { DiskUse, OpenLayers } from "../../layers/call-layers.ts"
import { pidfdKill, pidfdOpen, prlimit, RLIMIT, SyscallError } from "../../../linux/syscalls.ts"
import type { GroupUsage } from "../../process/cgroup.ts"
import { TREE } from "../../process/limits.ts"
import { processesOf, treeGone } from "../../process/tree.ts"
import { watchRun } from "../../process/watch-run.ts"
import { bwrapArguments, ownSession, shellWord, type SandboxPaths } from "./bwrap-arguments.ts"
import { descriptor, type ParkedProcess } from "./parked-process.ts"

export const bwrapPath = "/usr/bin/bwrap"
const ESRCH = 3
/** shells count file sizes in blocks of 512 bytes */
const ulimitBlock = 512

interface SealedRun {
  readonly ending: Ending
  readonly wallMs: number
  readonly usage: GroupUsage | undefined
  /** every process of the sandbox was seen to be gone */
  readonly settled: boolean
}

interface Status {
  childPid: number | undefined
  exitCode: number | undefined
  /** all of it was read: whoever could write to it is gone */
  readonly ended: Promise<void>
}
/** bubblewrap's status stream: JSON documents, one a line, arriving in any chunks. */
const readStatus = (parkedProcess: ParkedProcess, onChild: (pid: number) => void): Status => {
  const ended = finished(parkedProcess.status, { writable: false }).catch(() => undefined)
  const status: Status = { childPid: undefined, exitCode: undefined, ended }
  let text = ""
  parkedProcess.status.setEncoding("utf8")
  parkedProcess.status.on("data", (chunk: string) => {
    text += chunk
    const child = /"child-pid": (\d+)\b[^}]*\}/.exec(text)?.[1]
    if (child !== undefined && status.childPid === undefined) {
      status.childPid = Number(child)
      onChild(status.childPid)
    }
    const exit = /"exit-code": (\d+)/.exec(text)?.[1]
    if (exit !== undefined) status.exitCode = Number(exit)
  })
  return status
}

const startScript = ({ job, shape, terminal }: SealedRunOptions, grouped: boolean): string => {
  const lines = [
    `ulimit -n ${shape.limits.openFiles}; ulimit -f ${Math.ceil(job.limits.diskBytes / ulimitBlock)}`,
    ...cpuBackstop(job.limits.cpuMs, grouped).map(({ soft, hard }) => `ulimit -S -t ${soft}; ulimit -H -t ${hard}`),
    ...(grouped ? [] : [`ulimit -d ${Math.ceil(shape.limits.memoryBytes / 1024)}`]),
  ]
  // The shell reads this script from descriptor 0, so that one changes in the very last command only.
  const standard =
    terminal === undefined
      ? `0<&${descriptor.stdin} ${descriptor.stdin}<&-`
      : `${descriptor.stdin}<&- 0<>${shellWord(terminal)} 1>&0 2>&0`
  const options = [
    "--args",
    descriptor.arguments,
    "--json-status-fd",
    descriptor.status,
    "--seccomp",
    descriptor.filter,
    ...(grouped ? [] : ["--block-fd", descriptor.block]),
  ]
  const redirections = [
    standard,
    ...(shape.privatePipes ? [] : [`${descriptor.toTool}<&- ${descriptor.fromTool}<&-`]),
    ...(grouped ? [`${descriptor.block}<&-`] : []),
  ]
  const argv = terminal === undefined ? job.argv : [...ownSession.command, ...job.argv]
  return `${lines.join("\n")}\nexec ${bwrapPath} ${options.join(" ")} -- ${argv.map(shellWord).join(" ")} ${redirections.join(" ")}\n`
}

interface SealedRunOptions {
  readonly parkedProcess: ParkedProcess
  readonly shape: SandboxShape
  readonly job: Job
  readonly paths: SandboxPaths
  /** compiled system-call filter */
  readonly filter: Uint8Array
  /** path of the terminal that the program gets */
  readonly terminal: string | undefined
  /** aborted with an `Ending` */
  readonly cancel: AbortSignal
  readonly layers: Pick<OpenLayers, "watch" | "usage">
  /** the job is on its way */
  readonly started: () => void
  /** the sandbox's first process */
  readonly onFirst: (pid: number) => void
}

export const sealedRun = async (options: SealedRunOptions): Promise<SealedRun> => {
  const { parkedProcess, shape, job, layers } = options
  const { limits } = shape
  const grouped = parkedProcess.group !== undefined
  parkedProcess.group?.limit({
    memoryBytes: limits.memoryBytes,
    pids: limits.pids + 2,
    ...(limits.cpus === undefined ? {} : { cpus: limits.cpus }),
  })

  let stopped: Ending | undefined
  // The first process of the namespace ends with bubblewrap by its own wish only, and the tool can rewrite that
  // process's memory. Killed from here it ends, and everything in the namespace with it.
  let first: number | undefined
  const endNamespace = (): void => {
    if (first !== undefined) pidfdKill(first)
  }
  const late = Promise.withResolvers<"late">()
  let patience: NodeJS.Timeout | undefined
  const stop = (ending: Ending): void => {
    stopped ??= ending
    parkedProcess.process.kill("SIGKILL")
    endNamespace()
    patience ??= setTimeout(() => late.resolve("late"), TREE.goneMs)
  }

  const status = readStatus(parkedProcess, (pid) => {
    try {
      first = pidfdOpen(pid)
      options.onFirst(pid)
      if (stopped !== undefined) endNamespace()
      if (grouped) return
      const processes = BigInt(limits.pids + 1)
      prlimit(pid, RLIMIT.NPROC, processes, processes)
      parkedProcess.block.end("x")
    } catch (error) {
      // It is gone already; how bubblewrap ended says why.
      if (error instanceof SyscallError && error.errno === ESRCH) return
      stop({ by: "infrastructure", message: `the sandbox could not be taken in hand: ${(error as Error).message}` })
    }
  })

  const began = process.hrtime.bigint()
  parkedProcess.script.end(startScript(options, grouped))
  parkedProcess.filter.end(options.filter)
  parkedProcess.arguments.end(`${bwrapArguments(job, options.paths).join("\0")}\0`)
  const watch = watchRun({
    limits: job.limits,
    ...(grouped ? { cpuMs: () => parkedProcess.group?.cpuMs() } : {}),
    processes: () => processesOf(parkedProcess),
    layers,
    cancel: options.cancel,
    stop,
  })
  options.started()
  try {
    const exit = await Promise.race([parkedProcess.exited, late.promise])
    endNamespace()
    const tree = exit === "late" ? { gone: false } : await treeGone(parkedProcess, status.childPid)
    watch.end()
    // The end of a process may be heard of before its last words.
    if (tree.gone) await status.ended
    const wallMs = Number(process.hrtime.bigint() - began) / 1e6
    const usage = parkedProcess.group?.usage()
    if (exit === "late" || !tree.gone) return { ending: stopped ?? unseen, wallMs, usage, settled: false }
    const disk = await layers.usage()
    const ending = stopped ?? endingOf({ exit, status, usage, cpuMs: usage?.cpuMs ?? tree.cpuMs, shape, job, disk })
    return { ending, wallMs, usage, settled: true }
  } finally {
    if (first !== undefined) closeSync(first)
    clearTimeout(patience)
    watch.end()
  }
}

const unseen: Ending = { by: "infrastructure", message: "the sandbox's processes were not seen to end" }

interface Ended {
  readonly exit: { code: number | null; signal: NodeJS.Signals | null }
  readonly status: Status
  readonly usage: GroupUsage | undefined
  readonly cpuMs: number | undefined
  readonly shape: SandboxShape
  readonly job: Job
  readonly disk: DiskUse
}
/** bubblewrap reports an exit code only for a program that it got to start. */
const endingOf = ({ exit, status, usage, cpuMs, shape, job, disk }: Ended): Ending => {
  if (usage?.outOfMemory === true) return { by: "limit", limit: "memory" }
  if (exit.signal !== null) return { by: "infrastructure", message: `the sandbox was killed by ${exit.signal}` }
  if (status.exitCode === undefined)
    return { by: "infrastructure", message: `the sandbox did not start (exit ${exit.code})`, started: false }
  const asked = { executables: shape.executables, limits: { ...shape.limits, ...job.limits } }
  return endingOfExit(status.exitCode, asked, { pids: usage?.pidsRefused ?? 0, cpuMs, disk })
}
