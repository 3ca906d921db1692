/**
 * The table of calls: what was admitted, under which key, and what it answered.
 *
 * Guarantees: a key of a caller's stands for one call: who brings it again is given that call, and with another payload is
 * told so. What a call answered is remembered once, and of one that
 * was held once more when it was decided. Calls that ended are forgotten after `keepMs`, those with a key after
 * `keepKeyedMs`, never one that runs.
 */
import type { JsonObject } from "../../manifest/types.ts"
import type { AdmitResult, CallFilter, CallRecord, CallRetention, NewCall, SettledCall } from "./store.ts"
import { allRows, change, oneRow, type Row, type SqlValue, type Verb } from "./verb.ts"

export const callsTable = `CREATE TABLE calls (
  id TEXT PRIMARY KEY,
  tenant TEXT NOT NULL,
  user TEXT NOT NULL,
  actor TEXT NOT NULL,
  workspace TEXT NOT NULL,
  owner TEXT NOT NULL,
  epoch INTEGER NOT NULL,
  tool TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('running', 'settled')),
  key TEXT UNIQUE,
  payload TEXT,
  began_ms INTEGER NOT NULL,
  ended_ms INTEGER,
  envelope TEXT
) STRICT, WITHOUT ROWID;
CREATE INDEX calls_by_user ON calls (tenant, user, began_ms, id);
CREATE INDEX calls_by_end ON calls (state, ended_ms);`

const callOf = (row: Row): CallRecord => {
  const key = row["key"]
  const envelope = row["envelope"]
  return {
    id: String(row["id"]),
    tenant: String(row["tenant"]),
    owner: String(row["owner"]),
    epoch: Number(row["epoch"]),
    user: String(row["user"]),
    actor: String(row["actor"]),
    workspace: String(row["workspace"]),
    tool: String(row["tool"]),
    state: row["state"] === "settled" ? "settled" : "running",
    beganMs: Number(row["began_ms"]),
    ...(typeof key === "string" ? { key: { digest: key, payload: String(row["payload"]) } } : {}),
    ...(row["ended_ms"] === null ? {} : { endedMs: Number(row["ended_ms"]) }),
    ...(typeof envelope === "string" ? { envelope: parsed(envelope) } : {}),
  }
}

/** One that was damaged says nothing. */
const parsed = (text: string): JsonObject => {
  try {
    return JSON.parse(text) as JsonObject
  } catch {
    return {}
  }
}

const COLUMNS =
  "id, tenant, user, actor, workspace, owner, epoch, tool, state, key, payload, began_ms, ended_ms, envelope"
const insertion = (conflict: string): string =>
  `INSERT INTO calls (${COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT ${conflict}`

const valuesOf = (
  call: NewCall,
  owner: string,
  state: CallRecord["state"],
  ended?: SettledCall,
): readonly SqlValue[] => [
  call.id,
  call.tenant,
  call.user,
  call.actor,
  call.workspace,
  owner,
  call.epoch,
  call.tool,
  state,
  call.key?.digest ?? null,
  call.key?.payload ?? null,
  call.beganMs,
  ended?.endedMs ?? null,
  ended === undefined ? null : JSON.stringify(ended.envelope),
]

/** Done again by the same call, it is admitted as before. */
export function* admitCall(call: NewCall, owner: string): Verb<AdmitResult> {
  if ((yield* change(insertion("DO NOTHING"), ...valuesOf(call, owner, "running"))) === 1) return { ok: true }
  const row = yield* oneRow("SELECT * FROM calls WHERE id = ? OR key = ?", call.id, call.key?.digest ?? null)
  if (row === undefined) return yield* admitCall(call, owner)
  const known = callOf(row)
  if (known.id === call.id && known.state === "running") return { ok: true }
  return { ok: false, why: known.key?.payload === call.key?.payload ? "known" : "other-payload", call: known }
}

/** Also of a call that was never admitted here: then what it was is remembered with what it answered. */
export function* settleCall(call: NewCall, owner: string, ended: SettledCall): Verb<void> {
  yield* change(
    insertion(`(id) DO UPDATE SET state = excluded.state, ended_ms = excluded.ended_ms, envelope = excluded.envelope
      WHERE calls.state = 'running' AND calls.owner = excluded.owner`),
    ...valuesOf(call, owner, "settled", ended),
  )
}

/** One that was held answers something else once it was decided; of one that is not on record nothing is remembered. */
export function* amendCall(id: string, owner: string, { endedMs, envelope }: SettledCall): Verb<void> {
  const sql = "UPDATE calls SET envelope = ?, ended_ms = ? WHERE id = ? AND owner = ? AND state = 'settled'"
  yield* change(sql, JSON.stringify(envelope), endedMs, id, owner)
}

export function* forgetCalls(atMs: number, { keepMs, keepKeyedMs }: CallRetention): Verb<void> {
  const sql = "DELETE FROM calls WHERE state = 'settled' AND ended_ms < ? AND (key IS NULL OR ended_ms < ?)"
  yield* change(sql, atMs - keepMs, atMs - keepKeyedMs)
}

export function* findCall(id: string): Verb<CallRecord | undefined> {
  const row = yield* oneRow("SELECT * FROM calls WHERE id = ?", id)
  return row === undefined ? undefined : callOf(row)
}

export function* callsOf({ tenant, user, state, limit }: CallFilter): Verb<readonly CallRecord[]> {
  const wheres = ["tenant = ?"]
  const values: SqlValue[] = [tenant]
  if (user !== undefined) {
    wheres.push("user = ?")
    values.push(user)
  }
  if (state !== undefined) {
    wheres.push("state = ?")
    values.push(state)
  }
  const sql = `SELECT * FROM calls WHERE ${wheres.join(" AND ")} ORDER BY began_ms DESC, id DESC LIMIT ?`
  return (yield* allRows(sql, ...values, limit)).map(callOf)
}

export function* openCalls(owner: string): Verb<readonly CallRecord[]> {
  const sql = "SELECT * FROM calls WHERE state = 'running' AND owner = ? ORDER BY began_ms, id"
  return (yield* allRows(sql, owner)).map(callOf)
}
