/**
 * One job in one parked container: send it, watch it, and say how it ended once every process is gone.
 *
 * Guarantees: resolves only after the container's processes are dead, so that nothing writes to the layer any more;
 * deadline, cancellation and the loss of the engine stop them at once, with or without the engine's help.
 * A container whose processes could not be seen to end is reported as not settled, and its layer must not be used.
 */
import { setTimeout as delay } from "node:timers/promises"
import type { Ending, Job, SandboxShape } from "../backend.ts"
import { type AskedFor, cpuBackstop, endingOfExit } from "../endings.ts"
import type { DiskUse, OpenLayers } from "../layers/call-layers.ts"
import type { GroupUsage } from "../process/cgroup.ts"
import { TREE } from "../process/limits.ts"
import { watchRun } from "../process/watch-run.ts"
import { RLIMIT } from "../../linux/processes.ts"
import { encodeJob, type WireJob } from "../process/job-wire.ts"
import { STOP, type Status } from "./container/bridge-words.ts"
import type { ParkedContainer } from "./container/parked.ts"

export interface SealedRun {
  readonly ending: Ending
  readonly wallMs: number
  readonly usage: GroupUsage
  /** every process of the container was seen to be gone */
  readonly settled: boolean
}
interface SealedRunOptions {
  readonly parked: ParkedContainer
  readonly shape: SandboxShape
  readonly job: Job
  readonly filter: Uint8Array
  /** aborted with an `Ending` */
  readonly cancel: AbortSignal
  /** aborted, with the reason, when the engine is lost */
  readonly engineLost: AbortSignal
  readonly layers: Pick<OpenLayers, "watch" | "usage">
}

/** The bridge kills within this; else its own process is killed from outside. */
const BRIDGE_STOPS_WITHIN_MS = 1_000

const wireJob = ({ shape, job, filter }: SealedRunOptions): WireJob => ({
  program: job.argv[0] ?? shape.executables.program,
  folder: job.startsIn ?? "/workspace",
  filter,
  argv: job.argv,
  env: { ...job.env, PWD: job.startsIn ?? "/workspace" },
  limits: [
    { resource: RLIMIT.FSIZE, soft: BigInt(job.limits.diskBytes), hard: BigInt(job.limits.diskBytes) },
    ...cpuBackstop(job.limits.cpuMs, true).map(({ hard }) => ({
      resource: RLIMIT.CPU,
      soft: BigInt(hard),
      hard: BigInt(hard),
    })),
  ],
  tty: job.stdio.kind === "terminal",
  privatePipes: shape.privatePipes,
})

/** As a shell and bubblewrap tell it: a death by signal N and an exit with 128+N are the same to the caller. */
const endingOf = (status: Status | undefined, usage: GroupUsage, asked: AskedFor, disk: DiskUse): Ending => {
  if (usage.outOfMemory) return { by: "limit", limit: "memory" }
  if (status === undefined) return { by: "infrastructure", message: "the container ended without a word" }
  if (status.word === "unstartable")
    return { by: "infrastructure", message: `the program could not be started (errno ${status.errno})` }
  if (status.word !== "ended")
    return { by: "infrastructure", message: status.word === "failed" ? status.message : "the bridge lost its place" }
  const code = status.signal > 0 ? 128 + status.signal : status.code
  return endingOfExit(code, asked, { pids: usage.pidsRefused, cpuMs: usage.cpuMs, disk })
}

const gone = async (parked: ParkedContainer): Promise<boolean> => {
  const until = Date.now() + TREE.goneMs
  while (parked.alive()) {
    if (Date.now() > until) return false
    await delay(2)
  }
  return true
}

export const sealedRun = async (options: SealedRunOptions): Promise<SealedRun> => {
  const { parked, shape, job, engineLost } = options
  const { pipes, group } = parked
  let stopped: Ending | undefined
  let lastResort: NodeJS.Timeout | undefined
  const stop = (ending: Ending): void => {
    if (stopped !== undefined) return
    stopped = ending
    pipes.job.write(STOP)
    lastResort = setTimeout(() => parked.kill(), BRIDGE_STOPS_WITHIN_MS)
  }
  const began = process.hrtime.bigint()
  pipes.job.write(encodeJob(wireJob(options)))
  const watch = watchRun({
    limits: job.limits,
    cpuMs: () => group.cpuMs(),
    processes: () => group.processes(),
    layers: options.layers,
    cancel: options.cancel,
    stop,
  })
  const onLost = (): void =>
    stop({
      by: "infrastructure",
      message: `the container engine was lost during the call: ${String(engineLost.reason)}`,
    })
  engineLost.addEventListener("abort", onLost, { once: true })
  if (engineLost.aborted) onLost()
  try {
    let status = await pipes.nextStatus()
    const first = status
    // "could not be started" comes before the ending it explains.
    if (status !== undefined && status.word !== "ended") status = await pipes.nextStatus()
    const usage = group.usage()
    let settled = status?.word === "ended"
    if (!settled) {
      parked.kill()
      settled = await gone(parked)
    }
    watch.end()
    const wallMs = Number(process.hrtime.bigint() - began) / 1e6
    const disk = settled ? await options.layers.usage() : { exceeded: false, full: false }
    const told = first?.word === "ended" ? first : (first ?? status)
    const asked = { executables: shape.executables, limits: { ...shape.limits, ...job.limits } }
    return { ending: stopped ?? endingOf(told, usage, asked, disk), wallMs, usage, settled }
  } finally {
    watch.end()
    clearTimeout(lastResort)
    engineLost.removeEventListener("abort", onLost)
  }
}
