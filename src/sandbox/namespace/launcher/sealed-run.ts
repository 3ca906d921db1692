/**
 * One job in one waiting sandbox: give it, watch it, and say how it ended once the whole tree is gone.
 *
 * Guarantees: says `settled` only after the sandbox's pid namespace is empty, so that nothing writes to the layer any
 * more; the deadline, cancellation and whatever else ends a run kill the tree at once.
 */
import { constants } from "node:os"
import type { Ending, Job, SandboxShape } from "../../backend.ts"
import { endingOfExit } from "../../endings.ts"
import type { DiskUse, OpenLayers } from "../../layers/call-layers.ts"
import type { GroupUsage } from "../../process/cgroup.ts"
import { encodeCall, type WireJob } from "../../process/job-wire.ts"
import { TREE } from "../../process/limits.ts"
import { processesOf } from "../../process/tree.ts"
import { watchRun } from "../../process/watch-run.ts"
import type { ProcessEnd } from "./parked-process.ts"
import { observingFilter } from "../../observe/calls.ts"
import type { Observed } from "../../observe/observed.ts"
import { observe } from "../../observe/observers.ts"
import type { WaitingSandbox } from "./waiting-sandbox.ts"
import { limitsOf } from "./wire-limits.ts"

interface SealedRun {
  readonly ending: Ending
  readonly wallMs: number
  readonly usage: GroupUsage | undefined
  /** every process of the sandbox was seen to be gone */
  readonly settled: boolean
  /** absent: it was not observed */
  readonly observed?: Observed
}

const wireJob = ({ job, shape }: SealedRunOptions, grouped: boolean): WireJob => ({
  program: job.argv[0] ?? shape.executables.program,
  folder: job.startsIn ?? "/workspace",
  filter: job.observe === true ? observingFilter() : new Uint8Array(),
  argv: job.argv,
  env: { ...job.env, PWD: job.startsIn ?? "/workspace" },
  limits: limitsOf(shape, job.limits, grouped),
  tty: job.stdio.kind === "terminal",
  privatePipes: shape.privatePipes,
})

interface SealedRunOptions {
  readonly sandbox: WaitingSandbox
  readonly shape: SandboxShape
  readonly job: Job
  /** aborted with an `Ending` */
  readonly cancel: AbortSignal
  readonly layers: Pick<OpenLayers, "watch" | "usage">
  /** the job is on its way */
  readonly started: () => void
}

export const sealedRun = async (options: SealedRunOptions): Promise<SealedRun> => {
  const { sandbox, shape, job, layers } = options
  const { parkedProcess } = sandbox.offered
  const grouped = parkedProcess.group !== undefined
  let stopped: Ending | undefined
  const late = Promise.withResolvers<"late">()
  let patience: NodeJS.Timeout | undefined
  const stop = (ending: Ending): void => {
    stopped ??= ending
    parkedProcess.kill()
    // The first process of the namespace ends with bubblewrap by its own wish only, and the tool can rewrite that
    // process's memory. Killed from here it ends, and everything in the namespace with it.
    sandbox.killFirst()
    patience ??= setTimeout(() => late.resolve("late"), TREE.goneMs)
  }
  const began = process.hrtime.bigint()
  giveTo(sandbox, wireJob(options, grouped))
  const observation = job.observe === true ? observed(options, stop) : undefined
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
    sandbox.killFirst()
    const tree = exit === "late" ? { gone: false } : await sandbox.treeEnd()
    watch.end()
    const wallMs = Number(process.hrtime.bigint() - began) / 1e6
    const usage = parkedProcess.group?.usage()
    if (exit === "late" || !tree.gone) return { ending: stopped ?? unseen, wallMs, usage, settled: false }
    const disk = await layers.usage()
    const became = await sandbox.became
    const cpuMs = usage?.cpuMs ?? tree.cpuMs
    const ending = stopped ?? endingOf({ exit, sandbox, became, usage, cpuMs, shape, job, disk })
    const seen = await observation
    return { ending, wallMs, usage, settled: true, ...(seen === undefined ? {} : { observed: seen }) }
  } finally {
    clearTimeout(patience)
    watch.end()
  }
}

const giveTo = (sandbox: WaitingSandbox, wire: WireJob): void => {
  if (sandbox.begun === undefined) return sandbox.give(wire)
  sandbox.begun.tell(encodeCall(wire.env, wire.folder))
}

/** A thread listens before the program is there; what cannot be listened to is not started. */
const observed = async (
  { sandbox, job }: SealedRunOptions,
  stop: (ending: Ending) => void,
): Promise<Observed | undefined> => {
  try {
    const number = await sandbox.listener
    if (number === undefined) return undefined
    const { parkedProcess } = sandbox.offered
    const watched = {
      workspace: typeof job.workspace === "string" ? job.workspace : job.workspace.path,
      startsScratch: job.startsScratch === true,
    }
    const observation = observe(processesOf(parkedProcess), number, watched)
    await observation.watching
    sandbox.goOn()
    return await observation.observed
  } catch (error) {
    stop({ by: "infrastructure", message: `it could not be observed: ${(error as Error).message}`, started: false })
    return undefined
  }
}

const unseen: Ending = { by: "infrastructure", message: "the sandbox's processes were not seen to end" }

interface Ended {
  readonly exit: ProcessEnd
  readonly sandbox: WaitingSandbox
  readonly became: Awaited<WaitingSandbox["became"]>
  readonly usage: GroupUsage | undefined
  readonly cpuMs: number | undefined
  readonly shape: SandboxShape
  readonly job: Job
  readonly disk: DiskUse
}
const notStarted = (why: string): Ending => ({
  by: "infrastructure",
  message: `the program could not be started (${why})`,
  started: false,
})
const endingOf = ({ exit, sandbox, became, usage, cpuMs, shape, job, disk }: Ended): Ending => {
  if (usage?.outOfMemory === true) return { by: "limit", limit: "memory" }
  if (became !== "program") return notStarted(became.failed)
  // Its own processes are held to the call's CPU time as well, and on a slow machine may come to it first.
  if (exit.signal === constants.signals.SIGXCPU) return { by: "limit", limit: "cpu" }
  if (exit.signal !== null) return { by: "infrastructure", message: `the sandbox was killed by signal ${exit.signal}` }
  const { exitCode } = sandbox.status
  if (exitCode === undefined) return notStarted(`exit ${exit.code}`)
  const asked = { executables: shape.executables, limits: { ...shape.limits, ...job.limits } }
  return endingOfExit(exitCode, asked, { pids: usage?.pidsRefused ?? 0, cpuMs, disk })
}
