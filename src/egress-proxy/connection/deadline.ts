/**
 * Waiting for something with a limit, at a fraction of what a timer or an AbortSignal costs: there are some for every
 * connection.
 *
 * Guarantees: a wait is over once, when its time has come, unless it was given up; one whose end throws keeps no other
 * from ending. No time is too long, `Infinity` included. Long waits share one timer and may last up to half a second longer; it stops when nobody waits, and never
 * holds the process.
 */

import { attempt } from "./boundary.ts"

/** The longest wait that timers of the platform can count; a longer one would be over at once. */
export const timerMs = (ms: number): number => Math.min(ms, 2_147_483_647)

const longMs = 5_000
const sweepMs = 500

export abstract class Wait {
  #due = 0
  #timer: NodeJS.Timeout | undefined
  #long = false

  /** What happens when the time has come. */
  protected abstract onDue(): void

  protected wait(ms: number): void {
    if (ms >= longMs) {
      this.#due = performance.now() + ms
      this.#long = true
      waiting.add(this)
      sweeper ??= setInterval(sweep, sweepMs).unref()
    } else this.#timer = setTimeout(() => attempt(() => this.onDue(), nothing), ms)
  }

  protected giveUp(): void {
    if (this.#long) {
      this.#long = false
      waiting.delete(this)
    } else if (this.#timer !== undefined) {
      clearTimeout(this.#timer)
      this.#timer = undefined
    }
  }

  static sweep(now: number): void {
    for (const one of waiting) {
      if (now < one.#due) continue
      one.giveUp()
      attempt(() => one.onDue(), nothing)
    }
  }
}

const nothing = (): void => {}
const waiting = new Set<Wait>()
let sweeper: NodeJS.Timeout | undefined

function sweep(): void {
  Wait.sweep(performance.now())
  if (waiting.size > 0) return
  clearInterval(sweeper)
  sweeper = undefined
}

/** One limit on a piece of work: by time, by the client going away, or by somebody's word. Tells each listener once. */
export class Deadline extends Wait {
  #expired = false
  #listeners: (() => void)[] = []
  readonly #endsAt: number

  constructor(ms: number) {
    super()
    this.#endsAt = performance.now() + ms
    this.wait(ms)
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
    for (const listener of this.#listeners.splice(0)) attempt(listener, nothing)
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
    this.giveUp()
  }

  protected override onDue(): void {
    this.expire()
  }
}
