/**
 * A sandbox whose processes are gone; its layer lies with the launcher, unjudged.
 *
 * Guarantees: the layer is written once or thrown away once. A launcher that died over a write leaves its outcome open,
 * and says so; a layer whose writers were not seen to end is never written.
 */
import type { CommitResult, Exchanged, ExitedSandbox, HomeAfter, Observed } from "../backend.ts"
import type { WriteSet } from "../effects/types.ts"
import type { HoldAnswer, HoldRequest } from "../layers/held.ts"
import type { LookBounds, Looked } from "../layers/look.ts"
import { NO_WRITES, UNSEEN } from "../unsettled.ts"
import { LauncherGone } from "./conversation.ts"
import type { Launched } from "./launch.ts"
import { letGo } from "./let-go.ts"
import type { Request, RunAnswer } from "./launcher/protocol.ts"

export class Exited implements ExitedSandbox {
  readonly ok = true
  readonly ending
  readonly denied
  readonly usage
  readonly writes
  readonly home?: WriteSet
  readonly homeAfter?: HomeAfter
  readonly exchanged?: Exchanged
  readonly observed?: Observed
  readonly #launched: Launched
  readonly #sandbox: number
  readonly #usable: boolean
  #settled = false
  constructor(launched: Launched, sandbox: number, answer: RunAnswer) {
    this.#launched = launched
    this.#sandbox = sandbox
    this.#usable = answer.writes !== undefined
    this.ending = answer.ending
    this.denied = answer.denied
    this.usage = answer.usage
    this.writes = answer.writes ?? NO_WRITES
    if (answer.home !== undefined) this.home = answer.home
    if (answer.homeAfter !== undefined) this.homeAfter = answer.homeAfter
    if (answer.observed !== undefined) this.observed = answer.observed
    if (answer.exchanged !== undefined) this.exchanged = answer.exchanged
  }
  async keepHome(): Promise<CommitResult> {
    if (this.#settled) throw new Error("this sandbox was settled already")
    return this.#usable ? this.#write({ op: "keep-home", sandbox: this.#sandbox }) : UNSEEN
  }
  /** A launcher that died over it, and one that says it broke, leave the outcome open. */
  async #write(request: Extract<Request, { op: "commit" | "keep-home" }>): Promise<CommitResult> {
    try {
      return (await this.#launched.ask(request)) as CommitResult
    } catch (error) {
      const { message } = error as Error
      return { ok: false, reason: error instanceof LauncherGone ? "failed" : "unknown", message }
    }
  }
  async commit(cancel?: AbortSignal, only?: readonly string[]): Promise<CommitResult> {
    if (this.#settled) throw new Error("this sandbox was settled already")
    if (!this.#usable) {
      await this.discard()
      return UNSEEN
    }
    this.#settled = true
    // There is nothing to write, and nobody to wait for.
    if (this.writes.effects.length === 0) {
      void letGo(this.#launched, this.#sandbox)
      return { ok: true }
    }
    const onCancel = (): void =>
      void this.#launched
        .ask({ op: "stop", sandbox: this.#sandbox, ending: { by: "cancelled" } })
        .catch(() => undefined)
    cancel?.addEventListener("abort", onCancel, { once: true })
    try {
      const written = this.#write({ op: "commit", sandbox: this.#sandbox, ...(only === undefined ? {} : { only }) })
      if (cancel?.aborted === true) onCancel()
      return await written
    } finally {
      cancel?.removeEventListener("abort", onCancel)
    }
  }
  async look(bounds: LookBounds): Promise<readonly Looked[]> {
    if (this.#settled || !this.#usable) return []
    const answer = await this.#launched.ask({ op: "look", sandbox: this.#sandbox, bounds })
    return "looked" in answer ? answer.looked : []
  }
  async hold(request: HoldRequest): Promise<HoldAnswer> {
    if (this.#settled) throw new Error("this sandbox was settled already")
    if (!this.#usable) return UNSEEN
    const answer = (await this.#launched.ask({ op: "hold", sandbox: this.#sandbox, request })) as HoldAnswer
    if (answer.ok) this.#settled = true
    return answer
  }
  async discard(): Promise<void> {
    if (this.#settled) return
    this.#settled = true
    await letGo(this.#launched, this.#sandbox)
  }
  async [Symbol.asyncDispose](): Promise<void> {
    await this.discard()
  }
}
