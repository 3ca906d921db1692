/**
 * The `docker` backend: the same sealed profile in a container of a real engine.
 *
 * Guarantees: see `../backend.ts`. Verdicts come from the same code as in the namespace backend: the view of the
 * root, the layers, the write set, the commit, the network taps and the system-call rules are shared. The engine
 * starts and removes containers; it is not in the way of a call's bytes.
 * Assumes: root, on the machine that the engine runs on.
 */
import { createHash } from "node:crypto"
import type {
  ControlReport,
  ImageProgram,
  ImageQuestion,
  PreparedSandbox,
  SandboxBackend,
  SandboxShape,
  Unavailable,
} from "../backend.ts"
import type { FolderIdentity } from "../folder.ts"
import type { HeldCommit, HeldCommitResult } from "../layers/held.ts"
import { Transactions } from "../layers/transactions.ts"
import { compileFilter } from "../seccomp/bpf.ts"
import { rulesFor } from "../seccomp/rules.ts"
import { waitFor } from "../set-up.ts"
import { openChannel } from "./container/channel.ts"
import type { Endpoint } from "./engine/discovery.ts"
import { examineControls } from "./examine.ts"
import { park, type ParkFailure } from "./container/parked.ts"
import { DEFAULT_BUDGET, type Kind, Pool, type PoolBudget, type Start } from "./container/pool.ts"
import { findImageProgram } from "./images/image-program.ts"
import { Prepared } from "./prepared.ts"
import { elsewhere, engineSeesOurFiles } from "./engine/same-files.ts"
import { connectEngine, type RootOptions, type ConnectedEngine } from "./connected-engine.ts"

export interface DockerBackendOptions extends RootOptions {
  /** the host's data folder */
  readonly data: string
  /** a `unix://` or `tcp://` engine, or an endpoint; absent: found as Docker's own tools find it */
  readonly engine?: string | Endpoint
  readonly pool?: Partial<PoolBudget>
  readonly progress?: (line: string) => void
}

/** Failures after which an engine has nothing to tell of files either. */
const TELLS_NOTHING: ReadonlySet<string> = new Set(["unreachable", "timeout", "no-space", "not-found"])

const unavailable = ({ failure }: ParkFailure): Unavailable => {
  const fixes: Readonly<Record<string, string>> = {
    unreachable: "start the container engine, or set DOCKER_HOST",
    timeout: "the engine hangs: look at its log, or restart it",
    "no-space": "free disk space for the engine (`docker system df`)",
    egress:
      "make the base from this machine's own mirror (`node scripts/docker-base.mjs --load`), or add that host to its apt sources",
    image: "have the engine fetch the image by that digest (`docker pull`), or name another one in the driver's runner",
    elsewhere:
      "run caisson where the engine runs, in its mount namespace and on its machine, or use `--backend namespace`",
    remote: "use the engine of this machine: workspaces and channels are folders and namespaces of this kernel",
  }
  return {
    ok: false,
    control: `engine-${failure.kind}`,
    message: `no container could be started: ${failure.message}`,
    fix: fixes[failure.kind] ?? "run `caisson doctor`",
  }
}

export class DockerBackend implements SandboxBackend {
  readonly name = "docker"
  readonly #options: DockerBackendOptions
  readonly #pool: Pool
  readonly #filters = new Map<boolean, Uint8Array>()
  readonly #transactions: Transactions
  #connectedEngine: Promise<ConnectedEngine | Unavailable> | undefined
  #closed = false
  constructor(options: DockerBackendOptions) {
    this.#options = options
    this.#transactions = new Transactions(options.data)
    this.#pool = new Pool({ ...DEFAULT_BUDGET, ...options.pool })
  }
  /** Opened at the first use; one that cannot be opened is tried again at the next. */
  connectedEngine(): Promise<ConnectedEngine | Unavailable> {
    if (this.#closed) throw new Error("this backend was disposed of")
    if (this.#connectedEngine === undefined) {
      const opening = connectEngine({ ...this.#options, onEngineLost: () => this.#pool.drain() }).catch(
        (error: Error): Unavailable => ({
          ok: false,
          control: "engine-host",
          message: `the docker backend could not be made ready: ${error.message}`,
          fix: "look at the folder `docker` in the data folder, and at this machine's mounts; it may be removed",
        }),
      )
      this.#connectedEngine = opening
      void opening.then((connectedEngine) => {
        if ("ok" in connectedEngine && this.#connectedEngine === opening) this.#connectedEngine = undefined
      })
    }
    return this.#connectedEngine
  }
  #filter(children: boolean): Uint8Array {
    let filter = this.#filters.get(children)
    if (filter === undefined) {
      filter = compileFilter(rulesFor({ children }), process.arch === "arm64" ? "arm64" : "x64")
      this.#filters.set(children, filter)
    }
    return filter
  }
  #kind(connectedEngine: ConnectedEngine, shape: SandboxShape): Kind {
    const { executables, limits } = shape
    const fixed = [executables, limits.memoryBytes, limits.pids, limits.cpus ?? null, limits.openFiles]
    const key = createHash("sha256").update(JSON.stringify(fixed)).digest("hex")
    return {
      key,
      memoryBytes: limits.memoryBytes,
      start: async () => {
        const once = async (): ReturnType<Start> => {
          const root = await connectedEngine.rootFor(executables)
          if (!root.ok) return root
          const parked = await park({ ...connectedEngine, shape, root: root.value })
          if (parked.ok || TELLS_NOTHING.has(parked.failure.kind)) return parked
          const { product } = connectedEngine.info
          const sees = await engineSeesOurFiles({ ...connectedEngine, product, image: root.value.image })
          return sees === "no" ? { ok: false, failure: elsewhere(connectedEngine.engine) } : parked
        }
        const first = await once()
        if (first.ok || first.failure.kind !== "not-found") return first
        connectedEngine.forgetRoots()
        return once()
      },
    }
  }
  async prepare(shape: SandboxShape, cancel?: AbortSignal): Promise<PreparedSandbox | Unavailable> {
    const connectedEngine = await waitFor(this.connectedEngine(), { what: "the engine was connected to", cancel })
    if ("ok" in connectedEngine) return connectedEngine
    return waitFor(this.#prepare(connectedEngine, shape, cancel), {
      what: "a container was made ready",
      cancel,
      letGo: (late) => (late.ok ? late[Symbol.asyncDispose]() : undefined),
    })
  }
  /** Each question to the engine has a deadline of its own, a build of images included. */
  async #prepare(
    connectedEngine: ConnectedEngine,
    shape: SandboxShape,
    cancel: AbortSignal | undefined,
  ): Promise<PreparedSandbox | Unavailable> {
    if (shape.required.includes("cpus") && !connectedEngine.info.limits.cpu) {
      return {
        ok: false,
        control: "cpu-share",
        message: "a CPU share cannot be enforced: the engine has no cpu controller",
        fix: "mount the cpu controller with CFS quotas",
      }
    }
    void connectedEngine.removals.retry()
    const kind = this.#kind(connectedEngine, shape)
    const taken = await this.#pool.take(kind, cancel)
    if (!taken.ok) return unavailable(taken)
    const { parked } = taken
    try {
      parked.network.watch(shape.network)
      const channel = await openChannel(parked.network, shape.network)
      return new Prepared({
        parked,
        channel,
        shape,
        filter: this.#filter(shape.executables.children),
        owners: connectedEngine.owners,
        place: connectedEngine.layers,
        watch: connectedEngine.watch,
        blank: connectedEngine.workFolder.dir,
        transactions: this.#transactions,
        done: () => {
          this.#pool.release(parked)
          if (!this.#closed) this.#pool.refill(kind)
        },
      })
    } catch (error) {
      this.#pool.release(parked)
      throw error
    }
  }
  /** Connect to the engine and clear what dead hosts left, before the first call. */
  async start(): Promise<void> {
    await this.connectedEngine()
  }
  /** Fill the pool for this shape; resolves when it is full. */
  async warm(shape: SandboxShape): Promise<Unavailable | undefined> {
    const connectedEngine = await this.connectedEngine()
    if ("ok" in connectedEngine) return connectedEngine
    this.#pool.refill(this.#kind(connectedEngine, shape))
    await this.#pool.filled()
    return undefined
  }
  get readyContainers(): number {
    return this.#pool.readyCount
  }
  recover(workspace: string | FolderIdentity, cancel?: AbortSignal): Promise<void> {
    return this.#transactions.recover(workspace, cancel)
  }
  commitHeld(held: HeldCommit, cancel?: AbortSignal): Promise<HeldCommitResult> {
    return this.#transactions.commitHeld(held, cancel)
  }
  async imageProgram(
    question: ImageQuestion,
  ): Promise<{ readonly ok: true; readonly value: ImageProgram } | Unavailable> {
    const connectedEngine = await this.connectedEngine()
    if ("ok" in connectedEngine) return connectedEngine
    const { engine, removals, workFolder, data } = connectedEngine
    const found = await findImageProgram({ engine, removals, labels: { host: workFolder.host, data } }, question)
    return found.ok ? found : unavailable(found)
  }
  async examine(): Promise<readonly ControlReport[]> {
    return examineControls(this, await this.connectedEngine())
  }
  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#closed) return
    this.#closed = true
    const connectedEngine = await this.#connectedEngine
    await this.#pool.close()
    if (connectedEngine !== undefined && !("ok" in connectedEngine)) await connectedEngine.dispose()
  }
}

export const createDockerBackend = (options: DockerBackendOptions): DockerBackend => new DockerBackend(options)
