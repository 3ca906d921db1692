/**
 * The table of held calls: what waits for an answer, who decides, what came of it.
 *
 * Guarantees: one decider at a time; only the claim that is the current one settles or releases. Calls that were settled
 * are remembered up to a number, the oldest forgotten first. A row that was damaged keeps nobody from the others. All of
 * one host's own: what another host holds lies in its data folder.
 */
import type { JsonObject } from "../../manifest/types.ts"
import { amendCall } from "./calls.ts"
import { type Instant, isOver } from "./instant.ts"
import type {
  Claim,
  ClaimResult,
  Decision,
  HeldCall,
  HeldFilter,
  HeldOutcome,
  HoldBounds,
  HoldResult,
  NewHeldCall,
  SettledCall,
} from "./store.ts"
import { allRows, change, oneRow, type Row, type Verb } from "./verb.ts"

/** To the letter, blanks too: files that are in use hold these very words. */
export const heldTable = `CREATE TABLE held (
       id TEXT PRIMARY KEY,
       tenant TEXT NOT NULL,
       workspace TEXT NOT NULL,
       owner TEXT NOT NULL,
       epoch INTEGER NOT NULL,
       state TEXT NOT NULL CHECK (state IN ('held', 'deciding', 'settled')),
       held_ms INTEGER NOT NULL,
       boot TEXT NOT NULL,
       up_ms INTEGER NOT NULL,
       hold_ms INTEGER NOT NULL,
       bytes INTEGER NOT NULL CHECK (bytes >= 0),
       facts TEXT NOT NULL,
       receipt TEXT,
       claims INTEGER NOT NULL DEFAULT 0,
       claim TEXT,
       outcome TEXT
     ) STRICT, WITHOUT ROWID;
     CREATE INDEX held_by_state ON held (tenant, state, held_ms, id);`

const STATES: readonly HeldCall["state"][] = ["held", "deciding", "settled"]
/** One that no verb wrote can still be claimed, and so be thrown away. */
const stateOf = (row: Row): HeldCall["state"] => STATES.find((state) => state === row["state"]) ?? "held"

/** A row whose texts were damaged is a row all the same: one of them keeps nobody from the others. */
const callOf = (row: Row): HeldCall => {
  try {
    return wholeCall(row)
  } catch {
    const claim = { number: row["claims"], decision: "approve", by: "unknown", atMs: row["held_ms"] }
    const open = stateOf(row) === "deciding" ? JSON.stringify(claim) : null
    return wholeCall({ ...row, facts: "{}", claim: open, outcome: null })
  }
}

const decisions: readonly Decision[] = ["approve", "deny", "expire"]
const claimIn = (text: unknown): Claim => {
  const value = JSON.parse(text as string) as Partial<Record<keyof Claim, unknown>> | null
  const isClaim =
    decisions.some((known) => known === value?.decision) &&
    Number.isSafeInteger(value?.number) &&
    Number.isSafeInteger(value?.atMs) &&
    typeof value?.by === "string"
  if (!isClaim) throw new SyntaxError("no claim")
  return value as Claim
}

const wholeCall = (row: Row): HeldCall => ({
  id: row["id"] as string,
  tenant: row["tenant"] as string,
  workspace: row["workspace"] as string,
  owner: row["owner"] as string,
  epoch: row["epoch"] as number,
  state: stateOf(row),
  at: { wallMs: row["held_ms"] as number, boot: row["boot"] as string, upMs: row["up_ms"] as number },
  holdMs: row["hold_ms"] as number,
  bytes: row["bytes"] as number,
  facts: JSON.parse(row["facts"] as string) as JsonObject,
  ...(row["receipt"] === null ? {} : { receipt: row["receipt"] as string }),
  // Whoever is deciding has a claim.
  ...(row["claim"] === null && stateOf(row) !== "deciding" ? {} : { claim: claimIn(row["claim"]) }),
  ...(row["outcome"] === null ? {} : { outcome: JSON.parse(row["outcome"] as string) as HeldOutcome }),
})

export function* findHeld(owner: string, id: string): Verb<HeldCall | undefined> {
  const row = yield* oneRow("SELECT * FROM held WHERE owner = ? AND id = ?", owner, id)
  return row === undefined ? undefined : callOf(row)
}

export function* heldOf(owner: string, { tenant, states }: HeldFilter): Verb<readonly HeldCall[]> {
  const marks = states.map(() => "?").join(", ")
  const whose = tenant === undefined ? "" : "tenant = ? AND "
  const sql = `SELECT * FROM held WHERE ${whose}owner = ? AND state IN (${marks}) ORDER BY held_ms, id`
  return (yield* allRows(sql, ...(tenant === undefined ? [] : [tenant]), owner, ...states)).map(callOf)
}

/** What a damaged row says that it takes may be more than can be added up in whole numbers. */
const USED = `SELECT count(*) AS count,
    coalesce(sum(CAST(CASE WHEN bytes > 0 THEN bytes ELSE 0 END AS DOUBLE PRECISION)), 0) AS bytes
  FROM held WHERE tenant = ? AND owner = ? AND state <> 'settled'`

export function* hold(owner: string, call: NewHeldCall, bounds: HoldBounds): Verb<HoldResult> {
  const used = yield* oneRow(USED, call.tenant, owner)
  if (Number(used?.["count"]) + 1 > bounds.count) return { ok: false, at: "count" }
  if (Number(used?.["bytes"]) + call.bytes > bounds.bytes) return { ok: false, at: "bytes" }
  const { id, tenant, workspace, epoch, at, holdMs, bytes, facts } = call
  yield* change(
    `INSERT INTO held (id, tenant, workspace, owner, epoch, state, held_ms, boot, up_ms, hold_ms, bytes, facts)
     VALUES (?, ?, ?, ?, ?, 'held', ?, ?, ?, ?, ?, ?)`,
    ...[id, tenant, workspace, owner, epoch, at.wallMs, at.boot, at.upMs, holdMs, bytes, JSON.stringify(facts)],
  )
  return { ok: true }
}

export function* receipted(owner: string, id: string, receipt: string): Verb<void> {
  yield* change("UPDATE held SET receipt = ? WHERE owner = ? AND id = ?", receipt, owner, id)
}

export function* claim(owner: string, id: string, decision: Decision, by: string, at: Instant): Verb<ClaimResult> {
  const row = yield* oneRow("SELECT * FROM held WHERE owner = ? AND id = ?", owner, id)
  if (row === undefined) return { ok: false, why: "absent" }
  const held = callOf(row)
  if (held.state !== "held") return { ok: false, why: held.state, held }
  const over = isOver(held.at, held.holdMs, at)
  if (over && decision !== "expire") return { ok: false, why: "expired", held }
  if (!over && decision === "expire") return { ok: false, why: "waiting", held }
  const made: Claim = { number: Number(row["claims"]) + 1, decision, by, atMs: at.wallMs }
  yield* change(
    "UPDATE held SET state = 'deciding', claims = ?, claim = ? WHERE id = ?",
    ...[made.number, JSON.stringify(made), id],
  )
  return { ok: true, held: { ...held, state: "deciding", claim: made }, claim: made }
}

/** Only by the claim that is the current one. */
function* end(
  owner: string,
  id: string,
  number: number,
  state: "held" | "settled",
  outcome?: HeldOutcome,
): Verb<boolean> {
  const sql = "UPDATE held SET state = ?, outcome = ? WHERE owner = ? AND id = ? AND state = 'deciding' AND claims = ?"
  const text = outcome === undefined ? null : JSON.stringify(outcome)
  return (yield* change(sql, state, text, owner, id, number)) === 1
}

export const release = (owner: string, id: string, number: number): Verb<boolean> => end(owner, id, number, "held")

const FORGET = `DELETE FROM held WHERE id IN (
  SELECT id FROM (
    SELECT id, row_number() OVER (ORDER BY held_ms DESC, id DESC) AS place FROM held
    WHERE state = 'settled' AND owner = ? AND tenant = (SELECT tenant FROM held WHERE id = ?)
  ) AS own WHERE place > ?)`

export function* settle(
  owner: string,
  id: string,
  number: number,
  outcome: HeldOutcome,
  most: number,
  ended?: SettledCall,
): Verb<boolean> {
  if (!(yield* end(owner, id, number, "settled", outcome))) return false
  if (ended !== undefined) yield* amendCall(id, owner, ended)
  yield* change(FORGET, owner, id, most)
  return true
}
