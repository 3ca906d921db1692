/**
 * The `namespace` backend: bubblewrap, overlayfs, seccomp and cgroups, with no set-up and no daemon.
 *
 * Guarantees: see `../backend.ts`. One launcher process serves all calls of a host; a launcher that died is
 * replaced at the next call, and calls that were in it end as infrastructure failures with nothing committed.
 */
import type { Socket as UdpSocket } from "node:dgram"
import type { Server } from "node:net"
import type {
  Channel,
  CommitResult,
  ControlReport,
  ExitedSandbox,
  Job,
  PreparedSandbox,
  SandboxBackend,
  SandboxProfile,
  Unavailable,
} from "../backend.ts"
import type { WriteSet } from "../effects/types.ts"
import { type FolderIdentity, lookAt } from "../folder.ts"
import type { HeldCommit, HeldCommitResult, HoldAnswer, HoldRequest } from "../layers/held.ts"
import { Transactions } from "../layers/transactions.ts"
import { LauncherGone } from "./conversation.ts"
import { examineControls } from "./examine.ts"
import { type Handle, launch, type Launched } from "./launch.ts"
import { type ListenerRole, rolesOf } from "../network/listeners.ts"
import type { PrepareAnswer, Refusal, RunAnswer } from "./protocol.ts"

export interface NamespaceBackendOptions {
  /** the host's data folder: transactions of commits live here */
  readonly data: string
}

const channelOf = (profile: SandboxProfile, handles: Map<ListenerRole, Handle>): Channel | "none" => {
  if (profile.network === "none") return "none"
  const server = (role: ListenerRole): Server => handles.get(role) as Server
  const dnsUdp = handles.get("dns-udp") as UdpSocket | undefined
  const dnsTcp = handles.get("dns-tcp") as Server | undefined
  return {
    proxy: server(`proxy-${profile.network.proxyPort}`),
    transparent: new Map(profile.network.transparentPorts.map((port) => [port, server(`port-${port}`)])),
    ...(dnsUdp === undefined ? {} : { dnsUdp }),
    ...(dnsTcp === undefined ? {} : { dnsTcp }),
  }
}
const closeQuietly = (handle: Handle): void => {
  try {
    handle.close()
  } catch {
    // Whoever served it closed it.
  }
}

class Exited implements ExitedSandbox {
  readonly ok = true
  readonly ending
  readonly stdout
  readonly stderr
  readonly denied
  readonly usage
  readonly writes
  readonly home?: WriteSet
  readonly #launched: Launched
  readonly #sandbox: number
  #settled = false
  constructor(launched: Launched, sandbox: number, answer: RunAnswer) {
    this.#launched = launched
    this.#sandbox = sandbox
    this.ending = answer.ending
    this.stdout = answer.stdout
    this.stderr = answer.stderr
    this.denied = answer.denied
    this.usage = answer.usage
    this.writes = answer.writes
    if (answer.home !== undefined) this.home = answer.home
  }
  async keepHome(): Promise<CommitResult> {
    if (this.#settled) throw new Error("this sandbox was settled already")
    return this.#write("keep-home")
  }
  /** A launcher that died over it, and one that says it broke, leave the outcome open. */
  async #write(op: "commit" | "keep-home"): Promise<CommitResult> {
    try {
      return (await this.#launched.ask({ op, sandbox: this.#sandbox })) as CommitResult
    } catch (error) {
      const { message } = error as Error
      return { ok: false, reason: error instanceof LauncherGone ? "failed" : "unknown", message }
    }
  }
  async commit(cancel?: AbortSignal): Promise<CommitResult> {
    if (this.#settled) throw new Error("this sandbox was settled already")
    this.#settled = true
    const onCancel = (): void =>
      void this.#launched.ask({ op: "cancel", sandbox: this.#sandbox }).catch(() => undefined)
    cancel?.addEventListener("abort", onCancel, { once: true })
    try {
      const written = this.#write("commit")
      if (cancel?.aborted === true) onCancel()
      return await written
    } finally {
      cancel?.removeEventListener("abort", onCancel)
    }
  }
  async hold(request: HoldRequest): Promise<HoldAnswer> {
    if (this.#settled) throw new Error("this sandbox was settled already")
    const answer = (await this.#launched.ask({ op: "hold", sandbox: this.#sandbox, request })) as HoldAnswer
    if (answer.ok) this.#settled = true
    return answer
  }
  async discard(): Promise<void> {
    if (this.#settled) return
    this.#settled = true
    await this.#launched.ask({ op: "discard", sandbox: this.#sandbox }).catch(() => undefined)
  }
  async [Symbol.asyncDispose](): Promise<void> {
    await this.discard()
  }
}

class Prepared implements PreparedSandbox {
  readonly ok = true
  readonly channel: Channel | "none"
  readonly #launched: Launched
  readonly #sandbox: number
  readonly #handles: readonly Handle[]
  readonly #transactions: Transactions
  readonly #home: string | undefined
  #used = false
  constructor(
    launched: Launched,
    { sandbox, seat }: PrepareAnswer,
    profile: SandboxProfile,
    transactions: Transactions,
  ) {
    this.#home = profile.home?.dir
    this.#launched = launched
    this.#sandbox = sandbox
    this.#transactions = transactions
    const handles = launched.listeners(seat)
    const wanted = new Set(rolesOf(profile.network))
    for (const [role, handle] of handles) {
      if (wanted.has(role)) continue
      closeQuietly(handle)
      handles.delete(role)
    }
    this.#handles = [...handles.values()]
    this.channel = channelOf(profile, handles)
  }
  async run(job: Job, cancel: AbortSignal): Promise<ExitedSandbox | Unavailable> {
    if (this.#used) throw new Error("a sandbox runs one job")
    this.#used = true
    let folder: FolderIdentity
    try {
      folder = job.folder ?? lookAt(job.workspace)
    } catch (error) {
      await this.#release()
      return {
        ok: false,
        control: "workspace",
        message: `the workspace ${job.workspace} cannot be used: ${(error as Error).message}`,
        fix: "name an existing folder",
      }
    }
    const onCancel = (): void =>
      void this.#launched.ask({ op: "cancel", sandbox: this.#sandbox }).catch(() => undefined)
    cancel.addEventListener("abort", onCancel, { once: true })
    try {
      const transactions = await this.#transactions.forCall(this.#home)
      const asked = this.#launched.ask({
        op: "run",
        sandbox: this.#sandbox,
        job: { ...job, folder },
        transactions,
      })
      if (cancel.aborted) onCancel()
      const answer = (await asked) as RunAnswer | Refusal
      return answer.ok ? new Exited(this.#launched, this.#sandbox, answer) : answer
    } finally {
      cancel.removeEventListener("abort", onCancel)
      this.#handles.forEach(closeQuietly)
    }
  }
  async #release(): Promise<void> {
    this.#handles.forEach(closeQuietly)
    await this.#launched.ask({ op: "discard", sandbox: this.#sandbox }).catch(() => undefined)
  }
  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#used) return
    this.#used = true
    await this.#release()
  }
}

class NamespaceBackend implements SandboxBackend {
  readonly name = "namespace"
  readonly #data: string
  readonly #transactions: Transactions
  #launched: Promise<Launched | Refusal> | undefined
  constructor(options: NamespaceBackendOptions) {
    this.#data = options.data
    this.#transactions = new Transactions(options.data)
  }
  #launcher(): Promise<Launched | Refusal> {
    if (this.#launched === undefined) {
      const starting = launch(this.#data).catch(
        (error: Error): Refusal => ({
          ok: false,
          control: "launcher",
          message: `the launcher could not be started: ${error.message}`,
          fix: "run `caisson doctor`",
        }),
      )
      this.#launched = starting
      void starting.then((launched) => {
        const forget = (): void => {
          if (this.#launched === starting) this.#launched = undefined
        }
        if ("ok" in launched) forget()
        else launched.whenEnded(forget)
      })
    }
    return this.#launched
  }
  /** Start the launcher now, so that the first call finds it ready. */
  async start(): Promise<void> {
    await this.#launcher()
  }
  async prepare(profile: SandboxProfile): Promise<PreparedSandbox | Unavailable> {
    const launched = await this.#launcher()
    if ("ok" in launched) return launched
    const answer = (await launched.ask({ op: "prepare", profile })) as PrepareAnswer | Refusal
    return answer.ok ? new Prepared(launched, answer, profile, this.#transactions) : answer
  }
  recover(workspace: string | FolderIdentity, cancel?: AbortSignal): Promise<void> {
    return this.#transactions.recover(workspace, cancel)
  }
  /** In the launcher, which may read what the layer's own modes shut to this user. */
  async commitHeld(held: HeldCommit): Promise<HeldCommitResult> {
    const launched = await this.#launcher()
    if ("ok" in launched) return { ok: false, reason: "failed", message: launched.message }
    try {
      return (await launched.ask({ op: "commit-held", held, txRoot: this.#transactions.root })) as HeldCommitResult
    } catch (error) {
      const { message } = error as Error
      return { ok: false, reason: error instanceof LauncherGone ? "failed" : "unknown", message }
    }
  }
  async examine(): Promise<readonly ControlReport[]> {
    const launched = await this.#launcher()
    return examineControls(this, launched)
  }
  async [Symbol.asyncDispose](): Promise<void> {
    const launched = await this.#launched
    if (launched !== undefined && !("ok" in launched)) await launched.close()
  }
}

export const createNamespaceBackend = (options: NamespaceBackendOptions): SandboxBackend & { start(): Promise<void> } =>
  new NamespaceBackend(options)
