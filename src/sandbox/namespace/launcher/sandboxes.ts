/**
 * The launcher's sandboxes, from the parked process that one is given to the end of its layers.
 *
 * Guarantees: a sandbox that is refused, breaks or is let go of holds nothing any more: no process, mount, group or user;
 * one whose processes were not seen to end keeps its user, which nobody else may then be.
 */
import { chownSync } from "node:fs"
import { Socket } from "node:net"
import { join } from "node:path"
import type { CommitResult, Denial, Ending, SandboxShape } from "../../backend.ts"
import { denialsOf } from "../../denials.ts"
import { unmetLimit } from "../../group-advice.ts"
import { layerRefusal, openLayers, type OpenLayers } from "../../layers/call-layers.ts"
import type { SealedLayers } from "../../layers/sealed-layers.ts"
import type { HoldAnswer, HoldRequest } from "../../layers/held.ts"
import type { LookBounds } from "../../layers/look.ts"
import { deniedAttempts } from "../../network/denied-attempts.ts"
import { mayBeReached } from "../../network/reach-inside.ts"
import { rolesOf } from "../../network/listeners.ts"
import { currentNetwork } from "../../network/netns.ts"
import { signalProgram } from "../../process/signal.ts"
import { MS, mount } from "../../../linux/mounts.ts"
import { PARKED } from "./limits.ts"
import { openPremises, type Premises } from "./premises.ts"
import type {
  GlanceAnswer,
  LookAnswer,
  LauncherFacts,
  LauncherOptions,
  PrepareAnswer,
  ReachAnswer,
  Refusal,
  Request,
  RunAnswer,
} from "./protocol.ts"
import { type OfferedProcess, ParkedProcesses, type ParkedProcessesOptions } from "./parked-processes.ts"
import { ReadySandboxes } from "./ready-sandboxes.ts"
import { warmObserver } from "../../observe/observers.ts"
import { sealedRun } from "./sealed-run.ts"
import { makeWaitingSandbox, SandboxNotMade, type WaitingSandbox } from "./waiting-sandbox.ts"

interface Sandbox {
  readonly id: number
  readonly offered: OfferedProcess
  /** made before there was a call, or when it is run */
  waiting: WaitingSandbox | undefined
  readonly shape: SandboxShape
  readonly root: string
  /** aborted with the `Ending` that was asked for */
  readonly cancel: AbortController
  /** it became the program */
  begun?: true
  layers?: OpenLayers
  sealed?: SealedLayers
  runs?: boolean
  over?: true
  /** nobody wants it any more: it goes when its run has ended */
  dropped?: true
}

type RunRequest = Extract<Request, { op: "run" }>

const notMade = ({ message }: SandboxNotMade): Refusal => ({
  ok: false,
  control: "sandbox",
  message: `the sandbox could not be made: ${message}`,
  fix: "run `caisson doctor`",
})

export class Sandboxes {
  readonly #premises: Premises
  readonly #parkedProcesses: ParkedProcesses
  readonly #ready: ReadySandboxes
  readonly #sandboxes = new Map<number, Sandbox>()
  #serial = 0
  #refilling: { readonly at: number; readonly timer: NodeJS.Timeout } | undefined

  constructor(options: LauncherOptions, host: Pick<ParkedProcessesOptions, "handOver" | "gone">) {
    this.#premises = openPremises(options)
    const { groups, users, waiter } = this.#premises
    const { interpreter } = waiter
    this.#parkedProcesses = new ParkedProcesses({ groups, users, interpreter, homeNetwork: currentNetwork(), ...host })
    this.#ready = new ReadySandboxes({
      make: (shape, root, begun) => this.#makeReady(shape, root, begun),
      drop(sandbox) {
        sandbox.dispose()
        host.gone(sandbox.offered.number)
      },
    })
  }

  facts(): LauncherFacts {
    return this.#premises.facts
  }
  park(): void {
    this.#parkedProcesses.park()
  }
  /** Nothing that a call waits for is under way then: make what the next ones will want. */
  #refillIn(ms: number): void {
    const at = performance.now() + ms
    if (this.#refilling !== undefined && this.#refilling.at <= at) return
    clearTimeout(this.#refilling?.timer)
    const timer = setTimeout(() => {
      this.#refilling = undefined
      this.park()
      this.#ready.refill()
    }, ms)
    this.#refilling = { at, timer }
  }

  async #makeReady(shape: SandboxShape, root: string, begun: boolean): Promise<WaitingSandbox> {
    if (!this.#premises.roots.has(root)) throw new Error("its view of the root is not kept any more")
    return this.#make(await this.#parkedProcesses.take(rolesOf(shape.network)), shape, root, begun)
  }
  async #make(offered: OfferedProcess, shape: SandboxShape, root: string, begun = false): Promise<WaitingSandbox> {
    this.#serial += 1
    const at = join(this.#premises.base, `c${this.#serial}`)
    return makeWaitingSandbox({ offered, shape, root, at, premises: this.#premises, begun })
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
    const waiting = this.#ready.take(shape, root)
    const offered = waiting?.offered ?? (await this.#parkedProcesses.take(rolesOf(shape.network)))
    // Not now: making the next one would hold up the call that took this one.
    setTimeout(() => this.park(), PARKED.refillMs)
    try {
      offered.parkedProcess.network.watch(shape.network)
    } catch (error) {
      if (waiting === undefined) offered[Symbol.dispose]()
      else waiting.dispose()
      throw error
    }
    this.#serial += 1
    const id = this.#serial
    this.#sandboxes.set(id, { id, offered, waiting, shape, root, cancel: new AbortController() })
    return { ok: true, sandbox: id, parkedProcess: offered.number, streams: offered.parkedProcess.streams }
  }

  async run(request: RunRequest, started: () => void): Promise<RunAnswer | Refusal> {
    const sandbox = this.#known(request.sandbox)
    sandbox.runs = true
    try {
      return await this.#run(sandbox, request, () => {
        started()
        this.#ready.used(sandbox.shape, sandbox.root)
        // A call that goes on does not keep the next ones from theirs.
        this.#refillIn(PARKED.refillMs)
      })
    } catch (error) {
      sandbox.dropped = true
      const refusal = error instanceof SandboxNotMade ? notMade(error) : layerRefusal(error)
      if (refusal !== undefined) return refusal
      throw error
    } finally {
      sandbox.runs = false
      sandbox.over = true
      sandbox.waiting?.end()
      if (sandbox.dropped === true) this.discard(sandbox.id)
      // Its end is judged, and its layer written, before what the next ones want is made: that holds up this thread.
      else this.#refillIn(PARKED.refillMs)
    }
  }

  async #run(sandbox: Sandbox, request: RunRequest, started: () => void): Promise<RunAnswer> {
    const { job, terminal } = request
    if (job.observe === true) warmObserver()
    const { offered, shape, cancel } = sandbox
    const waiting = (sandbox.waiting ??= await this.#make(offered, shape, sandbox.root))
    offered.parkedProcess.closeStreams()
    const { mounts } = waiting
    waiting.begun?.uncover()
    const { base, owners } = this.#premises
    const identity = offered.lease?.identity
    const layers = await openLayers({
      empty: mounts,
      workspace: job.workspace,
      job,
      memoryBytes: shape.limits.memoryBytes,
      owners,
      blank: base,
      transactions: request.transactions,
    })
    sandbox.layers = layers
    if (terminal !== undefined) {
      if (identity !== undefined) chownSync(terminal, identity.uid, identity.gid)
      mount(terminal, mounts.terminal, null, MS.BIND, null)
    }
    layers.appear()
    void waiting.became.then(() => (sandbox.begun = true))
    const run = await sealedRun({ sandbox: waiting, shape, job, cancel: cancel.signal, layers, started })
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
    if (!run.settled) return { ok: true, ending: run.ending, denied, usage }
    const sealed = await layers.seal()
    sandbox.sealed = sealed
    const { writes, home, homeAfter, exchanged } = sealed
    return {
      ok: true,
      ending: run.ending,
      denied,
      usage,
      writes,
      ...(home === undefined ? {} : { home }),
      ...(homeAfter === undefined ? {} : { homeAfter }),
      ...(exchanged === undefined ? {} : { exchanged }),
      ...(run.observed === undefined ? {} : { observed: run.observed }),
    }
  }

  async glance(id: number): Promise<GlanceAnswer> {
    const { layers, offered, shape, over } = this.#known(id)
    if (layers === undefined || over === true) throw new Error("the run is over, or has not begun")
    const written = await layers.written()
    return { ok: true, written, denied: deniedAttempts(offered.parkedProcess.network.attempted(), shape.network) }
  }

  reach(id: number, port: number): ReachAnswer {
    const { begun, over, offered, shape } = this.#known(id)
    if (begun !== true || over === true || !mayBeReached(port, shape.network)) return { ok: true }
    const fd = offered.parkedProcess.network.connectInside(port)
    if (fd === undefined) return { ok: true }
    const connection = new Socket({ fd, readable: true, writable: true })
    // What the program does at its end is no reason for this process to end.
    connection.on("error", () => undefined)
    return { ok: true, connection }
  }

  signal(id: number, name: NodeJS.Signals): void {
    const sandbox = this.#sandboxes.get(id)
    if (sandbox === undefined) return
    const target = {
      first: () => (sandbox.begun === true ? sandbox.waiting?.first : undefined),
      over: () => sandbox.over === true,
    }
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

  async commit(id: number, only?: readonly string[]): Promise<CommitResult> {
    const { sealed, cancel } = this.#known(id)
    if (sealed === undefined) throw new Error("commit before the sandbox ended")
    try {
      return await sealed.commit(cancel.signal, only)
    } finally {
      this.discard(id)
    }
  }

  async look(id: number, bounds: LookBounds): Promise<LookAnswer> {
    const { sealed } = this.#known(id)
    if (sealed === undefined) throw new Error("a look before the sandbox ended")
    return { ok: true, looked: await sealed.look(bounds) }
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
    sandbox.layers?.discard()
    if (sandbox.waiting === undefined) sandbox.offered[Symbol.dispose]()
    else sandbox.waiting.dispose()
    if (sandbox.over === true) this.#refillIn(PARKED.afterMs)
  }

  #known(id: number): Sandbox {
    const sandbox = this.#sandboxes.get(id)
    if (sandbox === undefined) throw new Error(`there is no sandbox ${id}`)
    return sandbox
  }
}
