/**
 * The table of what was spent: calls and units of cost by account, in stretches of time.
 *
 * Guarantees: an account never goes beyond what whoever spends says it may hold, whoever spends at once; all accounts of
 * one spending are debited, or none. What was spent long ago is forgotten.
 */
import type { Spending, SpendResult } from "./store.ts"
import { change, oneRow, type Verb } from "./verb.ts"

export const spentTable = `CREATE TABLE spent (
  tenant TEXT NOT NULL,
  subject TEXT NOT NULL,
  since_ms INTEGER NOT NULL,
  calls INTEGER NOT NULL CHECK (calls >= 0),
  units REAL NOT NULL CHECK (units >= 0),
  PRIMARY KEY (tenant, subject, since_ms)
) STRICT, WITHOUT ROWID;
CREATE INDEX spent_by_time ON spent (since_ms);`

const READ = "SELECT calls, units FROM spent WHERE tenant = ? AND subject = ? AND since_ms = ?"
const ADD = `INSERT INTO spent (tenant, subject, since_ms, calls, units) VALUES (?, ?, ?, ?, ?)
  ON CONFLICT (tenant, subject, since_ms) DO UPDATE SET calls = spent.calls + excluded.calls,
    units = spent.units + excluded.units`

export function* spend({ tenant, accounts, units, forgetMs, look = false }: Spending): Verb<SpendResult> {
  for (const [index, { subject, sinceMs, most }] of accounts.entries()) {
    const row = yield* oneRow(READ, tenant, subject, sinceMs)
    const used = { calls: Number(row?.["calls"] ?? 0), units: Number(row?.["units"] ?? 0) }
    const isOver =
      (most?.calls !== undefined && used.calls + 1 > most.calls) ||
      (most?.units !== undefined && used.units + units > most.units)
    if (isOver) return { ok: false, index, used }
  }
  if (look) return { ok: true }
  for (const { subject, sinceMs } of accounts) yield* change(ADD, tenant, subject, sinceMs, 1, units)
  yield* change("DELETE FROM spent WHERE since_ms < ?", forgetMs)
  return { ok: true }
}
