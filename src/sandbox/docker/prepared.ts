/**
 * Prepared → Running → Exited for one container: the call's layers are mounted late, the job runs, its writes are read.
 *
 * Guarantees: a container runs one job; one that ran nothing, or could not, is let go of at once.
 */
import { realpathSync, statfsSync, statSync } from "node:fs"
import type { ExitedSandbox, Job, PreparedSandbox, Unavailable } from "../backend.ts"
import { denialsOf } from "../denials.ts"
import { beginSnapshot, LayerRefused, readWriteSet } from "../effects/index.ts"
import type { WriteSet } from "../effects/types.ts"
import { deniedAttempts } from "../namespace/denied-attempts.ts"
import { openSlot } from "../namespace/slot.ts"
import { openTerminal } from "../namespace/terminal.ts"
import { hideFromView } from "../view.ts"
import { LayerUnavailable, type OwnerMaps } from "../workspace-layer.ts"
import type { OpenChannel } from "./channel.ts"
import type { EngineWatch } from "./engine-watch.ts"
import { Exited, type ExitedOptions, type Layers } from "./exited.ts"
import { hasUnfitArgument } from "./job-wire.ts"
import type { ParkedContainer } from "./parked.ts"
import { sealedRun } from "./sealed-run.ts"

export interface PreparedOptions extends ExitedOptions {
  readonly parked: ParkedContainer
  readonly channel: OpenChannel
  readonly filter: Uint8Array
  readonly user: number
  readonly owners: OwnerMaps
  readonly watch: EngineWatch
  /** a folder for blank entries that hide others */
  readonly blank: string
}

const NO_WRITES: WriteSet = { effects: [], bytes: 0 }
/** Less room than this left means that the limit was what stopped the tool. */
const FULL_BELOW = { bytes: 65_536, inodes: 8 } as const

const unusable = (workspace: string, error: unknown): Unavailable => ({
  ok: false,
  control: "workspace",
  message: `the workspace ${workspace} cannot be used: ${(error as Error).message}`,
  fix: "name an existing folder",
})

const attach = async (options: PreparedOptions, workspace: string): Promise<Layers> => {
  const { parked, profile, user, owners } = options
  const snapshot = beginSnapshot(workspace)
  const homeSnapshot = profile.home === undefined ? undefined : beginSnapshot(profile.home.dir)
  const slot = await openSlot({ at: parked.berth.slot, workspace, profile, identity: { uid: user, gid: user }, owners })
  try {
    hideFromView({
      source: workspace,
      merged: slot.workspace.merged,
      view: profile.view,
      write: profile.write,
      blank: options.blank,
    })
    const { paths } = slot
    for (const place of ["workspace", "home", "tmp", "shm"] as const) parked.berth.show(place, paths[place])
    const terminal = profile.tty ? openTerminal({ uid: user, gid: user }) : undefined
    if (terminal !== undefined) parked.berth.showTerminal(terminal.slave)
    parked.berth.cover(paths.files)
    return { slot, workspace, snapshot, homeSnapshot, terminal }
  } catch (error) {
    slot.dispose()
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
    let layers: Layers | undefined
    try {
      if (hasUnfitArgument(job.argv)) {
        return giveUp({
          ok: false,
          control: "arguments",
          message: "an argument holds a NUL character, which no program can be given",
          fix: "remove it",
        })
      }
      let workspace: string
      try {
        workspace = realpathSync(job.workspace)
        if (!statSync(workspace).isDirectory()) throw new Error("it is not a folder")
      } catch (error) {
        return giveUp(unusable(job.workspace, error))
      }
      layers = await attach(this.#options, workspace)
      const { slot } = layers
      const diskFull = (): boolean => {
        const { bavail, bsize, ffree } = statfsSync(slot.paths.tmp)
        return bavail * bsize < FULL_BELOW.bytes || ffree < FULL_BELOW.inodes
      }
      const watching = watch.during()
      const run = await sealedRun({
        parked,
        profile,
        job,
        filter: this.#options.filter,
        terminal: layers.terminal,
        cancel,
        engineLost: watching.lost,
        diskFull,
      }).finally(() => watching.end())
      const denied = [
        ...deniedAttempts(parked.network.attempts(), profile.network),
        ...denialsOf(run.ending, profile, { pids: run.usage.pidsRefused, disk: diskFull() }),
      ]
      parked.berth.hide()
      slot.seal()
      const read = (lower: string, layer: { upper: string; xattrPrefix: "trusted" | "user" }): Promise<WriteSet> =>
        readWriteSet({ lower, upper: layer.upper, xattrPrefix: layer.xattrPrefix })
      const writes = run.settled ? await read(workspace, slot.workspace) : NO_WRITES
      const homeWrites = run.settled && slot.home !== undefined ? await read(slot.home.source, slot.home) : undefined
      return new Exited(this.#options, layers, run, denied, writes, homeWrites)
    } catch (error) {
      layers?.slot.dispose()
      if (error instanceof LayerUnavailable)
        return giveUp({ ok: false, control: "workspace-layer", message: error.message, fix: error.fix })
      if (error instanceof LayerRefused)
        return giveUp({
          ok: false,
          control: "write-set",
          message: error.message,
          fix: "let the tool write less, or in a workspace of its own",
        })
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
