/**
 * One limit on a piece of work: by time, by the client going away, or by somebody's word.
 *
 * Guarantees: expires once, and tells each listener once; a settled one holds no timer. No time is too long for it,
 * `Infinity` included. It does what an AbortSignal does, for a fraction of the cost: there is one for every connection.
 */

/** The longest wait that timers of the platform can count; a longer one would be over at once. */
export const timerMs = (ms: number): number => Math.min(ms, 2_147_483_647)

export class Deadline {
  #expired = false
  #timer: NodeJS.Timeout | undefined
  #listeners: (() => void)[] = []
  readonly #endsAt: number

  constructor(ms: number) {
    this.#endsAt = performance.now() + ms
    this.#timer = setTimeout(() => this.expire(), timerMs(ms))
  }

  /** A deadline for the first of `parts` pieces of what is left: it expires with this one at the latest. */
  share(parts: number): Deadline {
    if (parts <= 1 || this.#expired) return this
    const part = new Deadline((this.#endsAt - performance.now()) / parts)
    this.onExpired(() => part.expire())
    return part
  }

  get expired(): boolean {
    return this.#expired
  }

  expire(): void {
    if (this.#expired) return
    this.#expired = true
    this.settle()
    for (const listener of this.#listeners.splice(0)) listener()
  }

  /** Tells the listener when it expires, at once if it has. */
  onExpired(listener: () => void): void {
    if (this.#expired) listener()
    else this.#listeners.push(listener)
  }

  off(listener: () => void): void {
    const at = this.#listeners.indexOf(listener)
    if (at >= 0) this.#listeners.splice(at, 1)
  }

  /** The work is done: no more time is counted. */
  settle(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
  }
}
