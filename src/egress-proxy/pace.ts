/**
 * How fast the proxies of this process may work while they share it.
 *
 * Guarantees: a proxy that is alone is never held up. While others have connections, or had some a moment ago, one
 * works on at most `perSecond` beside what it saved up, `saved` at most; those that want more than that divide
 * `perSecond` among them, so that all of them together leave the event loop to those that ask for little.
 * Assumes: what is spent is counted in one unit by all; whoever is told to wait does so.
 */
export interface Pace {
  join(): Place
}

/** One proxy's place among those of its process. */
export interface Place {
  /** A connection is there, and is gone. */
  come(): void
  go(): void
  /** Milliseconds until it may go on; it is taken to want to. */
  wait(): number
  spend(cost: number): void
  /** It wants nothing more for now. */
  rest(): void
}

/** One that nobody waits for. */
export const unhurried: Place = { come() {}, go() {}, wait: () => 0, spend() {}, rest() {} }

/** for how long one that has no connection still counts as there */
const lingersMs = 1_000

export function createPace(perSecond: number, saved: number, now: () => number = () => performance.now()): Pace {
  const open = new Set<Place>()
  const recent = new Map<Place, number>()
  /** those that have spent what they may, and want more */
  const behind = new Set<Place>()
  const othersThan = (place: Place, at: number): boolean => {
    if (open.size > (open.has(place) ? 1 : 0)) return true
    for (const [other, last] of recent) if (other !== place && at - last <= lingersMs) return true
    return false
  }
  return {
    join() {
      let connections = 0
      let credit = saved
      let since = now()
      const seen = (at: number): void => {
        recent.delete(place)
        recent.set(place, at)
        for (const [other, last] of recent) {
          if (at - last <= lingersMs) break
          recent.delete(other)
        }
      }
      const place: Place = {
        come() {
          connections += 1
          open.add(place)
        },
        go() {
          connections -= 1
          if (connections > 0) return
          open.delete(place)
          seen(now())
        },
        wait() {
          const at = now()
          const rate = perSecond / 1_000 / Math.max(1, behind.size)
          credit = Math.min(saved, credit + (at - since) * rate)
          since = at
          if (connections === 0) seen(at)
          if (credit > 0 || !othersThan(place, at)) {
            behind.delete(place)
            // What was done while nobody was held up is not owed.
            credit = Math.max(credit, 0)
            return 0
          }
          behind.add(place)
          return (1 - credit) / rate
        },
        spend(cost) {
          credit -= cost
        },
        rest: () => void behind.delete(place),
      }
      return place
    },
  }
}
