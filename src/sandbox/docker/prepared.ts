/**
 * Prepared → Running → Exited for one container: the call's layers are mounted late, the job runs, its writes are read.
 *
 * Guarantees: a container runs one job; one that ran nothing, or could not, is let go of at once.
 */
import type { ExitedSandbox, Job, PreparedSandbox, SandboxProfile, Unavailable } from "../backend.ts"
import { denialsOf } from "../denials.ts"
import { type FolderIdentity, lookAt } from "../folder.ts"
import { layerRefusal, openLayers, type OpenLayers } from "../layers/call-layers.ts"
import type { OwnerMaps } from "../layers/overlay.ts"
import type { LayerPlace } from "../layers/store.ts"
import type { Transactions } from "../layers/transactions.ts"
import { deniedAttempts } from "../network/denied-attempts.ts"
import { openTerminal, type Terminal } from "../process/terminal.ts"
import type { OpenChannel } from "./channel.ts"
import type { EngineWatch } from "./engine-watch.ts"
import { Exited } from "./exited.ts"
import { hasUnfitArgument } from "./job-wire.ts"
import type { ParkedContainer } from "./parked.ts"
import { sealedRun } from "./sealed-run.ts"

export interface PreparedOptions {
  readonly profile: SandboxProfile
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

const unusable = (workspace: string, error: unknown): Unavailable => ({
  ok: false,
  control: "workspace",
  message: `the workspace ${workspace} cannot be used: ${(error as Error).message}`,
  fix: "name an existing folder",
})

interface Attached {
  readonly layers: OpenLayers
  readonly terminal: Terminal | undefined
}

const attach = async (options: PreparedOptions, workspace: FolderIdentity): Promise<Attached> => {
  const { parked, profile, owners, blank } = options
  const { user } = parked
  const layers = await openLayers({
    at: parked.berth.slot,
    place: options.place,
    workspace,
    profile,
    identity: { uid: user, gid: user },
    owners,
    blank,
    transactions: await options.transactions.forCall(profile.home?.dir),
  })
  try {
    const { paths } = layers
    for (const place of ["workspace", "home", "tmp", "shm"] as const) parked.berth.show(place, paths[place])
    const terminal = profile.tty ? openTerminal({ uid: user, gid: user }) : undefined
    if (terminal !== undefined) parked.berth.showTerminal(terminal.slave)
    parked.berth.cover(paths.files)
    return { layers, terminal }
  } catch (error) {
    layers.discard()
    throw error
  }
}

export class Prepared implements PreparedSandbox {
  readonly ok = true
  readonly channel
  readonly #options: PreparedOptions
  #used = false
  constructor(options: PreparedOptions) {
    this.#options = options
    this.channel = options.channel.channel
  }
  async run(job: Job, cancel: AbortSignal): Promise<ExitedSandbox | Unavailable> {
    if (this.#used) throw new Error("a sandbox runs one job")
    this.#used = true
    const { parked, profile, channel, watch } = this.#options
    const giveUp = (answer: Unavailable): Unavailable => {
      this.#options.done()
      return answer
    }
    let layers: OpenLayers | undefined
    try {
      if (hasUnfitArgument(job.argv)) {
        return giveUp({
          ok: false,
          control: "arguments",
          message: "an argument holds a NUL character, which no program can be given",
          fix: "remove it",
        })
      }
      let workspace: FolderIdentity
      try {
        workspace = job.folder ?? lookAt(job.workspace)
      } catch (error) {
        return giveUp(unusable(job.workspace, error))
      }
      const attached = await attach(this.#options, workspace)
      layers = attached.layers
      const watching = watch.during()
      const run = await sealedRun({
        parked,
        profile,
        job,
        filter: this.#options.filter,
        terminal: attached.terminal,
        cancel,
        engineLost: watching.lost,
        layers,
      }).finally(() => watching.end())
      const denied = [
        ...deniedAttempts(parked.network.attempts(), profile.network),
        ...denialsOf(run.ending, profile, { pids: run.usage.pidsRefused }),
      ]
      parked.berth.hide()
      return new Exited({ run, denied, layers: run.settled ? await layers.seal() : layers, done: this.#options.done })
    } catch (error) {
      layers?.discard()
      const refusal = layerRefusal(error)
      if (refusal !== undefined) return giveUp(refusal)
      this.#options.done()
      throw error
    } finally {
      channel.close()
    }
  }
  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#used) return
    this.#used = true
    this.#options.channel.close()
    this.#options.done()
  }
}
