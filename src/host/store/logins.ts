/**
 * The table of logins: where each stands, changed by compare-and-set.
 *
 * Guarantees: a change takes place only on the generation that it was made for, and each makes the next one, so that of
 * two that saw the same state one is told to look again. A row whose text was damaged counts as nothing known, under the
 * generation that it has. Does not: know which state may follow which; holds no secret.
 */
import { type LoginState, loginStates } from "../login-state.ts"
import type { LoginChange, LoginFacts, LoginKey, LoginRecord } from "./store.ts"
import { allRows, change, oneRow, type Row, type Verb } from "./verb.ts"

export const loginsTable = `CREATE TABLE logins (
  tenant TEXT NOT NULL,
  driver TEXT NOT NULL,
  workspace TEXT NOT NULL,
  user TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN (
    'unknown', 'unavailable', 'setup_required', 'unauthed', 'logging-in', 'authed', 'expired')),
  generation INTEGER NOT NULL CHECK (generation > 0),
  facts TEXT NOT NULL,
  PRIMARY KEY (tenant, driver, workspace, user)
) STRICT, WITHOUT ROWID;`

const nothingKnown: LoginFacts = Object.freeze({ name: "", manifest: "", freshness: 0, setup: {} })

const isFacts = (value: unknown): value is LoginFacts => {
  if (typeof value !== "object" || value === null) return false
  const { name, manifest, freshness, setup } = value as Partial<Record<keyof LoginFacts, unknown>>
  return (
    typeof name === "string" &&
    typeof manifest === "string" &&
    Number.isSafeInteger(freshness) &&
    typeof setup === "object" &&
    setup !== null
  )
}

const factsOf = (text: string): LoginFacts | undefined => {
  try {
    const value: unknown = JSON.parse(text)
    return isFacts(value) ? value : undefined
  } catch {
    return undefined
  }
}

const recordOf = (row: Row): LoginRecord => {
  const facts = factsOf(row["facts"] as string)
  const state = loginStates.find((known) => known === row["state"])
  return {
    tenant: row["tenant"] as string,
    driver: row["driver"] as string,
    workspace: row["workspace"] as string,
    user: row["user"] as string,
    state: facts === undefined ? "unknown" : ((state ?? "unknown") as LoginState),
    generation: row["generation"] as number,
    facts: facts ?? nothingKnown,
  }
}

const OWN = "tenant = ? AND driver = ? AND workspace = ? AND user = ?"

export function* findLogin({ tenant, driver, workspace, user }: LoginKey): Verb<LoginRecord | undefined> {
  const row = yield* oneRow(`SELECT * FROM logins WHERE ${OWN}`, tenant, driver, workspace, user)
  return row === undefined ? undefined : recordOf(row)
}

export function* loginsOf(tenant: string): Verb<readonly LoginRecord[]> {
  return (yield* allRows("SELECT * FROM logins WHERE tenant = ? ORDER BY user, driver, workspace", tenant)).map(
    recordOf,
  )
}

export function* changeLogin(
  key: LoginKey,
  generation: number,
  { state, facts }: LoginChange,
): Verb<LoginRecord | undefined> {
  const { tenant, driver, workspace, user } = key
  const text = JSON.stringify(facts)
  const changes =
    generation === 0
      ? yield* change(
          `INSERT INTO logins (tenant, driver, workspace, user, state, generation, facts)
           VALUES (?, ?, ?, ?, ?, 1, ?) ON CONFLICT DO NOTHING`,
          ...[tenant, driver, workspace, user, state, text],
        )
      : yield* change(
          `UPDATE logins SET state = ?, generation = generation + 1, facts = ? WHERE ${OWN} AND generation = ?`,
          ...[state, text, tenant, driver, workspace, user, generation],
        )
  return changes === 1 ? { ...key, state, generation: generation + 1, facts } : undefined
}
