/**
 * What changes in this daemon beside its calls: the catalogue, and what is held of whom. Whoever wants to know is told at
 * once; nothing of it is kept.
 */
import type { Caller } from "../../host/access/caller.ts"

interface HeldChange {
  /** whose it is */
  readonly of: Pick<Caller, "tenant" | "user">
  readonly id: string
}

export class Changes {
  readonly #reloads = new Set<() => void>()
  readonly #revoked = new Set<() => void>()
  readonly #held = new Set<(change: HeldChange) => void>()
  onReload(hear: () => void): void {
    this.#reloads.add(hear)
  }
  reloaded(): void {
    for (const hear of this.#reloads) hear()
  }
  onRevoked(hear: () => void): void {
    this.#revoked.add(hear)
  }
  /** A token opens nothing any more. */
  revoked(): void {
    for (const hear of this.#revoked) hear()
  }
  onHeld(hear: (change: HeldChange) => void): void {
    this.#held.add(hear)
  }
  /** Effects are held under this id, or were decided about. */
  held(change: HeldChange): void {
    for (const hear of this.#held) hear(change)
  }
}
