/**
 * The launcher's sandboxes, from the parked process that one is given to the end of its layers.
 *
 * Guarantees: a sandbox that is refused, breaks or is let go of holds nothing any more: no process, mount, group or user;
 * one whose processes were not seen to end keeps its user, which nobody else may then be.
 */
import { chownSync } from "node:fs"
import { join } from "node:path"
import type { CommitResult, Denial, Ending, SandboxShape } from "../../backend.ts"
import { denialsOf } from "../../denials.ts"
import { unmetLimit } from "../../group-advice.ts"
import { layerRefusal, openLayers, type OpenLayers } from "../../layers/call-layers.ts"
import type { SealedLayers } from "../../layers/sealed-layers.ts"
import type { HoldAnswer, HoldRequest } from "../../layers/held.ts"
import { deniedAttempts } from "../../network/denied-attempts.ts"
import { rolesOf } from "../../network/listeners.ts"
import { currentNetwork } from "../../network/netns.ts"
import { signalProgram } from "../../process/signal.ts"
import { PARKED } from "./limits.ts"
import { openPremises, type Premises } from "./premises.ts"
import type { LauncherFacts, LauncherOptions, PrepareAnswer, Refusal, Request, RunAnswer } from "./protocol.ts"
import { bwrapPath, sealedRun } from "./sealed-run.ts"
import { type OfferedProcess, ParkedProcesses, type ParkedProcessesOptions } from "./parked-processes.ts"

interface Sandbox {
  readonly id: number
  readonly offered: OfferedProcess
  readonly shape: SandboxShape
  readonly root: string
  /** aborted with the `Ending` that was asked for */
  readonly cancel: AbortController
  /** number of the sandbox's first process */
  first?: number
  layers?: OpenLayers
  sealed?: SealedLayers
  runs?: boolean
  over?: true
  /** nobody wants it any more: it goes when its run has ended */
  dropped?: true
  /** its processes may still be there */
  unsettled?: true
}

type RunRequest = Extract<Request, { op: "run" }>

export class Sandboxes {
  readonly #premises: Premises
  readonly #parkedProcesses: ParkedProcesses
  readonly #sandboxes = new Map<number, Sandbox>()
  #serial = 0

  constructor(options: LauncherOptions, host: Pick<ParkedProcessesOptions, "handOver" | "gone">) {
    this.#premises = openPremises(options)
    const { groups, users } = this.#premises
    this.#parkedProcesses = new ParkedProcesses({ groups, users, homeNetwork: currentNetwork(), ...host })
  }

  facts(): LauncherFacts {
    return this.#premises.facts
  }
  park(): void {
    this.#parkedProcesses.park()
  }

  async prepare(shape: SandboxShape): Promise<PrepareAnswer | Refusal> {
    const unmet = unmetLimit(shape.required, this.#premises.groups)
    if (unmet !== undefined) return unmet
    let root: string
    try {
      const needed = new Set([...this.#sandboxes.values()].map((waiting) => waiting.root))
      root = this.#premises.roots.get(shape.executables, needed)
    } catch (error) {
      return {
        ok: false,
        control: "root-view",
        message: `the program's view of the system could not be built: ${(error as Error).message}`,
        fix: "check that the program and its folder exist and are readable",
      }
    }
    const offered = await this.#parkedProcesses.take(rolesOf(shape.network))
    // Not now: making the next parked process would hold up the call that took this one.
    setTimeout(() => this.park(), PARKED.refillMs)
    try {
      offered.parkedProcess.network.watch(shape.network)
    } catch (error) {
      offered[Symbol.dispose]()
      throw error
    }
    this.#serial += 1
    const id = this.#serial
    this.#sandboxes.set(id, { id, offered, shape, root, cancel: new AbortController() })
    return { ok: true, sandbox: id, parkedProcess: offered.number, streams: offered.parkedProcess.streams }
  }

  async run(request: RunRequest, started: () => void): Promise<RunAnswer | Refusal> {
    const sandbox = this.#known(request.sandbox)
    sandbox.runs = true
    try {
      return await this.#run(sandbox, request, () => {
        started()
        this.park()
      })
    } catch (error) {
      sandbox.dropped = true
      const refusal = layerRefusal(error)
      if (refusal !== undefined) return refusal
      throw error
    } finally {
      sandbox.runs = false
      sandbox.over = true
      sandbox.offered.parkedProcess.dispose()
      if (sandbox.dropped === true) this.discard(sandbox.id)
    }
  }

  async #run(sandbox: Sandbox, request: RunRequest, started: () => void): Promise<RunAnswer> {
    const { job, terminal } = request
    const { offered, shape, cancel } = sandbox
    offered.parkedProcess.closeStreams()
    const { base, layers: place, owners, blank, filters } = this.#premises
    const identity = offered.lease?.identity
    this.#serial += 1
    const layers = await openLayers({
      at: join(base, `c${this.#serial}`),
      place,
      workspace: job.workspace,
      job,
      memoryBytes: shape.limits.memoryBytes,
      identity,
      owners,
      blank: base,
      transactions: request.transactions,
    })
    sandbox.layers = layers
    if (terminal !== undefined && identity !== undefined) chownSync(terminal, identity.uid, identity.gid)
    const run = await sealedRun({
      parkedProcess: offered.parkedProcess,
      shape,
      job,
      paths: { ...layers.paths, root: sandbox.root, blank },
      filter: shape.executables.children ? filters.withChildren : filters.withoutChildren,
      terminal,
      cancel: cancel.signal,
      layers,
      started,
      onFirst: (pid) => {
        sandbox.first = pid
      },
    })
    const asked = { executables: shape.executables, limits: { ...shape.limits, ...job.limits } }
    const denied: Denial[] = [
      ...deniedAttempts(offered.parkedProcess.network.attempts(), shape.network),
      ...denialsOf(run.ending, asked, { pids: run.usage?.pidsRefused ?? 0 }),
    ]
    const { cpuMs, peakMemoryBytes } = run.usage ?? {}
    const usage = {
      wallMs: run.wallMs,
      ...(cpuMs === undefined ? {} : { cpuMs }),
      ...(peakMemoryBytes === undefined ? {} : { peakMemoryBytes }),
    }
    if (!run.settled) {
      sandbox.unsettled = true
      return { ok: true, ending: run.ending, denied, usage }
    }
    const sealed = await layers.seal()
    sandbox.sealed = sealed
    const { writes, home } = sealed
    return { ok: true, ending: run.ending, denied, usage, writes, ...(home === undefined ? {} : { home }) }
  }

  signal(id: number, name: NodeJS.Signals): void {
    const sandbox = this.#sandboxes.get(id)
    if (sandbox === undefined) return
    const target = { first: () => sandbox.first, over: () => sandbox.over === true, starter: bwrapPath }
    void signalProgram(name, target).catch(() => undefined)
  }

  stop(id: number, ending: Ending): void {
    this.#sandboxes.get(id)?.cancel.abort(ending)
  }

  async keepHome(id: number): Promise<CommitResult> {
    const { sealed } = this.#known(id)
    if (sealed === undefined) throw new Error("a home is kept when the sandbox has ended")
    return sealed.keepHome()
  }

  async commit(id: number): Promise<CommitResult> {
    const { sealed, cancel } = this.#known(id)
    if (sealed === undefined) throw new Error("commit before the sandbox ended")
    try {
      return await sealed.commit(cancel.signal)
    } finally {
      this.discard(id)
    }
  }

  async hold(id: number, request: HoldRequest): Promise<HoldAnswer> {
    const { sealed } = this.#known(id)
    if (sealed === undefined) throw new Error("hold before the sandbox ended")
    const answer = await sealed.hold(request)
    if (answer.ok) this.discard(id)
    return answer
  }

  discard(id: number): void {
    const sandbox = this.#sandboxes.get(id)
    if (sandbox === undefined) return
    if (sandbox.runs === true) {
      // Its processes are still there: whoever waited for them gave up.
      sandbox.dropped = true
      sandbox.cancel.abort({ by: "cancelled" } satisfies Ending)
      return
    }
    this.#sandboxes.delete(id)
    sandbox.offered.parkedProcess.dispose()
    sandbox.layers?.discard()
    if (sandbox.unsettled !== true) sandbox.offered.lease?.release()
  }

  #known(id: number): Sandbox {
    const sandbox = this.#sandboxes.get(id)
    if (sandbox === undefined) throw new Error(`there is no sandbox ${id}`)
    return sandbox
  }
}
