/**
 * Containers that must go, kept in mind until the engine has confirmed it.
 *
 * Guarantees: a removal that the engine refused (it was just dying, a mount was still busy) is tried again at once, a
 * few times; one that it did not answer is tried again whenever `retry` is called; a container whose creation timed
 * out is removed by the name it was to have. Only the engine's yes, or that it knows no such container, counts.
 */
import { setTimeout as pause } from "node:timers/promises"
import type { ContainerId, Engine } from "./engine.ts"

const ATTEMPTS = 8
const PAUSE_MS = 50

export class Removals {
  readonly #engine: Engine
  readonly #pending = new Set<ContainerId>()
  readonly #underWay = new Map<ContainerId, Promise<void>>()
  constructor(engine: Engine) {
    this.#engine = engine
  }
  get pending(): number {
    return this.#pending.size
  }
  remove(id: ContainerId): Promise<void> {
    this.#pending.add(id)
    let removal = this.#underWay.get(id)
    if (removal === undefined) {
      removal = this.#attempt(id).finally(() => this.#underWay.delete(id))
      this.#underWay.set(id, removal)
    }
    return removal
  }
  async #attempt(id: ContainerId): Promise<void> {
    for (let attempt = 1; attempt <= ATTEMPTS; attempt += 1) {
      const done = await this.#engine.remove(id)
      if (done.ok) {
        this.#pending.delete(id)
        return
      }
      if (done.failure.kind === "unreachable" || done.failure.kind === "timeout") return
      await pause(PAUSE_MS * attempt)
    }
  }
  /** One more attempt at everything that is left and not under way. */
  async retry(): Promise<void> {
    await Promise.all([...this.#pending].map((id) => this.remove(id)))
  }
}
