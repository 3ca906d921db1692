/**
 * One limit on a piece of work: by time, by the client going away, or by somebody's word.
 *
 * Guarantees: expires once, and tells each listener once; a settled one holds no timer. It does what an AbortSignal
 * does, for a fraction of the cost: there is one for every connection.
 */
export class Deadline {
  #expired = false
  #timer: NodeJS.Timeout | undefined
  #listeners: (() => void)[] = []

  constructor(ms: number) {
    this.#timer = setTimeout(() => this.expire(), ms)
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
