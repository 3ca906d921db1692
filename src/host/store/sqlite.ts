/**
 * The store of one host: SQLite, in the data folder.
 *
 * Guarantees: see `store.ts`; processes on one data folder share it. Calls that were settled are remembered up to a
 * number, the oldest forgotten first.
 */
import type { DatabaseSync } from "node:sqlite"
import type { JsonObject } from "../../manifest/types.ts"
import { hostLimits } from "../limits.ts"
import { type Instant, isOver } from "./instant.ts"
import { acceptOffer, offered, offersOf, offersTable } from "./offers.ts"
import { openSqliteFile, type Schema, type SqliteFile } from "./sqlite-file.ts"
import type {
  Claim,
  ClaimResult,
  Decision,
  HeldCall,
  HeldFilter,
  HeldOutcome,
  HoldBounds,
  HoldResult,
  NewHeldCall,
  NewOffer,
  Offer,
  OfferAcceptance,
  Store,
} from "./store.ts"

export const schema: Schema = {
  applicationId: 0x43616973,
  steps: [
    `CREATE TABLE held (
       id TEXT PRIMARY KEY,
       tenant TEXT NOT NULL,
       workspace TEXT NOT NULL,
       owner TEXT NOT NULL,
       epoch INTEGER NOT NULL,
       state TEXT NOT NULL CHECK (state IN ('held', 'deciding', 'settled')),
       held_ms INTEGER NOT NULL,
       boot TEXT NOT NULL,
       up_ms INTEGER NOT NULL,
       hold_ms INTEGER NOT NULL,
       bytes INTEGER NOT NULL CHECK (bytes >= 0),
       facts TEXT NOT NULL,
       receipt TEXT,
       claims INTEGER NOT NULL DEFAULT 0,
       claim TEXT,
       outcome TEXT
     ) STRICT, WITHOUT ROWID;
     CREATE INDEX held_by_state ON held (tenant, state, held_ms, id);`,
    offersTable,
  ],
}

type Row = Readonly<Record<string, unknown>>

/** A row whose texts were damaged is a row all the same: one of them keeps nobody from the others. */
const callOf = (row: Row): HeldCall => {
  try {
    return wholeCall(row)
  } catch {
    const claim = { number: row["claims"], decision: "approve", by: "unknown", atMs: row["held_ms"] }
    const open = row["state"] === "deciding" ? JSON.stringify(claim) : null
    return wholeCall({ ...row, facts: "{}", claim: open, outcome: null })
  }
}

const wholeCall = (row: Row): HeldCall => ({
  id: row["id"] as string,
  tenant: row["tenant"] as string,
  workspace: row["workspace"] as string,
  owner: row["owner"] as string,
  epoch: row["epoch"] as number,
  state: row["state"] as HeldCall["state"],
  at: { wallMs: row["held_ms"] as number, boot: row["boot"] as string, upMs: row["up_ms"] as number },
  holdMs: row["hold_ms"] as number,
  bytes: row["bytes"] as number,
  facts: JSON.parse(row["facts"] as string) as JsonObject,
  ...(row["receipt"] === null ? {} : { receipt: row["receipt"] as string }),
  ...(row["claim"] === null ? {} : { claim: JSON.parse(row["claim"] as string) as Claim }),
  ...(row["outcome"] === null ? {} : { outcome: JSON.parse(row["outcome"] as string) as HeldOutcome }),
})

const find = (db: DatabaseSync, id: string): HeldCall | undefined => {
  const row = db.prepare("SELECT * FROM held WHERE id = ?").get(id)
  return row === undefined ? undefined : callOf(row)
}

const hold = (db: DatabaseSync, call: NewHeldCall, bounds: HoldBounds): HoldResult => {
  const used = db
    .prepare(
      "SELECT count(*) AS count, coalesce(sum(bytes), 0) AS bytes FROM held WHERE tenant = ? AND state <> 'settled'",
    )
    .get(call.tenant) as unknown as HoldBounds
  if (used.count + 1 > bounds.count) return { ok: false, at: "count" }
  if (used.bytes + call.bytes > bounds.bytes) return { ok: false, at: "bytes" }
  const { id, tenant, workspace, owner, epoch, at, holdMs, bytes, facts } = call
  db.prepare(
    `INSERT INTO held (id, tenant, workspace, owner, epoch, state, held_ms, boot, up_ms, hold_ms, bytes, facts)
     VALUES (?, ?, ?, ?, ?, 'held', ?, ?, ?, ?, ?, ?)`,
  ).run(id, tenant, workspace, owner, epoch, at.wallMs, at.boot, at.upMs, holdMs, bytes, JSON.stringify(facts))
  return { ok: true }
}

const claim = (db: DatabaseSync, id: string, decision: Decision, by: string, at: Instant): ClaimResult => {
  const held = find(db, id)
  if (held === undefined) return { ok: false, why: "absent" }
  if (held.state !== "held") return { ok: false, why: held.state, held }
  const over = isOver(held.at, held.holdMs, at)
  if (over && decision !== "expire") return { ok: false, why: "expired", held }
  if (!over && decision === "expire") return { ok: false, why: "waiting", held }
  const { claims } = db.prepare("UPDATE held SET claims = claims + 1 WHERE id = ? RETURNING claims").get(id) as Row
  const made: Claim = { number: claims as number, decision, by, atMs: at.wallMs }
  db.prepare("UPDATE held SET state = 'deciding', claim = ? WHERE id = ?").run(JSON.stringify(made), id)
  return { ok: true, held: { ...held, state: "deciding", claim: made }, claim: made }
}

/** Only by the claim that is the current one. */
const end = (db: DatabaseSync, id: string, number: number, state: "held" | "settled", outcome?: HeldOutcome): boolean =>
  db
    .prepare("UPDATE held SET state = ?, outcome = ? WHERE id = ? AND state = 'deciding' AND claims = ?")
    .run(state, outcome === undefined ? null : JSON.stringify(outcome), id, number).changes === 1

const forgetOld = (db: DatabaseSync, id: string, keep: number): void =>
  void db
    .prepare(
      `WITH own AS (SELECT id FROM held WHERE state = 'settled' AND tenant = (SELECT tenant FROM held WHERE id = ?)
                    ORDER BY held_ms DESC, id DESC)
       DELETE FROM held WHERE id IN (SELECT id FROM own LIMIT -1 OFFSET ?)`,
    )
    .run(id, keep)

class SqliteStore implements Store {
  readonly #file: SqliteFile
  readonly #settled: number
  constructor(file: SqliteFile, settled: number) {
    this.#file = file
    this.#settled = settled
  }
  hold(call: NewHeldCall, bounds: HoldBounds): Promise<HoldResult> {
    return this.#file.write((db) => hold(db, call, bounds))
  }
  held(id: string): Promise<HeldCall | undefined> {
    return this.#file.read((db) => find(db, id))
  }
  heldList({ tenant, states }: HeldFilter): Promise<readonly HeldCall[]> {
    const marks = states.map(() => "?").join(", ")
    return this.#file.read((db) =>
      db
        .prepare(`SELECT * FROM held WHERE tenant = ? AND state IN (${marks}) ORDER BY held_ms, id`)
        .all(tenant, ...states)
        .map(callOf),
    )
  }
  async receipted(id: string, receipt: string): Promise<void> {
    await this.#file.write((db) => db.prepare("UPDATE held SET receipt = ? WHERE id = ?").run(receipt, id))
  }
  claim(id: string, decision: Decision, by: string, at: Instant): Promise<ClaimResult> {
    return this.#file.write((db) => claim(db, id, decision, by, at))
  }
  offered(offer: NewOffer): Promise<{ readonly offer: Offer; readonly first: boolean }> {
    return offered(this.#file, offer)
  }
  offers(tenant: string, subject: string): Promise<readonly Offer[]> {
    return this.#file.read((db) => offersOf(db, tenant, subject))
  }
  acceptOffer(acceptance: OfferAcceptance): Promise<Offer | undefined> {
    return this.#file.write((db) => acceptOffer(db, acceptance))
  }
  release(id: string, number: number): Promise<boolean> {
    return this.#file.write((db) => end(db, id, number, "held"))
  }
  settle(id: string, number: number, outcome: HeldOutcome): Promise<boolean> {
    return this.#file.write((db) => {
      const settled = end(db, id, number, "settled", outcome)
      if (settled) forgetOld(db, id, this.#settled)
      return settled
    })
  }
  async [Symbol.asyncDispose](): Promise<void> {
    this.#file[Symbol.dispose]()
  }
}

export interface SqliteStoreOptions {
  /** how long another process is waited for */
  readonly waitMs?: number
  /** settled calls that are remembered */
  readonly settled?: number
}

export const openSqliteStore = async (
  file: string,
  { waitMs = hostLimits.storeWaitMs.value, settled = hostLimits.settledCalls.value }: SqliteStoreOptions = {},
): Promise<Store> => new SqliteStore(await openSqliteFile(file, schema, waitMs), settled)
