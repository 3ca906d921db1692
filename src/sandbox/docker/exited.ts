/**
 * A container's job is over and its processes are gone; its layer is still there, unjudged.
 *
 * Guarantees: the layer is written once or thrown away once, and its mounts and container go with that; a layer whose
 * writers were not seen to end is never written.
 */
import type { CommitResult, Denial, ExitedSandbox, SandboxProfile } from "../backend.ts"
import { type Baseline, commitLayer } from "../effects/index.ts"
import type { WriteSet } from "../effects/types.ts"
import { type Glob, matches, parseGlob, parseWorkspacePath } from "../globs.ts"
import type { Slot } from "../namespace/slot.ts"
import type { Terminal } from "../namespace/terminal.ts"
import type { SealedRun } from "./sealed-run.ts"

export interface Layers {
  readonly slot: Slot
  readonly workspace: string
  readonly snapshot: Baseline
  readonly homeSnapshot: Baseline | undefined
  readonly terminal: Terminal | undefined
}

export interface ExitedOptions {
  readonly profile: SandboxProfile
  readonly transactions: (workspace: string) => string
  /** called once, when the container is of no more use */
  readonly done: () => void
}

const globsOf = (patterns: readonly string[]): readonly Glob[] =>
  patterns.map((text) => {
    const parsed = parseGlob(text)
    if (!parsed.ok) throw new Error(`a pattern that was not checked: ${parsed.message}`)
    return parsed.glob
  })
const isKept = (keep: readonly Glob[], text: string): boolean => {
  const parsed = parseWorkspacePath(text)
  return parsed.ok && keep.some((glob) => matches(glob, parsed.path))
}

export class Exited implements ExitedSandbox {
  readonly ok = true
  readonly ending
  readonly stdout
  readonly stderr
  readonly denied
  readonly usage
  readonly writes
  readonly #options: ExitedOptions
  readonly #layers: Layers
  readonly #homeWrites: WriteSet | undefined
  readonly #usable: boolean
  #settled = false
  constructor(
    options: ExitedOptions,
    layers: Layers,
    run: SealedRun,
    denied: readonly Denial[],
    writes: WriteSet,
    homeWrites: WriteSet | undefined,
  ) {
    this.#options = options
    this.#layers = layers
    this.#homeWrites = homeWrites
    this.#usable = run.settled
    this.ending = run.ending
    this.stdout = run.stdout
    this.stderr = run.stderr
    this.denied = denied
    const { cpuMs, peakMemoryBytes } = run.usage
    this.usage = {
      wallMs: run.wallMs,
      ...(cpuMs === undefined ? {} : { cpuMs }),
      ...(peakMemoryBytes === undefined ? {} : { peakMemoryBytes }),
    }
    this.writes = writes
  }
  async commit(): Promise<CommitResult> {
    if (this.#settled) throw new Error("this sandbox was settled already")
    if (!this.#usable) {
      await this.discard()
      return { ok: false, reason: "failed", message: "the container's processes were not seen to end" }
    }
    this.#settled = true
    try {
      return await this.#write()
    } finally {
      this.#drop()
    }
  }
  async #write(): Promise<CommitResult> {
    const { slot, workspace, snapshot, homeSnapshot } = this.#layers
    const txRoot = this.#options.transactions(workspace)
    const { upper, xattrPrefix } = slot.workspace
    const result = await commitLayer({ workspace, upper, writeSet: this.writes, txRoot, since: snapshot, xattrPrefix })
    const { home } = this.#options.profile
    if (
      result.ok &&
      home !== undefined &&
      slot.home !== undefined &&
      homeSnapshot !== undefined &&
      this.#homeWrites !== undefined
    ) {
      const keep = globsOf(home.keep)
      const kept = await commitLayer({
        workspace: slot.home.source,
        upper: slot.home.upper,
        writeSet: this.#homeWrites,
        txRoot,
        since: homeSnapshot,
        xattrPrefix: slot.home.xattrPrefix,
        only: (path) => isKept(keep, path),
      })
      if (!kept.ok) process.emitWarning(`the driver's own state was not kept: ${kept.reason}`)
    }
    return result
  }
  #drop(): void {
    this.#layers.slot.dispose()
    this.#options.done()
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
