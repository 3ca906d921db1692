/**
 * What is open right now: each allowed exchange or tunnel, with the policy generation that allowed it.
 *
 * Guarantees: every passage is closed exactly once, whatever ends it; both its ends go with it. Passages of an
 * older generation are cut by `cutBefore`; by the sweep those that are idle, those of which one end broke off while it
 * was not read, and those of which one end takes nothing of what it was given: after a while, and sooner where there are
 * many, since the kernel holds megabytes for each. A passage over its byte budget cuts itself. The
 * sweep's timer stops soon after the last one is closed and never holds the process.
 */
import type { BudgetMeter, BudgetName } from "../policy/budgets.ts"
import { attempt } from "../connection/boundary.ts"
import { abort, type Endpoint, hasBrokenOff, written } from "../connection/endpoint.ts"
import type { EgressBudgets, Verdict } from "../types.ts"

export interface Passage {
  readonly generation: number
  /** Counts bytes on their way; false: they must not go on, the passage has been cut. */
  out(bytes: number): boolean
  in(bytes: number): boolean
  /** Ends it and both its ends at once. */
  cut(): void
  /** The exchange or tunnel is over; its ends are the caller's again. */
  finish(): void
  readonly finished: boolean
  /** what was recorded when it went over a budget */
  readonly refusal: Verdict | undefined
}

/** Bytes that went to one host and port, and came from it. */
export interface Carried {
  out: number
  in: number
}

interface PassageOptions {
  /** counts along with the budgets */
  readonly carried: Carried
  readonly client: Endpoint
  readonly upstream: Endpoint
  readonly budgets: () => EgressBudgets
  /** records that a budget is used up */
  readonly onBudget: (name: BudgetName) => Verdict
  /** records that nothing has passed for too long */
  readonly onIdle: () => void
  /** for how long an end may take nothing of what it was given */
  readonly stalledMs?: number
  /** over a budget only the upstream is cut: whoever serves the client answers it with `refusal` */
  readonly answers?: boolean
}

export interface Passages {
  readonly open: number
  begin(generation: number, options: PassageOptions): Passage
  cutBefore(generation: number): void
  /** Cuts the passage that has been idle longest, if any has been for `idleMs`. */
  shedOldest(idleMs: number): boolean
  cutAll(): void
}

/** Since when one end takes nothing of what it was given. */
class Progress {
  #left = -1
  #since = 0

  stalledFor(end: Endpoint, now: number): number {
    const { unwritten, left } = written(end)
    if (unwritten === 0 || left !== this.#left) this.#since = now
    this.#left = left
    return now - this.#since
  }
}

/** One open passage; the registry owns the clock and the meter. */
class OpenPassage implements Passage {
  readonly generation: number
  lastActive = performance.now()
  finished = false
  refusal: Verdict | undefined
  readonly #options: PassageOptions
  readonly #towardsClient = new Progress()
  readonly #towardsUpstream = new Progress()
  readonly #meter: BudgetMeter
  readonly #forget: (passage: OpenPassage) => void
  /** what went over a socket that is not counted chunk by chunk */

  constructor(generation: number, options: PassageOptions, meter: BudgetMeter, forget: (passage: OpenPassage) => void) {
    this.generation = generation
    this.#options = options
    this.#meter = meter
    this.#forget = forget
  }

  out(bytes: number): boolean {
    const over = this.#meter.bytesOut(this.#options.budgets(), bytes)
    if (over === undefined) this.#options.carried.out += bytes
    return this.#passes(over)
  }

  in(bytes: number): boolean {
    const over = this.#meter.bytesIn(this.#options.budgets(), bytes)
    if (over === undefined) this.#options.carried.in += bytes
    return this.#passes(over)
  }

  cut(): void {
    if (this.finished) return
    this.finish()
    abort(this.#options.upstream)
    abort(this.#options.client)
  }

  finish(): void {
    if (this.finished) return
    this.finished = true
    this.#forget(this)
  }

  /**
   * Cuts it when an end broke off unseen, and when nothing has passed, or one end has taken nothing, for too long;
   * for how long one end has taken nothing.
   */
  check(now: number): number {
    if (this.finished) return 0
    const { client, upstream, budgets, stalledMs = Number.POSITIVE_INFINITY } = this.#options
    if (hasBrokenOff(client) || hasBrokenOff(upstream)) {
      this.cut()
      return 0
    }
    const { idleTimeoutMs } = budgets()
    const stalled = Math.max(
      this.#towardsClient.stalledFor(client, now),
      this.#towardsUpstream.stalledFor(upstream, now),
    )
    if (now - this.lastActive <= idleTimeoutMs && stalled <= Math.min(stalledMs, idleTimeoutMs)) return stalled
    this.giveUp()
    return 0
  }
  /** Cuts it as idle, on record. */
  giveUp(): void {
    if (this.finished) return
    this.#options.onIdle()
    this.cut()
  }

  #passes(over: BudgetName | undefined): boolean {
    if (this.finished) return false
    if (over === undefined) {
      this.lastActive = performance.now()
      return true
    }
    this.refusal = this.#options.onBudget(over)
    if (this.#options.answers !== true) this.cut()
    else {
      this.finish()
      abort(this.#options.upstream)
    }
    return false
  }
}

/** How many passages may have an end that takes nothing, and after how long one counts. */
interface StallLimits {
  readonly stalledPassages: number
  readonly shedIdleMs: number
}

export function createPassages(meter: BudgetMeter, limits: StallLimits): Passages {
  const entries = new Set<OpenPassage>()
  let timer: NodeJS.Timeout | undefined

  const sweep = () => {
    const now = performance.now()
    const stalled: { readonly entry: OpenPassage; readonly ms: number }[] = []
    const check = (entry: OpenPassage): void => {
      const ms = entry.check(now)
      if (ms >= limits.shedIdleMs) stalled.push({ entry, ms })
    }
    for (const entry of entries)
      attempt(
        () => check(entry),
        () => entry.cut(),
      )
    const tooMany = stalled.length - limits.stalledPassages
    if (tooMany > 0)
      for (const { entry } of stalled.toSorted((one, other) => other.ms - one.ms).slice(0, tooMany))
        attempt(
          () => entry.giveUp(),
          () => entry.cut(),
        )
    if (entries.size > 0) return
    clearInterval(timer)
    timer = undefined
  }
  const forget = (entry: OpenPassage) => void entries.delete(entry)

  return {
    get open() {
      return entries.size
    },
    begin(generation, options) {
      const entry = new OpenPassage(generation, options, meter, forget)
      entries.add(entry)
      timer ??= setInterval(sweep, 500).unref()
      return entry
    },
    cutBefore(generation) {
      for (const entry of entries) if (entry.generation < generation) entry.cut()
    },
    shedOldest(idleMs) {
      const now = performance.now()
      let oldest: OpenPassage | undefined
      for (const entry of entries) if (oldest === undefined || entry.lastActive < oldest.lastActive) oldest = entry
      if (oldest === undefined || now - oldest.lastActive < idleMs) return false
      oldest.cut()
      return true
    },
    cutAll() {
      for (const entry of entries) entry.cut()
      clearInterval(timer)
      timer = undefined
    },
  }
}
