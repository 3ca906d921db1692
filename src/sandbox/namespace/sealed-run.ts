/**
 * One job in one seat: start bubblewrap, watch it, and say how it ended once the whole tree is gone.
 *
 * Guarantees: resolves only after the sandbox's pid namespace is empty, so that nothing writes to the layer any
 * more; the deadline, cancellation and floods kill the tree at once.
 */
import { closeSync } from "node:fs"
import type { Captured, Ending, Job, SandboxProfile } from "../backend.ts"
import { cpuBackstop, diskNearlyFull, endingOfExit } from "../endings.ts"
import type { DiskUse, OpenLayers } from "../layers/call-layers.ts"
import { pidfdKill, pidfdOpen, prlimit, RLIMIT, SyscallError } from "../../linux/syscalls.ts"
import type { Identity } from "../layers/overlay.ts"
import { bwrapArguments, shellWord, type SlotPaths } from "./bwrap-arguments.ts"
import { capture } from "../process/capture.ts"
import type { GroupUsage } from "../process/cgroup.ts"
import { descriptor, type Seat } from "./seat.ts"
import { openTerminal } from "../process/terminal.ts"
import { processesOf, treeGone } from "../process/tree.ts"

export const bwrapPath = "/usr/bin/bwrap"
const cpuPollMs = 50
const ESRCH = 3
/** shells count file sizes in blocks of 512 bytes */
const ulimitBlock = 512

export interface SealedRun {
  readonly ending: Ending
  readonly stdout: Captured
  readonly stderr: Captured
  readonly wallMs: number
  readonly usage: GroupUsage | undefined
}

interface Status {
  childPid: number | undefined
  exitCode: number | undefined
}
/** bubblewrap's status stream: JSON documents, one a line, arriving in any chunks. */
const readStatus = (seat: Seat, onChild: (pid: number) => void): Status => {
  const status: Status = { childPid: undefined, exitCode: undefined }
  let text = ""
  seat.status.setEncoding("utf8")
  seat.status.on("data", (chunk: string) => {
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

const startScript = (job: Job, profile: SandboxProfile, grouped: boolean, slave: string | undefined): string => {
  const { limits } = profile
  const filter = profile.executables.children ? descriptor.filterWithChildren : descriptor.filterWithoutChildren
  const other = profile.executables.children ? descriptor.filterWithoutChildren : descriptor.filterWithChildren
  const lines = [
    `ulimit -n ${limits.openFiles}; ulimit -f ${Math.ceil(limits.diskBytes / ulimitBlock)}`,
    ...cpuBackstop(limits.cpuMs, grouped).map(({ soft, hard }) => `ulimit -S -t ${soft}; ulimit -H -t ${hard}`),
    ...(grouped ? [] : [`ulimit -d ${Math.ceil(limits.memoryBytes / 1024)}`]),
  ]
  // The shell reads this script from descriptor 0, so that one changes in the very last command only.
  const standard =
    slave === undefined
      ? `0<&${descriptor.stdin} ${descriptor.stdin}<&-`
      : `${descriptor.stdin}<&- 0<>${shellWord(slave)} 1>&0 2>&0`
  const options = [
    "--args",
    descriptor.arguments,
    "--json-status-fd",
    descriptor.status,
    "--seccomp",
    filter,
    ...(grouped ? [] : ["--block-fd", descriptor.block]),
  ]
  const redirections = [standard, `${other}<&-`, ...(grouped ? [`${descriptor.block}<&-`] : [])]
  return `${lines.join("\n")}\nexec ${bwrapPath} ${options.join(" ")} -- ${job.argv.map(shellWord).join(" ")} ${redirections.join(" ")}\n`
}

export interface SealedRunOptions {
  readonly seat: Seat
  readonly profile: SandboxProfile
  readonly job: Job
  readonly paths: SlotPaths
  readonly identity: Identity | undefined
  readonly cancel: AbortSignal
  readonly layers: Pick<OpenLayers, "watch" | "usage">
}

export const sealedRun = async ({
  seat,
  profile,
  job,
  paths,
  identity,
  cancel,
  layers,
}: SealedRunOptions): Promise<SealedRun> => {
  const { limits } = profile
  const grouped = seat.group !== undefined
  seat.group?.limit({
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
  const stop = (ending: Ending): void => {
    stopped ??= ending
    seat.process.kill("SIGKILL")
    endNamespace()
  }
  const terminal = profile.tty ? openTerminal(identity) : undefined
  const flood = (): void => stop({ by: "limit", limit: "output" })
  const stdout = capture(terminal?.output ?? seat.stdout, limits.outputBytes, flood)
  const stderr = capture(seat.stderr, limits.outputBytes, flood)
  if (terminal !== undefined) seat.stdout.resume()

  const status = readStatus(seat, (pid) => {
    try {
      first = pidfdOpen(pid)
      if (stopped !== undefined) endNamespace()
      if (grouped) return
      const processes = BigInt(limits.pids + 1)
      prlimit(pid, RLIMIT.NPROC, processes, processes)
      seat.block.end("x")
    } catch (error) {
      // It is gone already; how bubblewrap ended says why.
      if (error instanceof SyscallError && error.errno === ESRCH) return
      stop({ by: "infrastructure", message: `the sandbox could not be taken in hand: ${(error as Error).message}` })
    }
  })

  const started = process.hrtime.bigint()
  seat.script.end(startScript(job, profile, grouped, terminal?.slave))
  seat.arguments.end(`${bwrapArguments(profile, paths).join("\0")}\0`)
  seat.stdin.end(job.stdin)

  const deadline = setTimeout(() => stop({ by: "limit", limit: "wall" }), limits.wallMs)
  const cpuWatch =
    limits.cpuMs === undefined || !grouped
      ? undefined
      : setInterval(() => {
          if ((seat.group?.cpuMs() ?? 0) > (limits.cpuMs as number)) stop({ by: "limit", limit: "cpu" })
        }, cpuPollMs)
  const meter = layers.watch({
    processes: () => processesOf(seat),
    exceeded: (what) => stop(what === "limit" ? { by: "limit", limit: "disk" } : diskNearlyFull),
  })
  const onCancel = (): void => stop({ by: "cancelled" })
  cancel.addEventListener("abort", onCancel, { once: true })
  if (cancel.aborted) onCancel()
  try {
    const exit = await seat.exited
    endNamespace()
    const treeCpuMs = await treeGone(seat, status.childPid)
    meter.stop()
    const disk = await layers.usage()
    terminal?.output.once("error", () => undefined)
    await Promise.all([stdout.ended, stderr.ended])
    const wallMs = Number(process.hrtime.bigint() - started) / 1e6
    const usage = seat.group?.usage()
    const cpuMs = usage?.cpuMs ?? treeCpuMs
    const ending = stopped ?? endingOf({ exit, status, usage, cpuMs, profile, stderr: stderr.result(), disk })
    return { ending, stdout: stdout.result(), stderr: stderr.result(), wallMs, usage }
  } finally {
    if (first !== undefined) closeSync(first)
    meter.stop()
    clearTimeout(deadline)
    clearInterval(cpuWatch)
    cancel.removeEventListener("abort", onCancel)
    terminal?.output.destroy()
  }
}

interface Ended {
  readonly exit: { code: number | null; signal: NodeJS.Signals | null }
  readonly status: Status
  readonly usage: GroupUsage | undefined
  readonly cpuMs: number | undefined
  readonly profile: SandboxProfile
  readonly stderr: Captured
  readonly disk: DiskUse
}
/** bubblewrap reports an exit code only for a program that it got to start. */
const endingOf = ({ exit, status, usage, cpuMs, profile, stderr, disk }: Ended): Ending => {
  if (usage?.outOfMemory === true) return { by: "limit", limit: "memory" }
  if (exit.signal !== null) return { by: "infrastructure", message: `the sandbox was killed by ${exit.signal}` }
  const said = Buffer.from(stderr.bytes).toString("utf8", 0, 600).trim()
  if (status.exitCode === undefined)
    return { by: "infrastructure", message: `the sandbox did not start: ${said === "" ? `exit ${exit.code}` : said}` }
  return endingOfExit(status.exitCode, profile, { pids: usage?.pidsRefused ?? 0, cpuMs, disk })
}
