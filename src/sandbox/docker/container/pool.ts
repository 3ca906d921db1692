/**
 * Containers: started on demand, kept ready where the caller wants that, thrown away after one call.
 *
 * Guarantees: never more containers at once than `live`, never more starting at once than `starting`, so that many
 * calls queue instead of drowning the machine; ready ones stay within their own count and memory; a ready container
 * that died is not handed out; refilling begins only after a call has ended, never beside its start.
 */
import type { ParkedContainer, ParkFailure } from "./parked.ts"

export interface PoolBudget {
  /** ready containers per kind of profile; 0: none */
  readonly perProfile: number
  /** ready containers in all */
  readonly total: number
  /** sum of the memory limits of ready containers */
  readonly memoryBytes: number
  /** containers at once, ready and in use */
  readonly live: number
  /** containers starting at once */
  readonly starting: number
}
export const DEFAULT_BUDGET: PoolBudget = { perProfile: 0, total: 8, memoryBytes: 4 * 2 ** 30, live: 32, starting: 4 }

export type Start = () => Promise<{ readonly ok: true; readonly parked: ParkedContainer } | ParkFailure>
export interface Kind {
  readonly key: string
  readonly memoryBytes: number
  readonly start: Start
}

class Gate {
  #free: number
  readonly #waiting: (() => void)[] = []
  constructor(size: number) {
    this.#free = size
  }
  get idle(): number {
    return this.#waiting.length > 0 ? 0 : this.#free
  }
  /** False where the wait was cancelled: then there is nothing to leave. */
  async enter(cancel?: AbortSignal): Promise<boolean> {
    if (cancel?.aborted === true) return false
    if (this.#free > 0) {
      this.#free -= 1
      return true
    }
    return new Promise((resolve) => {
      const onCancel = (): void => {
        this.#waiting.splice(this.#waiting.indexOf(turn), 1)
        resolve(false)
      }
      const turn = (): void => {
        cancel?.removeEventListener("abort", onCancel)
        resolve(true)
      }
      this.#waiting.push(turn)
      cancel?.addEventListener("abort", onCancel, { once: true })
    })
  }
  leave(): void {
    const next = this.#waiting.shift()
    if (next === undefined) this.#free += 1
    else next()
  }
}

/** Nobody hears this: whoever cancelled does not wait for the answer. */
const notWanted: ParkFailure = { ok: false, failure: { kind: "cancelled", message: "nobody waits for it any longer" } }

interface Ready {
  readonly kind: Kind
  readonly parked: ParkedContainer
}

export class Pool {
  readonly #budget: PoolBudget
  readonly #live: Gate
  readonly #starting: Gate
  readonly #onDispose = new Set<Promise<void>>()
  readonly #used = new Set<ParkedContainer>()
  #ready: Ready[] = []
  #refilling = new Set<Promise<void>>()
  #closed = false
  constructor(budget: PoolBudget) {
    this.#budget = budget
    this.#live = new Gate(budget.live)
    this.#starting = new Gate(budget.starting)
  }

  /** `cancel` ends the wait for a place; a container that is being started by then is the caller's to release. */
  async take(kind: Kind, cancel?: AbortSignal): ReturnType<Start> {
    for (;;) {
      const index = this.#ready.findIndex((ready) => ready.kind.key === kind.key)
      if (index < 0) break
      const [ready] = this.#ready.splice(index, 1)
      if (ready?.parked.alive() === true) {
        this.#used.add(ready.parked)
        return { ok: true, parked: ready.parked }
      }
      if (ready !== undefined) this.release(ready.parked)
    }
    // Ready containers of other kinds make room for a call that waits.
    if (this.#live.idle === 0) {
      const other = this.#ready.shift()
      if (other !== undefined) this.release(other.parked)
    }
    if (!(await this.#live.enter(cancel))) return notWanted
    const started = await this.#start(kind, cancel)
    if (!started.ok) this.#live.leave()
    else this.#used.add(started.parked)
    return started
  }

  async #start(kind: Kind, cancel?: AbortSignal): ReturnType<Start> {
    if (!(await this.#starting.enter(cancel))) return notWanted
    try {
      return await kind.start()
    } finally {
      this.#starting.leave()
    }
  }

  /** Throw a container away, in the background. */
  release(parked: ParkedContainer): void {
    this.#used.delete(parked)
    const gone = parked
      .dispose()
      .catch(() => undefined)
      .then(() => this.#live.leave())
    this.#onDispose.add(gone)
    void gone.then(() => this.#onDispose.delete(gone))
  }

  #room(kind: Kind): boolean {
    const held = this.#ready.reduce((sum, ready) => sum + ready.kind.memoryBytes, 0)
    const same = this.#ready.filter((ready) => ready.kind.key === kind.key).length
    const coming = this.#refilling.size
    return (
      !this.#closed &&
      same + coming < this.#budget.perProfile &&
      this.#ready.length + coming < this.#budget.total &&
      held + (coming + 1) * kind.memoryBytes <= this.#budget.memoryBytes &&
      this.#live.idle > coming
    )
  }
  /** Bring the number of ready containers of this kind up to the budget, in the background. */
  refill(kind: Kind): void {
    while (this.#room(kind)) {
      const one: Promise<void> = this.#live
        .enter()
        .then(() => this.#start(kind))
        .then((started) => {
          if (!started.ok) this.#live.leave()
          else if (this.#closed) this.release(started.parked)
          else this.#ready.push({ kind, parked: started.parked })
        })
        .catch(() => this.#live.leave())
        .finally(() => this.#refilling.delete(one))
      this.#refilling.add(one)
    }
  }
  /** Resolves when no refill is under way. */
  async filled(): Promise<void> {
    while (this.#refilling.size > 0) await Promise.all(this.#refilling)
  }
  get readyCount(): number {
    return this.#ready.length
  }

  /** Ready containers are of no use any more: the engine was lost. */
  drain(): void {
    for (const { parked } of this.#ready.splice(0)) this.release(parked)
  }
  /** Every container goes, those in use too. */
  async close(): Promise<void> {
    this.#closed = true
    await this.filled()
    this.drain()
    for (const parked of [...this.#used]) this.release(parked)
    while (this.#onDispose.size > 0) await Promise.all(this.#onDispose)
  }
}
