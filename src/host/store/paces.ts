/**
 * The table of paces: when the next request to a service is due, and until when it asked to be left alone.
 *
 * Guarantees: processes that share the store share one pace. A turn is reserved as it is given, so that whoever waits for
 * one does not have to ask again. What a clock that was set says can only shorten a wait, never lengthen it.
 */
import { hostLimits } from "../limits.ts"
import { elapsedMs, type Instant } from "./instant.ts"
import type { PacePause, PaceTurn, PaceWait } from "./store.ts"
import { change, oneRow, type Verb } from "./verb.ts"

export const pacesTable = `CREATE TABLE paces (
  tenant TEXT NOT NULL,
  subject TEXT NOT NULL,
  wall_ms INTEGER NOT NULL,
  boot TEXT NOT NULL,
  up_ms INTEGER NOT NULL,
  due_ms REAL NOT NULL,
  pause_ms REAL NOT NULL,
  PRIMARY KEY (tenant, subject)
) STRICT, WITHOUT ROWID;`

/** From now: when a request would be due if all came evenly, and how long the service wants to be left alone. */
interface Pace {
  readonly dueMs: number
  readonly pauseMs: number
}

const MINUTE = 60_000

/** The generic cell rate algorithm: `burst` requests at once, then one every so often. Pure. */
export const nextTurn = (
  { dueMs, pauseMs }: Pace,
  { rate, patienceMs }: Pick<PaceTurn, "rate" | "patienceMs">,
): PaceWait & { readonly dueMs: number } => {
  const everyMs = rate === undefined ? 0 : MINUTE / rate.perMinute
  const early = rate === undefined ? 0 : everyMs * (rate.burst - 1)
  const ownMs = rate === undefined ? 0 : Math.max(0, dueMs - early)
  const waitMs = Math.ceil(Math.max(ownMs, pauseMs))
  const why = pauseMs > 0 && pauseMs >= ownMs ? "asked" : "rate"
  if (waitMs > patienceMs) return { given: false, waitMs, why, dueMs }
  return { given: true, waitMs, why, dueMs: Math.max(dueMs, waitMs) + everyMs }
}

function* paceNow(tenant: string, subject: string, at: Instant): Verb<Pace> {
  const row = yield* oneRow("SELECT * FROM paces WHERE tenant = ? AND subject = ?", tenant, subject)
  if (row === undefined) return { dueMs: 0, pauseMs: 0 }
  const since = { wallMs: Number(row["wall_ms"]), boot: String(row["boot"]), upMs: Number(row["up_ms"]) }
  const gone = elapsedMs(since, at)
  const left = (ms: unknown): number => Math.max(0, Math.min(Number(ms), hostLimits.paceMs.value) - gone)
  return { dueMs: left(row["due_ms"]), pauseMs: left(row["pause_ms"]) }
}

function* keep(tenant: string, subject: string, at: Instant, { dueMs, pauseMs }: Pace): Verb<void> {
  yield* change(
    `INSERT INTO paces (tenant, subject, wall_ms, boot, up_ms, due_ms, pause_ms) VALUES (?, ?, ?, ?, ?, ?, ?)
     ON CONFLICT (tenant, subject) DO UPDATE SET wall_ms = excluded.wall_ms, boot = excluded.boot,
       up_ms = excluded.up_ms, due_ms = excluded.due_ms, pause_ms = excluded.pause_ms`,
    ...[tenant, subject, at.wallMs, at.boot, at.upMs, dueMs, pauseMs],
  )
  yield* change("DELETE FROM paces WHERE wall_ms < ?", at.wallMs - 2 * hostLimits.paceMs.value)
}

/** What a request without a rate of its own is told; nothing is changed by it. */
export function* lookAtPace({ tenant, subject, at, patienceMs }: PaceTurn): Verb<PaceWait> {
  const { given, waitMs, why } = nextTurn(yield* paceNow(tenant, subject, at), { patienceMs })
  return { given, waitMs, why }
}

export function* takeTurn(turn: PaceTurn): Verb<PaceWait> {
  const { tenant, subject, at } = turn
  const pace = yield* paceNow(tenant, subject, at)
  const { given, waitMs, why, dueMs } = nextTurn(pace, turn)
  if (given) yield* keep(tenant, subject, at, { dueMs, pauseMs: pace.pauseMs })
  return { given, waitMs, why }
}

/** A longer pause that was asked for before stands. */
export function* pausePace({ tenant, subject, at, forMs }: PacePause): Verb<void> {
  const { dueMs, pauseMs } = yield* paceNow(tenant, subject, at)
  const asked = Math.min(Math.max(0, forMs), hostLimits.paceMs.value)
  yield* keep(tenant, subject, at, { dueMs, pauseMs: Math.max(pauseMs, asked) })
}
