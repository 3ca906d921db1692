/**
 * A moment, told by two clocks: the wall's, which can be set, and the machine's own since it booted, which cannot.
 *
 * Guarantees: within one boot only the machine's clock counts, suspended time included, so setting the wall clock neither
 * lengthens nor shortens a wait. After a reboot, or where a container's own uptime began anew, the wall clock is all there
 * is: then a wait is over when that says so, and also when it says that the wait has not begun yet, because a clock that
 * went back cannot tell.
 * Pure but for `now`.
 */
import { uptime } from "node:os"
import { bootId } from "../../linux/boot-id.ts"

export interface Instant {
  readonly wallMs: number
  /** which boot of the machine; empty: not known, and the wall clock decides */
  readonly boot: string
  /** milliseconds since then */
  readonly upMs: number
}

export const now = (): Instant => ({ wallMs: Date.now(), boot: bootId(), upMs: Math.round(uptime() * 1000) })

/** How long ago it was; for ever where no clock can tell. */
export const elapsedMs = (since: Instant, at: Instant): number => {
  if (since.boot !== "" && since.boot === at.boot && since.upMs <= at.upMs) return at.upMs - since.upMs
  return at.wallMs < since.wallMs ? Number.POSITIVE_INFINITY : at.wallMs - since.wallMs
}

export const isOver = (since: Instant, forMs: number, at: Instant): boolean => elapsedMs(since, at) >= forMs
