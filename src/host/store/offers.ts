/** The table of offers: what was accepted of what others say of themselves, and what waits to be. */
import type { NewOffer, Offer, OfferAcceptance } from "./store.ts"
import { allRows, change, type Engine, oneRow, type Row, type Verb } from "./verb.ts"

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

function* find({ tenant, subject, name }: Pick<NewOffer, "tenant" | "subject" | "name">): Verb<Offer | undefined> {
  const sql = "SELECT * FROM offers WHERE tenant = ? AND subject = ? AND name = ?"
  const row = yield* oneRow(sql, tenant, subject, name)
  return row === undefined ? undefined : offerOf(row)
}

const isKnown = (found: Offer | undefined, { word }: NewOffer): found is Offer =>
  found !== undefined && (found.accepted.digest === word.digest || found.waiting?.digest === word.digest)

function* note(offer: NewOffer): Verb<{ readonly offer: Offer; readonly first: boolean }> {
  const { tenant, subject, name, word, atMs } = offer
  const found = yield* find(offer)
  if (isKnown(found, offer)) return { offer: found, first: false }
  if (found === undefined)
    yield* change(
      `INSERT INTO offers (tenant, subject, name, digest, text, accepted_ms, accepted_by)
       VALUES (?, ?, ?, ?, ?, ?, 'first use')`,
      ...[tenant, subject, name, word.digest, word.text, atMs],
    )
  else
    yield* change(
      `UPDATE offers SET waiting_digest = ?, waiting_text = ?, waiting_ms = ?
       WHERE tenant = ? AND subject = ? AND name = ?`,
      ...[word.digest, word.text, atMs, tenant, subject, name],
    )
  return { offer: (yield* find(offer)) as Offer, first: found === undefined }
}

/** What is known already costs no write. */
export const offered = async (
  engine: Engine,
  offer: NewOffer,
): Promise<{ readonly offer: Offer; readonly first: boolean }> => {
  const found = await engine.read(() => find(offer))
  return isKnown(found, offer) ? { offer: found, first: false } : engine.write(() => note(offer))
}

export function* offersOf(tenant: string, subject: string): Verb<readonly Offer[]> {
  const sql = "SELECT * FROM offers WHERE tenant = ? AND subject = ? ORDER BY name"
  return (yield* allRows(sql, tenant, subject)).map(offerOf)
}

export function* acceptOffer({ tenant, subject, digest, by, atMs }: OfferAcceptance): Verb<Offer | undefined> {
  const row = yield* oneRow(
    `UPDATE offers SET digest = waiting_digest, text = waiting_text, accepted_ms = ?, accepted_by = ?,
            waiting_digest = NULL, waiting_text = NULL, waiting_ms = NULL
     WHERE tenant = ? AND subject = ? AND waiting_digest = ? RETURNING *`,
    ...[atMs, by, tenant, subject, digest],
  )
  return row === undefined ? undefined : offerOf(row)
}
