/**
 * A container's job is over and its processes are gone; its layer is still there, unjudged.
 *
 * Guarantees: the layer is written once or thrown away once, and its mounts and container go with that; a layer whose
 * writers were not seen to end is never written.
 */
import type { CommitResult, Denial, Exchanged, ExitedSandbox, HomeAfter } from "../backend.ts"
import type { WriteSet } from "../effects/types.ts"
import type { OpenLayers } from "../layers/call-layers.ts"
import type { SealedLayers } from "../layers/sealed-layers.ts"
import type { HoldAnswer, HoldRequest } from "../layers/held.ts"
import type { LookBounds, Looked } from "../layers/look.ts"
import { NO_WRITES, UNSEEN } from "../unsettled.ts"
import type { SealedRun } from "./sealed-run.ts"

interface ExitedOptions {
  readonly run: SealedRun
  readonly denied: readonly Denial[]
  /** sealed, or open still because their writers were not seen to end */
  readonly layers: SealedLayers | OpenLayers
  /** called once, when the container is of no more use */
  readonly done: () => void
}

export class Exited implements ExitedSandbox {
  readonly ok = true
  readonly ending
  readonly denied
  readonly usage
  readonly writes
  readonly home?: WriteSet
  readonly homeAfter?: HomeAfter
  readonly exchanged?: Exchanged
  readonly #layers: SealedLayers | OpenLayers
  readonly #done: () => void
  #settled = false
  constructor({ run, denied, layers, done }: ExitedOptions) {
    this.#layers = layers
    this.#done = done
    this.ending = run.ending
    this.denied = denied
    const { cpuMs, peakMemoryBytes } = run.usage
    this.usage = {
      wallMs: run.wallMs,
      ...(cpuMs === undefined ? {} : { cpuMs }),
      ...(peakMemoryBytes === undefined ? {} : { peakMemoryBytes }),
    }
    this.writes = "writes" in layers ? layers.writes : NO_WRITES
    if ("home" in layers && layers.home !== undefined) this.home = layers.home
    if ("homeAfter" in layers && layers.homeAfter !== undefined) this.homeAfter = layers.homeAfter
    if ("exchanged" in layers && layers.exchanged !== undefined) this.exchanged = layers.exchanged
  }
  async keepHome(): Promise<CommitResult> {
    if (this.#settled) throw new Error("this sandbox was settled already")
    return "keepHome" in this.#layers ? this.#layers.keepHome() : UNSEEN
  }
  async commit(cancel?: AbortSignal, only?: readonly string[]): Promise<CommitResult> {
    if (this.#settled) throw new Error("this sandbox was settled already")
    const layers = this.#layers
    if (!("commit" in layers)) {
      await this.discard()
      return UNSEEN
    }
    this.#settled = true
    try {
      return await layers.commit(cancel, only)
    } finally {
      this.#drop()
    }
  }
  async look(bounds: LookBounds): Promise<readonly Looked[]> {
    return !this.#settled && "look" in this.#layers ? this.#layers.look(bounds) : []
  }
  async hold(request: HoldRequest): Promise<HoldAnswer> {
    if (this.#settled) throw new Error("this sandbox was settled already")
    if (!("hold" in this.#layers)) return UNSEEN
    const answer = await this.#layers.hold(request)
    if (answer.ok) await this.discard()
    return answer
  }
  #drop(): void {
    this.#layers.discard()
    this.#done()
  }
  async discard(): Promise<void> {
    if (this.#settled) return
    this.#settled = true
    this.#drop()
  }
  async [Symbol.asyncDispose](): Promise<void> {
    await this.discard()
  }
}
