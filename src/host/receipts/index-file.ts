/**
 * The index of the log, kept up with it: questions about entries are answered without reading the log.
 *
 * Guarantees: before each answer it has what was appended since, and no more is read of the log than that and what is
 * answered. It is never evidence: an entry is told as it lies in the log, and to whom is decided from the entry. A log that
 * was cut or replaced is indexed anew, and an index that cannot be used or kept is made for this process alone. Takes turns
 * with other work, so that a long log holds nobody up; who asks meanwhile is told after a while that it is not done.
 */
import { rmSync } from "node:fs"
import { DatabaseSync } from "node:sqlite"
import { receiptIndexFile } from "../../data-folder/paths.ts"
import { takingTurns } from "../../sandbox/effects/breath.ts"
import type { Caller } from "../access/caller.ts"
import { tenantOf } from "../access/caller.ts"
import { hostLimits } from "../limits.ts"
import { openSqliteFile, type SqliteFile } from "../store/sqlite/sqlite-file.ts"
import { StoreUnavailable } from "../store/store.ts"
import { type AuditEvent, parseEvent } from "./event.ts"
import { emptyIndex, indexSchema, putEntry } from "./index-tables.ts"
import { linesOf, pieceOf } from "./lines.ts"
import { type ReceiptQuery, type Statement, statementOf } from "./query.ts"
import { type OpenParts, openParts } from "./segments.ts"
import { mayBeTold, userToldTo } from "./whose.ts"

interface Page {
  /** the number of the entry that the last page ended with */
  readonly after?: number
  readonly limit: number
  /** the first in the log first; default: the latest */
  readonly first?: boolean
}
interface FoundReceipts {
  readonly entries: readonly AuditEvent[]
  /** there may be more after this one */
  readonly next?: number
}

export interface ReceiptIndex extends Disposable {
  /** Without a caller: whoever can read the files. `undefined`: the log is not indexed yet. */
  find(query: ReceiptQuery, page: Page, caller?: Caller): Promise<FoundReceipts | undefined>
}

/** Of this process alone, on a temporary file that SQLite makes and removes where it does not fit into memory. */
const ownFile = (): SqliteFile => {
  const db = new DatabaseSync("", { allowExtension: false, defensive: true })
  for (const step of indexSchema.steps) db.exec(step)
  const use = async <T>(work: (open: DatabaseSync) => T): Promise<T> => {
    db.exec("BEGIN")
    try {
      const result = work(db)
      db.exec("COMMIT")
      return result
    } catch (error) {
      if (db.isTransaction) db.exec("ROLLBACK")
      throw error
    }
  }
  return { read: use, write: use, [Symbol.dispose]: () => db.close() }
}

const sharedFile = async (data: string): Promise<SqliteFile> => {
  const file = receiptIndexFile(data)
  const open = (): Promise<SqliteFile> => openSqliteFile(file, indexSchema, hostLimits.storeWaitMs.value)
  try {
    return await open()
  } catch (error) {
    if (!(error instanceof StoreUnavailable) || error.kind !== "damaged") throw error
    for (const name of [file, `${file}-wal`, `${file}-shm`]) rmSync(name, { force: true })
    return open()
  }
}

interface Place {
  readonly seq: number
  readonly start: number
  readonly bytes: number
  readonly hash: string
}

const placeOf = (row: Readonly<Record<string, unknown>>): Place => ({
  seq: Number(row["seq"]),
  start: Number(row["start"]),
  bytes: Number(row["bytes"]),
  hash: String(row["hash"]),
})

const entryAt = (parts: OpenParts, { seq, start, bytes, hash }: Place): AuditEvent | undefined => {
  const file = parts.fileOf(seq)
  const text = file === undefined ? undefined : pieceOf(file, start, bytes)
  if (text === undefined || !text.endsWith("\n")) return undefined
  const parsed = parseEvent(text.slice(0, -1))
  return parsed.ok && parsed.event.hash === hash ? parsed.event : undefined
}

const placesIn = (db: DatabaseSync, { sql, values }: Statement): readonly Place[] => {
  const statement = db.prepare(sql)
  // A number that nobody put there ends no question.
  statement.setReadBigInts(true)
  return statement.all(...values).map(placeOf)
}
const latest = statementOf({}, undefined, { limit: 1, first: false })

/** Some of what was appended since. Answers whether there is more. */
const indexSome = (db: DatabaseSync, data: string): boolean => {
  using parts = openParts(data)
  let [last] = placesIn(db, latest)
  if (last !== undefined && entryAt(parts, last) === undefined) {
    emptyIndex(db)
    last = undefined
  }
  const begun = last === undefined ? -1 : parts.files.indexOf(parts.fileOf(last.seq) ?? "")
  let read = 0
  for (const [index, file] of parts.files.entries()) {
    if (index < begun) continue
    let start = index === begun && last !== undefined ? last.start + last.bytes : 0
    for (const { text, end, terminated } of linesOf(file, file === parts.log ? parts.size : undefined, start)) {
      if (!terminated) return false
      const parsed = parseEvent(text)
      if (parsed.ok) putEntry(db, parsed.event, start, end - start)
      read += end - start
      start = end
      if (read > hostLimits.indexedAtOnceBytes.value) return true
    }
  }
  return false
}

export const openReceiptIndex = (data: string, kept: "shared" | "own"): ReceiptIndex => {
  let file: Promise<SqliteFile> | undefined
  let work: Promise<void> | undefined
  let isClosed = false
  const open = (): Promise<SqliteFile> =>
    (file ??= kept === "own" ? Promise.resolve(ownFile()) : sharedFile(data).catch(() => ownFile()))

  const catchUp = async (): Promise<void> => {
    const breath = takingTurns()
    const index = await open()
    while (!isClosed && (await index.write((db) => indexSome(db, data)))) await breath.take()
  }
  const isCaughtUp = async (): Promise<boolean> => {
    // Who asks later needs what was appended later.
    const before = work ?? Promise.resolve()
    const own = before.catch(() => undefined).then(catchUp)
    work = own
    void own.catch(() => undefined)
    if (kept === "own") {
      await own
      return true
    }
    let late: NodeJS.Timeout | undefined
    const over = new Promise<false>((resolve) => {
      late = setTimeout(() => resolve(false), hostLimits.indexWaitMs.value)
    })
    try {
      return await Promise.race([own.then(() => true as const), over])
    } finally {
      clearTimeout(late)
    }
  }

  return {
    async find(query, { after, limit, first = false }, caller) {
      if (!(await isCaughtUp())) return undefined
      const only = caller && userToldTo(caller)
      const whose = caller && { tenant: tenantOf(caller), user: only }
      const wanted = statementOf(query, whose, { ...(after === undefined ? {} : { after }), limit: limit + 1, first })
      const places = await (await open()).read((db) => placesIn(db, wanted))
      using parts = openParts(data)
      const entries: AuditEvent[] = []
      let [bytes, next]: [number, number | undefined] = [0, undefined]
      for (const [index, place] of places.entries()) {
        bytes += place.bytes
        if (index === limit || (index > 0 && bytes > hostLimits.receiptsPageBytes.value)) {
          next = places[index - 1]?.seq
          break
        }
        const entry = entryAt(parts, place)
        if (entry !== undefined && (caller === undefined || mayBeTold(entry, caller))) entries.push(entry)
      }
      return { entries, ...(next === undefined ? {} : { next }) }
    },
    [Symbol.dispose]: () => {
      isClosed = true
      void file?.then((open) => open[Symbol.dispose]()).catch(() => undefined)
    },
  }
}
