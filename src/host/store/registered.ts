/**
 * How far each tool, driver and action reached when it was first registered here, by kind, `id@major` and folder.
 *
 * Guarantees: what is remembered of a key is what was told of it first, whichever process told it, and stays; both
 * happen in one transaction, on disk when it resolves. Of more keys than the limit, those that nobody vouches for are
 * forgotten, the oldest first. Does not: know what a reach is.
 */
import type { DatabaseSync } from "node:sqlite"
import { hostLimits } from "../limits.ts"
import type { Schema } from "./sqlite/schema.ts"
import { openSqliteFile, type SqliteFile } from "./sqlite/sqlite-file.ts"

export interface RegisteredRow {
  readonly key: string
  /** the operator vouches for it: never forgotten */
  readonly vouched: boolean
  /** canonical JSON */
  readonly reach: string
}

const schema: Schema = {
  applicationId: 0x43616972,
  steps: [
    `CREATE TABLE registered (
       number INTEGER PRIMARY KEY AUTOINCREMENT,
       key TEXT NOT NULL UNIQUE,
       vouched INTEGER NOT NULL CHECK (vouched IN (0, 1)),
       reach TEXT NOT NULL
     ) STRICT;`,
  ],
}

const remember = (db: DatabaseSync, rows: readonly RegisteredRow[], most: number): ReadonlyMap<string, string> => {
  const insert = db.prepare("INSERT OR IGNORE INTO registered (key, vouched, reach) VALUES (?, ?, ?)")
  const select = db.prepare("SELECT reach FROM registered WHERE key = ?")
  const kept = new Map<string, string>()
  for (const { key, vouched, reach } of rows) {
    insert.run(key, vouched ? 1 : 0, reach)
    kept.set(key, (select.get(key) as { readonly reach: string }).reach)
  }
  const { count } = db.prepare("SELECT count(*) AS count FROM registered").get() as { readonly count: number }
  if (count > most)
    db.prepare(
      "DELETE FROM registered WHERE number IN (SELECT number FROM registered WHERE vouched = 0 ORDER BY number LIMIT ?)",
    ).run(count - most)
  return kept
}

class Registered implements Disposable {
  readonly #file: SqliteFile
  readonly #most: number
  constructor(file: SqliteFile, most: number) {
    this.#file = file
    this.#most = most
  }
  /** What is remembered of each key: what was there, else what is told now. */
  remember(rows: readonly RegisteredRow[]): Promise<ReadonlyMap<string, string>> {
    return this.#file.write((db) => remember(db, rows, this.#most))
  }
  [Symbol.dispose](): void {
    this.#file[Symbol.dispose]()
  }
}

export const openRegistered = async (
  file: string,
  { most = hostLimits.registeredReaches.value, waitMs = hostLimits.storeWaitMs.value } = {},
): Promise<Registered> => new Registered(await openSqliteFile(file, schema, waitMs), most)
