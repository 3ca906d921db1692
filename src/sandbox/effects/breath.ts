/**
 * Long work in one thread that lets other work go on, and that ends.
 *
 * Guarantees: between two awaited `take()`s that find the turn used up, timers, sockets and other calls have their turn;
 * once the time allowed is over, `take` throws what `late` makes. Costs a look at the clock, so that it can stand in an
 * inner loop. Assumes: its user awaits `take` often enough, a few milliseconds of work apart.
 */

/** What one piece of work may hold the thread for. */
const TURN_MS = 8

export class Breath {
  #turn = performance.now()
  readonly #end: number
  readonly #late: () => Error

  constructor(allowedMs: number, late: () => Error) {
    this.#end = this.#turn + allowedMs
    this.#late = late
  }

  /** Answers at once, without a promise, while the turn lasts. */
  take(): Promise<void> | undefined {
    const now = performance.now()
    if (now > this.#end) throw this.#late()
    if (now - this.#turn < TURN_MS) return undefined
    return new Promise<void>((resolve) => setImmediate(resolve)).then(() => {
      this.#turn = performance.now()
    })
  }
}

/** Work that has no end of its own to keep, and lets others go on all the same. */
export const takingTurns = (): Breath => new Breath(Number.POSITIVE_INFINITY, () => new Error("never"))
