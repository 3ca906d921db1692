/** The table of offers: what was accepted of what others say of themselves, and what waits to be. */
import type { DatabaseSync } from "node:sqlite"
import type { SqliteFile } from "./sqlite-file.ts"
import type { NewOffer, Offer, OfferAcceptance } from "./store.ts"

export const offersTable = `CREATE TABLE offers (
  tenant TEXT NOT NULL,
  subject TEXT NOT NULL,
  name TEXT NOT NULL,
  digest TEXT NOT NULL,
  text TEXT NOT NULL,
  accepted_ms INTEGER NOT NULL,
  accepted_by TEXT NOT NULL,
  waiting_digest TEXT,
  waiting_text TEXT,
  waiting_ms INTEGER,
  PRIMARY KEY (tenant, subject, name)
) STRICT, WITHOUT ROWID;`

type Row = Readonly<Record<string, unknown>>

const offerOf = (row: Row): Offer => ({
  name: row["name"] as string,
  accepted: {
    digest: row["digest"] as string,
    text: row["text"] as string,
    atMs: row["accepted_ms"] as number,
    by: row["accepted_by"] as string,
  },
  ...(row["waiting_digest"] === null
    ? {}
    : {
        waiting: {
          digest: row["waiting_digest"] as string,
          text: row["waiting_text"] as string,
          atMs: row["waiting_ms"] as number,
        },
      }),
})

const find = (db: DatabaseSync, { tenant, subject, name }: Pick<NewOffer, "tenant" | "subject" | "name">) => {
  const row = db
    .prepare("SELECT * FROM offers WHERE tenant = ? AND subject = ? AND name = ?")
    .get(tenant, subject, name)
  return row === undefined ? undefined : offerOf(row)
}

const isKnown = (found: Offer | undefined, { word }: NewOffer): found is Offer =>
  found !== undefined && (found.accepted.digest === word.digest || found.waiting?.digest === word.digest)

const note = (db: DatabaseSync, offer: NewOffer): { readonly offer: Offer; readonly first: boolean } => {
  const { tenant, subject, name, word, atMs } = offer
  const found = find(db, offer)
  if (isKnown(found, offer)) return { offer: found, first: false }
  if (found === undefined)
    db.prepare(
      `INSERT INTO offers (tenant, subject, name, digest, text, accepted_ms, accepted_by)
       VALUES (?, ?, ?, ?, ?, ?, 'first use')`,
    ).run(tenant, subject, name, word.digest, word.text, atMs)
  else
    db.prepare(
      `UPDATE offers SET waiting_digest = ?, waiting_text = ?, waiting_ms = ?
       WHERE tenant = ? AND subject = ? AND name = ?`,
    ).run(word.digest, word.text, atMs, tenant, subject, name)
  return { offer: find(db, offer) as Offer, first: found === undefined }
}

/** What is known already costs no write. */
export const offered = async (
  file: SqliteFile,
  offer: NewOffer,
): Promise<{ readonly offer: Offer; readonly first: boolean }> => {
  const found = await file.read((db) => find(db, offer))
  return isKnown(found, offer) ? { offer: found, first: false } : file.write((db) => note(db, offer))
}

export const offersOf = (db: DatabaseSync, tenant: string, subject: string): readonly Offer[] =>
  db.prepare("SELECT * FROM offers WHERE tenant = ? AND subject = ? ORDER BY name").all(tenant, subject).map(offerOf)

export const acceptOffer = (
  db: DatabaseSync,
  { tenant, subject, digest, by, atMs }: OfferAcceptance,
): Offer | undefined => {
  const row = db
    .prepare(
      `UPDATE offers SET digest = waiting_digest, text = waiting_text, accepted_ms = ?, accepted_by = ?,
              waiting_digest = NULL, waiting_text = NULL, waiting_ms = NULL
       WHERE tenant = ? AND subject = ? AND waiting_digest = ? RETURNING *`,
    )
    .get(atMs, by, tenant, subject, digest)
  return row === undefined ? undefined : offerOf(row)
}
