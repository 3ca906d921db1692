/**
 * The table of tokens: who may knock at the daemon, by a digest of what they show.
 *
 * Guarantees: no token is in it, only its SHA-256; one that was revoked stays, so that what it did can still be told.
 */
import type { NewToken, TokenRecord } from "./store.ts"
import { allRows, change, oneRow, type Row, type Verb } from "./verb.ts"

export const tokensTable = `CREATE TABLE tokens (
  id TEXT PRIMARY KEY,
  tenant TEXT NOT NULL,
  hash TEXT NOT NULL UNIQUE,
  facts TEXT NOT NULL,
  made_ms INTEGER NOT NULL,
  expires_ms INTEGER,
  revoked_ms INTEGER
) STRICT, WITHOUT ROWID;`

const isTexts = (value: unknown): value is readonly string[] =>
  Array.isArray(value) && value.every((one) => typeof one === "string")

/** A row whose words were damaged opens nothing. */
const tokenOf = (row: Row): TokenRecord | undefined => {
  try {
    const facts = JSON.parse(String(row["facts"])) as NewToken["facts"]
    const { user, workspaces, roles, mayApprove } = facts
    const isWhole =
      typeof user === "string" &&
      typeof mayApprove === "boolean" &&
      isTexts(roles) &&
      (workspaces === "any" || isTexts(workspaces))
    if (!isWhole) return undefined
    return {
      id: String(row["id"]),
      tenant: String(row["tenant"]),
      hash: String(row["hash"]),
      facts,
      madeMs: Number(row["made_ms"]),
      ...(row["expires_ms"] === null ? {} : { expiresMs: Number(row["expires_ms"]) }),
      ...(row["revoked_ms"] === null ? {} : { revokedMs: Number(row["revoked_ms"]) }),
    }
  } catch {
    return undefined
  }
}

export function* issueToken({ id, tenant, hash, facts, madeMs, expiresMs }: NewToken): Verb<void> {
  const sql = "INSERT INTO tokens (id, tenant, hash, facts, made_ms, expires_ms) VALUES (?, ?, ?, ?, ?, ?)"
  yield* change(sql, id, tenant, hash, JSON.stringify(facts), madeMs, expiresMs ?? null)
}

export function* tokenBy(hash: string): Verb<TokenRecord | undefined> {
  const row = yield* oneRow("SELECT * FROM tokens WHERE hash = ?", hash)
  return row === undefined ? undefined : tokenOf(row)
}

export function* tokensOf(tenant: string): Verb<readonly TokenRecord[]> {
  const rows = yield* allRows("SELECT * FROM tokens WHERE tenant = ? ORDER BY made_ms, id", tenant)
  return rows.flatMap((row) => tokenOf(row) ?? [])
}

export function* revokeToken(tenant: string, id: string, atMs: number): Verb<boolean> {
  const sql = "UPDATE tokens SET revoked_ms = ? WHERE tenant = ? AND id = ? AND revoked_ms IS NULL"
  return (yield* change(sql, atMs, tenant, id)) === 1
}
