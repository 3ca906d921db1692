/**
 * One job in one parked container: send it, watch it, and say how it ended once every process is gone.
 *
 * Guarantees: resolves only after the container's processes are dead, so that nothing writes to the layer any more;
 * deadline, cancellation, floods and the loss of the engine stop them at once, with or without the engine's help.
 * A container whose processes could not be seen to end is reported as not settled, and its layer must not be used.
 */
import { closeSync, constants, openSync } from "node:fs"
import { setTimeout as delay } from "node:timers/promises"
import type { Captured, Ending, Job, SandboxProfile } from "../backend.ts"
import { cpuBackstop, diskNearlyFull, endingOfExit } from "../endings.ts"
import type { DiskUse, OpenLayers } from "../layers/call-layers.ts"
import { capture } from "../process/capture.ts"
import type { GroupUsage } from "../process/cgroup.ts"
import type { Terminal } from "../process/terminal.ts"
import { RLIMIT } from "../../linux/syscalls.ts"
import { encodeJob, STOP, type Status, type WireJob } from "./job-wire.ts"
import type { ParkedContainer } from "./parked.ts"

export interface SealedRun {
  readonly ending: Ending
  readonly stdout: Captured
  readonly stderr: Captured
  readonly wallMs: number
  readonly usage: GroupUsage
  /** every process of the container was seen to be gone */
  readonly settled: boolean
}
export interface SealedRunOptions {
  readonly parked: ParkedContainer
  readonly profile: SandboxProfile
  readonly job: Job
  readonly filter: Uint8Array
  readonly terminal: Terminal | undefined
  readonly cancel: AbortSignal
  /** aborted, with the reason, when the engine is lost */
  readonly engineLost: AbortSignal
  readonly layers: Pick<OpenLayers, "watch" | "usage">
}

const CPU_POLL_MS = 50
/** The bridge kills within this; else its own process is killed from outside. */
const BRIDGE_STOPS_WITHIN_MS = 1_000
const GONE_WITHIN_MS = 20_000

const wireJob = (profile: SandboxProfile, job: Job, filter: Uint8Array): WireJob => ({
  program: job.argv[0] ?? profile.executables.program,
  folder: "/workspace",
  filter,
  argv: job.argv,
  env: { ...profile.env, PWD: "/workspace" },
  limits: [
    { resource: RLIMIT.FSIZE, value: BigInt(profile.limits.diskBytes) },
    ...cpuBackstop(profile.limits.cpuMs, true).map(({ hard }) => ({ resource: RLIMIT.CPU, value: BigInt(hard) })),
  ],
  tty: profile.tty,
})

/** As a shell and bubblewrap tell it: a death by signal N and an exit with 128+N are the same to the caller. */
export const endingOf = (
  status: Status | undefined,
  usage: GroupUsage,
  profile: SandboxProfile,
  disk: DiskUse,
): Ending => {
  if (usage.outOfMemory) return { by: "limit", limit: "memory" }
  if (status === undefined) return { by: "infrastructure", message: "the container ended without a word" }
  if (status.word === "unstartable")
    return { by: "infrastructure", message: `the program could not be started (errno ${status.errno})` }
  if (status.word !== "ended")
    return { by: "infrastructure", message: status.word === "failed" ? status.message : "the bridge lost its place" }
  const code = status.signal > 0 ? 128 + status.signal : status.code
  return endingOfExit(code, profile, { pids: usage.pidsRefused, cpuMs: usage.cpuMs, disk })
}

const gone = async (parked: ParkedContainer): Promise<boolean> => {
  const until = Date.now() + GONE_WITHIN_MS
  while (parked.alive()) {
    if (Date.now() > until) return false
    await delay(2)
  }
  return true
}

/** A terminal ends when its last user closes it; where no program ever opened it, this is the last user. */
const hangUp = (slave: string): void => {
  try {
    closeSync(openSync(slave, constants.O_RDWR | constants.O_NOCTTY))
  } catch {
    // It ended already.
  }
}

export const sealedRun = async (options: SealedRunOptions): Promise<SealedRun> => {
  const { parked, profile, job, terminal, cancel, engineLost } = options
  const { limits } = profile
  const { pipes, group } = parked
  let stopped: Ending | undefined
  let lastResort: NodeJS.Timeout | undefined
  const stop = (ending: Ending): void => {
    if (stopped !== undefined) return
    stopped = ending
    pipes.job.write(STOP)
    lastResort = setTimeout(() => parked.kill(), BRIDGE_STOPS_WITHIN_MS)
  }
  const flood = (): void => stop({ by: "limit", limit: "output" })
  const stdout = capture(terminal?.output ?? pipes.out, limits.outputBytes, flood)
  const stderr = capture(pipes.err, limits.outputBytes, flood)
  if (terminal !== undefined) pipes.out.resume()

  const started = process.hrtime.bigint()
  pipes.job.write(encodeJob(wireJob(profile, job, options.filter)))
  if (job.stdin.length === 0) pipes.input.destroy()
  else pipes.input.write(job.stdin, () => pipes.input.destroy())

  const deadline = setTimeout(() => stop({ by: "limit", limit: "wall" }), limits.wallMs)
  const { cpuMs } = limits
  const cpuWatch =
    cpuMs === undefined
      ? undefined
      : setInterval(() => {
          if ((group.cpuMs() ?? 0) > cpuMs) stop({ by: "limit", limit: "cpu" })
        }, CPU_POLL_MS)
  const meter = options.layers.watch({
    processes: () => group.processes(),
    exceeded: (what) => stop(what === "limit" ? { by: "limit", limit: "disk" } : diskNearlyFull),
  })
  const onCancel = (): void => stop({ by: "cancelled" })
  const onLost = (): void =>
    stop({
      by: "infrastructure",
      message: `the container engine was lost during the call: ${String(engineLost.reason)}`,
    })
  cancel.addEventListener("abort", onCancel, { once: true })
  engineLost.addEventListener("abort", onLost, { once: true })
  if (cancel.aborted) onCancel()
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
    meter.stop()
    const disk = settled ? await options.layers.usage() : { exceeded: false, full: false }
    if (terminal !== undefined) {
      terminal.output.once("error", () => undefined)
      hangUp(terminal.slave)
    }
    if (settled) await Promise.all([stdout.ended, stderr.ended])
    const wallMs = Number(process.hrtime.bigint() - started) / 1e6
    const told = first?.word === "ended" ? first : (first ?? status)
    const ending: Ending = stopped ?? endingOf(told, usage, profile, disk)
    return { ending, stdout: stdout.result(), stderr: stderr.result(), wallMs, usage, settled }
  } finally {
    meter.stop()
    clearTimeout(deadline)
    clearTimeout(lastResort)
    clearInterval(cpuWatch)
    cancel.removeEventListener("abort", onCancel)
    engineLost.removeEventListener("abort", onLost)
    terminal?.output.destroy()
  }
}
