/**
 * The effects of a layer as they are found.
 *
 * Guarantees: no more of them than may be told, each with a path that may be as long, all together in no more bytes; a path of
 * the host's own is refused. Reaching a limit throws `LayerRefused`.
 */
import { LayerRefused, type LayerLimits } from "../limits.ts"
import { displayName, isReserved, type BytePath } from "../names.ts"
import type { Pending } from "../judging/recognise.ts"
import type { EffectKind } from "../types.ts"

/** Bytes of a text as JSON spells it. */
const spelledBytes = (text: string): number => Buffer.byteLength(JSON.stringify(text))

export class FoundEffects {
  readonly all: Pending[] = []
  readonly #limits: LayerLimits
  #reported = 0
  constructor(limits: LayerLimits) {
    this.#limits = limits
  }

  add(kind: EffectKind, path: BytePath, more: Omit<Pending, "kind" | "bytePath" | "path"> = {}): Pending {
    if (path.length > this.#limits.maxPathBytes) {
      throw new LayerRefused(
        "path-too-long",
        `a path of ${path.length} bytes is longer than ${this.#limits.maxPathBytes}`,
      )
    }
    if (this.all.length >= this.#limits.maxEffects) {
      throw new LayerRefused("too-many-effects", `the call made more than ${this.#limits.maxEffects} changes`)
    }
    const reserved = isReserved(path) ? { refused: "the path is reserved for the host's transactions" } : {}
    const pending: Pending = { kind, bytePath: path, path: displayName(path), ...more, ...reserved }
    // The path twice: a link or a rename tells it again, as where another effect comes from.
    this.#reported += 2 * spelledBytes(pending.path) + spelledBytes(pending.target ?? "")
    if (this.#reported > this.#limits.maxReportBytes) {
      throw new LayerRefused(
        "too-much-to-report",
        `the paths and link targets that the call changed take more than ${this.#limits.maxReportBytes} bytes to tell`,
      )
    }
    this.all.push(pending)
    return pending
  }
}
