/**
 * The table of questions that tools put to people, each with a form, until a person answers or its time is over.
 *
 * Guarantees: the same question of the same user is asked once while it is open, whatever asks again; it is answered once,
 * and its answer is taken once. What is over is forgotten. So many at once are there, of one tenant, and fewer of one caller
 * that nobody has answered, so that nobody's leave no room for those of others.
 */
import type { AskedQuestion, NewQuestion, QuestionBounds } from "./store.ts"
import { allRows, change, oneRow, type Row, type Verb } from "./verb.ts"

export const askedTable = `CREATE TABLE asked (
  tenant TEXT NOT NULL,
  id TEXT NOT NULL,
  asker TEXT NOT NULL,
  actor TEXT NOT NULL,
  tool TEXT NOT NULL,
  digest TEXT NOT NULL,
  text TEXT NOT NULL,
  asked_ms INTEGER NOT NULL,
  expires_ms INTEGER NOT NULL,
  answer TEXT,
  answered_by TEXT,
  PRIMARY KEY (tenant, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX asked_by_time ON asked (expires_ms);`

const questionOf = (row: Row): AskedQuestion => ({
  tenant: row["tenant"] as string,
  id: row["id"] as string,
  asker: row["asker"] as string,
  actor: row["actor"] as string,
  tool: row["tool"] as string,
  digest: row["digest"] as string,
  text: row["text"] as string,
  askedMs: Number(row["asked_ms"]),
  expiresMs: Number(row["expires_ms"]),
  ...(row["answer"] === null
    ? {}
    : { answer: row["answer"] as string, answeredBy: (row["answered_by"] as string | null) ?? "" }),
})

/** Undefined: too many are open. */
export function* ask(question: NewQuestion, { count, ofOne }: QuestionBounds): Verb<AskedQuestion | undefined> {
  const { tenant, id, asker, actor, tool, digest, text, askedMs, expiresMs } = question
  yield* change("DELETE FROM asked WHERE expires_ms < ?", askedMs)
  const open = yield* oneRow(
    "SELECT * FROM asked WHERE tenant = ? AND asker = ? AND actor = ? AND tool = ? AND digest = ?",
    ...[tenant, asker, actor, tool, digest],
  )
  if (open !== undefined) return questionOf(open)
  const counted = yield* oneRow("SELECT COUNT(*) AS n FROM asked WHERE tenant = ?", tenant)
  if (Number(counted?.["n"] ?? 0) >= count) return undefined
  const unanswered = "SELECT COUNT(*) AS n FROM asked WHERE tenant = ? AND actor = ? AND answer IS NULL"
  const own = yield* oneRow(unanswered, tenant, actor)
  if (Number(own?.["n"] ?? 0) >= ofOne) return undefined
  yield* change(
    `INSERT INTO asked (tenant, id, asker, actor, tool, digest, text, asked_ms, expires_ms)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    ...[tenant, id, asker, actor, tool, digest, text, askedMs, expiresMs],
  )
  return question
}

export function* askedOf(tenant: string, atMs: number): Verb<readonly AskedQuestion[]> {
  const sql = "SELECT * FROM asked WHERE tenant = ? AND expires_ms >= ? AND answer IS NULL ORDER BY id"
  return (yield* allRows(sql, tenant, atMs)).map(questionOf)
}

/** False: it is not open any more. */
export function* answerAsked(tenant: string, id: string, answer: string, by: string, atMs: number): Verb<boolean> {
  const sql = `UPDATE asked SET answer = ?, answered_by = ?
    WHERE tenant = ? AND id = ? AND answer IS NULL AND expires_ms >= ?`
  return (yield* change(sql, answer, by, tenant, id, atMs)) === 1
}

/** The answer, once there is one; it is then gone. */
export function* takeAnswer(tenant: string, id: string): Verb<AskedQuestion | undefined> {
  const row = yield* oneRow(
    "DELETE FROM asked WHERE tenant = ? AND id = ? AND answer IS NOT NULL RETURNING *",
    tenant,
    id,
  )
  return row === undefined ? undefined : questionOf(row)
}
