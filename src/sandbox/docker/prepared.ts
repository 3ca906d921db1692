/**
 * Prepared → Running → Exited for one container: the call's layers are mounted late, the job runs, its writes are read.
 *
 * Guarantees: a container runs one job; one that ran nothing, or could not, is let go of at once.
 */
import { chownSync } from "node:fs"
import { Socket } from "node:net"
import type { ExitedSandbox, Job, PreparedSandbox, RunningSandbox, SandboxShape, Unavailable } from "../backend.ts"
import { denialsOf } from "../denials.ts"
import type { FolderIdentity } from "../folder.ts"
import { layerRefusal, openLayers, type OpenLayers } from "../layers/call-layers.ts"
import { openEmptyMounts } from "../layers/empty-mounts.ts"
import type { OwnerMaps } from "../layers/overlay.ts"
import type { LayerPlace } from "../layers/store.ts"
import type { Transactions } from "../layers/transactions.ts"
import { mayBeReached } from "../network/reach-inside.ts"
import { deniedAttempts } from "../network/denied-attempts.ts"
import { openTerminal, type Terminal } from "../process/terminal.ts"
import { homeFolderOf, unfitJob } from "../profile.ts"
import { cancelledWhile } from "../set-up.ts"
import { workspaceOf } from "../workspace.ts"
import type { OpenChannel } from "./container/channel.ts"
import type { EngineWatch } from "./engine/engine-watch.ts"
import { Exited } from "./exited.ts"
import type { ParkedContainer } from "./container/parked.ts"
import { RunningProgram } from "../process/running-program.ts"
import { signalProgram } from "../process/signal.ts"
import { sealedRun } from "./sealed-run.ts"

interface PreparedOptions {
  readonly shape: SandboxShape
  readonly transactions: Transactions
  /** called once, when the container is of no more use */
  readonly done: () => void
  readonly parked: ParkedContainer
  readonly channel: OpenChannel
  readonly filter: Uint8Array
  readonly owners: OwnerMaps
  readonly place: LayerPlace
  readonly watch: EngineWatch
  /** a folder for blank entries that hide others */
  readonly blank: string
}

const unobserved = ({ observe }: Job): Unavailable | undefined =>
  observe === true
    ? {
        ok: false,
        control: "observe",
        message: "what a tool asks the kernel for is not observed in containers",
        fix: "use the namespace backend, or leave `observe` out",
      }
    : undefined

interface Attached {
  readonly layers: OpenLayers
  readonly terminal: Terminal | undefined
}

const attach = async (
  options: PreparedOptions,
  job: Job,
  workspace: FolderIdentity,
  cancel: AbortSignal,
): Promise<Attached> => {
  const { parked, shape, owners, blank } = options
  const transactions = await options.transactions.forCall(homeFolderOf(job), cancel)
  const { user } = parked
  const layers = await openLayers({
    empty: await openEmptyMounts({
      at: parked.containerMounts.slot,
      place: options.place,
      identity: { uid: user, gid: user },
    }),
    workspace,
    job,
    memoryBytes: shape.limits.memoryBytes,
    owners,
    blank,
    transactions,
  })
  let terminal: Terminal | undefined
  try {
    const { paths } = layers
    for (const place of ["workspace", "home", "tmp", "shm"] as const) parked.containerMounts.show(place, paths[place])
    if (job.stdio.kind === "terminal") {
      terminal = openTerminal(job.stdio)
      chownSync(terminal.slave, user, user)
      parked.containerMounts.showTerminal(terminal.slave)
    }
    parked.containerMounts.cover(paths.files)
    return { layers, terminal }
  } catch (error) {
    terminal?.close()
    layers.discard()
    throw error
  }
}

export class Prepared implements PreparedSandbox {
  readonly ok = true
  readonly channel
  readonly #options: PreparedOptions
  #used = false
  #settled = false
  constructor(options: PreparedOptions) {
    this.#options = options
    this.channel = options.channel.channel
  }
  async start(job: Job, cancel: AbortSignal): Promise<RunningSandbox | Unavailable> {
    if (this.#used) throw new Error("a sandbox runs one job")
    this.#used = true
    const workspace = unobserved(job) ?? unfitJob(job) ?? workspaceOf(job)
    if ("ok" in workspace) return this.#refused(workspace)
    let attached: Attached
    try {
      attached = await attach(this.#options, job, workspace, cancel)
    } catch (error) {
      if (cancel.aborted) return this.#refused(cancelledWhile("the program was started"))
      return this.#refused(layerRefusal(error), error)
    }
    const stopped = new AbortController()
    const { parked, shape } = this.#options
    const { input, out, err, toTool, fromTool } = parked.pipes
    parked.pipes.give()
    if (!shape.privatePipes) for (const stream of [toTool, fromTool]) stream.destroy()
    return new RunningProgram({
      streams: { stdin: input, stdout: out, stderr: err },
      pipes: shape.privatePipes ? { toTool, fromTool } : undefined,
      terminal: attached.terminal,
      cancel,
      exited: this.#run(job, attached.layers, stopped.signal),
      settled: () => this.#settled,
      signal: (name, over) => signalProgram(name, { first: () => parked.pid, over }),
      stop: (ending) => stopped.abort(ending),
      reach: async (port) => {
        const fd = mayBeReached(port, shape.network) ? parked.network.connectInside(port) : undefined
        return fd === undefined ? undefined : new Socket({ fd, readable: true, writable: true })
      },
      glance: async () => ({
        written: await attached.layers.written(),
        denied: deniedAttempts(parked.network.attempted(), shape.network),
      }),
    })
  }
  #release(): void {
    this.#options.channel.close()
    this.#options.done()
  }
  /** What happened has a name to be told by, or is an error. */
  #refused(refusal: Unavailable | undefined, error?: unknown): Unavailable {
    this.#release()
    if (refusal === undefined) throw error
    return refusal
  }
  async #run(job: Job, layers: OpenLayers, stopped: AbortSignal): Promise<ExitedSandbox | Unavailable> {
    const { parked, shape, channel, watch, filter, done } = this.#options
    const watching = watch.during()
    try {
      const run = await sealedRun({
        parked,
        shape,
        job,
        filter,
        cancel: stopped,
        engineLost: watching.lost,
        layers,
      })
      this.#settled = run.settled
      const asked = { executables: shape.executables, limits: { ...shape.limits, ...job.limits } }
      const denied = [
        ...deniedAttempts(parked.network.attempts(), shape.network),
        ...denialsOf(run.ending, asked, { pids: run.usage.pidsRefused }),
      ]
      parked.containerMounts.hide()
      channel.close()
      return new Exited({ run, denied, layers: run.settled ? await layers.seal() : layers, done })
    } catch (error) {
      layers.discard()
      return this.#refused(layerRefusal(error), error)
    } finally {
      watching.end()
    }
  }
  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#used) return
    this.#used = true
    this.#release()
  }
}
