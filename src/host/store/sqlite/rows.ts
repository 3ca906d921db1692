/**
 * Verbs of the store, carried out in SQLite.
 *
 * Guarantees: a number that no verb can have written, in a file that was damaged, reads as 0: it neither keeps the other
 * rows from being read nor breaks what makes a date of it. Texts are as they lie there; who reads them judges them.
 */
import type { DatabaseSync } from "node:sqlite"
import type { Answer, Row, Statement, Verb } from "../verb.ts"

/** The last millisecond that a date can have; counts and sizes stay far below it. */
const MOST = 8_640_000_000_000_000n

const plain = (row: Record<string, unknown>): Row =>
  Object.fromEntries(
    Object.entries(row).map(([name, value]) => [
      name,
      typeof value === "bigint" ? (value < 0n || value > MOST ? 0 : Number(value)) : value,
    ]),
  )

const answer = (db: DatabaseSync, { sql, values }: Statement): Answer => {
  const statement = db.prepare(sql)
  if (statement.columns().length === 0) return { rows: [], changes: Number(statement.run(...values).changes) }
  statement.setReadBigInts(true)
  const rows = statement.all(...values).map(plain)
  return { rows, changes: rows.length }
}

export const carryOut = <T>(db: DatabaseSync, verb: Verb<T>): T => {
  for (let step = verb.next(); ; ) {
    if (step.done === true) return step.value
    step = verb.next(answer(db, step.value))
  }
}
