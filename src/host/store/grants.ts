/**
 * The table of grants: a person's yes to calls of one tool, given beforehand, so many times and until a moment.
 *
 * Guarantees: of a grant no more uses are given than it has, whoever asks at once; none once it was revoked or is over. It
 * is over when the wall's clock says so, and also when the machine's own says that it lasted its time, so that a clock that
 * is set back lengthens nothing. Those that ended are forgotten after a while, never one that is good.
 */
import { type Instant, isOver } from "./instant.ts"
import type { GrantBounds, GrantFilter, GrantRecord, NewGrant } from "./store.ts"
import { allRows, change, oneRow, type Row, type Verb } from "./verb.ts"

export const grantsTable = `CREATE TABLE grants (
  id TEXT PRIMARY KEY,
  tenant TEXT NOT NULL,
  user TEXT NOT NULL,
  tool TEXT NOT NULL,
  workspace TEXT,
  uses INTEGER NOT NULL CHECK (uses > 0),
  used INTEGER NOT NULL DEFAULT 0 CHECK (used BETWEEN 0 AND uses),
  made_ms INTEGER NOT NULL,
  boot TEXT NOT NULL,
  up_ms INTEGER NOT NULL,
  expires_ms INTEGER NOT NULL,
  revoked_ms INTEGER,
  facts TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX grants_by_user ON grants (tenant, user, tool, expires_ms, id);`

const isText = (value: unknown): value is string => typeof value === "string"

/** A row whose words were damaged grants nothing. */
const grantOf = (row: Row): GrantRecord | undefined => {
  try {
    const facts = JSON.parse(String(row["facts"])) as GrantRecord["facts"]
    const { by, roles, reason, path } = facts
    const isWhole =
      isText(by) &&
      isText(reason) &&
      Array.isArray(roles) &&
      roles.every(isText) &&
      (path === undefined || isText(path))
    if (!isWhole) return undefined
    return {
      id: String(row["id"]),
      tenant: String(row["tenant"]),
      user: String(row["user"]),
      tool: String(row["tool"]),
      ...(typeof row["workspace"] === "string" ? { workspace: row["workspace"] } : {}),
      uses: Number(row["uses"]),
      used: Number(row["used"]),
      made: { wallMs: Number(row["made_ms"]), boot: String(row["boot"]), upMs: Number(row["up_ms"]) },
      expiresMs: Number(row["expires_ms"]),
      ...(row["revoked_ms"] === null ? {} : { revokedMs: Number(row["revoked_ms"]) }),
      facts,
    }
  } catch {
    return undefined
  }
}

/** Pure: is it good for one more use? */
export const isGood = ({ revokedMs, used, uses, made, expiresMs }: GrantRecord, at: Instant): boolean =>
  revokedMs === undefined && used < uses && at.wallMs < expiresMs && !isOver(made, expiresMs - made.wallMs, at)

const ENDED = "CASE WHEN revoked_ms < expires_ms THEN revoked_ms ELSE expires_ms END"
const GOOD = `SELECT count(*) AS good FROM grants
  WHERE tenant = ? AND revoked_ms IS NULL AND used < uses AND expires_ms > ?`

export function* makeGrant(grant: NewGrant, { count, keepMs }: GrantBounds): Verb<boolean> {
  const { id, tenant, user, tool, workspace, uses, made, expiresMs, facts } = grant
  yield* change(`DELETE FROM grants WHERE tenant = ? AND ${ENDED} < ?`, tenant, made.wallMs - keepMs)
  const row = yield* oneRow(GOOD, tenant, made.wallMs)
  if (Number(row?.["good"]) >= count) return false
  yield* change(
    `INSERT INTO grants (id, tenant, user, tool, workspace, uses, made_ms, boot, up_ms, expires_ms, facts)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    ...[id, tenant, user, tool, workspace ?? null, uses],
    ...[made.wallMs, made.boot, made.upMs, expiresMs, JSON.stringify(facts)],
  )
  return true
}

const COVERING = `SELECT * FROM grants WHERE tenant = ? AND user = ? AND tool = ?
  AND (workspace IS NULL OR workspace = ?) AND revoked_ms IS NULL AND used < uses ORDER BY expires_ms, id`

/** What ends first is the first. */
export function* grantsOf({ tenant, covering }: GrantFilter): Verb<readonly GrantRecord[]> {
  const rows =
    covering === undefined
      ? yield* allRows("SELECT * FROM grants WHERE tenant = ? ORDER BY expires_ms, id", tenant)
      : yield* allRows(COVERING, tenant, covering.user, covering.tool, covering.workspace)
  return rows.flatMap((row) => grantOf(row) ?? [])
}

export function* revokeGrant(tenant: string, id: string, atMs: number): Verb<boolean> {
  const sql = "UPDATE grants SET revoked_ms = ? WHERE tenant = ? AND id = ? AND revoked_ms IS NULL"
  return (yield* change(sql, atMs, tenant, id)) === 1
}

export function* useGrant(tenant: string, id: string, at: Instant): Verb<GrantRecord | undefined> {
  const row = yield* oneRow("SELECT * FROM grants WHERE tenant = ? AND id = ?", tenant, id)
  const grant = row === undefined ? undefined : grantOf(row)
  if (grant === undefined || !isGood(grant, at)) return undefined
  const used = yield* oneRow(
    "UPDATE grants SET used = used + 1 WHERE id = ? AND used < uses AND revoked_ms IS NULL RETURNING *",
    id,
  )
  return used === undefined ? undefined : grantOf(used)
}
