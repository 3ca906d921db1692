/**
 * The `namespace` backend: bubblewrap, overlayfs, seccomp and cgroups, with no set-up and no daemon.
 *
 * Guarantees: see `../backend.ts`. One launcher process serves all calls of a host; a launcher that died is
 * replaced at the next call, and calls that were in it end as infrastructure failures with nothing committed.
 */
import type { ControlReport, PreparedSandbox, SandboxBackend, SandboxShape, Unavailable } from "../backend.ts"
import type { FolderIdentity } from "../folder.ts"
import type { HeldCommit, HeldCommitResult } from "../layers/held.ts"
import { Transactions } from "../layers/transactions.ts"
import { waitFor } from "../set-up.ts"
import { LauncherEnded, LauncherGone } from "./conversation.ts"
import { examineControls } from "./examine.ts"
import { launch, type Launched } from "./launch.ts"
import { LAUNCHER } from "./launcher/limits.ts"
import { letGo } from "./let-go.ts"
import { Prepared } from "./prepared.ts"
import type { PrepareAnswer, Refusal } from "./launcher/protocol.ts"
import { endedFix } from "./trouble.ts"

export interface NamespaceBackendOptions {
  /** the host's data folder: transactions of commits live here */
  readonly data: string
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
  async prepare(shape: SandboxShape, cancel?: AbortSignal): Promise<PreparedSandbox | Unavailable> {
    const { image } = shape.executables
    if (image !== undefined)
      return {
        ok: false,
        control: "image",
        message: `this backend shows the machine's own programs, and not those of an image (${image})`,
        fix: "use `--backend docker`, with an engine that has the image",
      }
    const launched = await waitFor(this.#launcher(), { what: "the launcher was started", cancel })
    if ("ok" in launched) return launched
    return waitFor(this.#prepare(launched, shape), {
      what: "a sandbox was made ready",
      cancel,
      withinMs: LAUNCHER.prepareMs,
      letGo: (late) => (late.ok ? late[Symbol.asyncDispose]() : undefined),
    })
  }
  async #prepare(launched: Launched, shape: SandboxShape): Promise<PreparedSandbox | Unavailable> {
    try {
      const answer = (await launched.ask({ op: "prepare", shape })) as PrepareAnswer | Refusal
      return answer.ok ? await this.#takenOver(launched, answer, shape) : answer
    } catch (error) {
      if (!(error instanceof LauncherEnded) && !(error instanceof LauncherGone)) throw error
      return { ok: false, control: "launcher", message: error.message, fix: endedFix }
    }
  }
  async #takenOver(launched: Launched, answer: PrepareAnswer, shape: SandboxShape): Promise<PreparedSandbox> {
    try {
      return new Prepared(launched, answer, shape, this.#transactions)
    } catch (error) {
      await letGo(launched, answer.sandbox)
      throw error
    }
  }
  recover(workspace: string | FolderIdentity, cancel?: AbortSignal): Promise<void> {
    return this.#transactions.recover(workspace, cancel)
  }
  /** In the launcher, which may read what the layer's own modes shut to this user. */
  async commitHeld(held: HeldCommit, cancel?: AbortSignal): Promise<HeldCommitResult> {
    const launched = await waitFor(this.#launcher(), { what: "the launcher was started", cancel })
    if ("ok" in launched) return { ok: false, reason: "failed", message: launched.message }
    const onCancel = (): void => void launched.ask({ op: "cancel-held", name: held.name }).catch(() => undefined)
    try {
      const written = launched.ask({ op: "commit-held", held, txRoot: this.#transactions.root })
      cancel?.addEventListener("abort", onCancel, { once: true })
      if (cancel?.aborted === true) onCancel()
      return (await written) as HeldCommitResult
    } catch (error) {
      const { message } = error as Error
      return { ok: false, reason: error instanceof LauncherGone ? "failed" : "unknown", message }
    } finally {
      cancel?.removeEventListener("abort", onCancel)
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
