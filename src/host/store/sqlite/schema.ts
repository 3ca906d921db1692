/**
 * What a store's file must look like inside: exactly what this program's own steps make.
 *
 * Guarantees: a table that is missing or different, a view in its place, a trigger or an index more is told; the file is
 * only read. What the steps make is found by making it, in memory, so that no second description can differ from them.
 * Assumes: a step is never edited once it was in use; what must change is a further step.
 */
import { DatabaseSync } from "node:sqlite"

export interface Schema {
  /** marks the file as this program's */
  readonly applicationId: number
  /** `steps[n]` brings version n to version n + 1 */
  readonly steps: readonly string[]
}

/** Every table, index, view and trigger, with the words that made it. */
const objectsOf = (db: DatabaseSync): string =>
  JSON.stringify(db.prepare("SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY type, name").all())

const made = new WeakMap<Schema, Map<number, string>>()

const expected = (schema: Schema, version: number): string => {
  const known = made.get(schema) ?? new Map<number, string>()
  made.set(schema, known)
  const found = known.get(version)
  if (found !== undefined) return found
  const db = new DatabaseSync(":memory:")
  try {
    for (const step of schema.steps.slice(0, version)) db.exec(step)
    const objects = objectsOf(db)
    known.set(version, objects)
    return objects
  } finally {
    db.close()
  }
}

export const isAsMade = (db: DatabaseSync, schema: Schema, version: number): boolean =>
  objectsOf(db) === expected(schema, version)
