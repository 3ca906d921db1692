/**
 * One SQLite file that processes share: opened, brought to this version's schema, and used in whole transactions.
 *
 * Guarantees: a change is on disk when `write` resolves (write-ahead log, `synchronous=FULL`), or nothing of it is; those that
 * come at once share a commit (`group-commit.ts`);
 * waiting for another process never blocks the event loop and ends after `waitMs`. A file of a newer schema, of another
 * program, of another user, or with anything in it but what the steps make (`schema.ts`) is left as it is and refused, also
 * where it became so after it was opened. The file is this user's alone.
 * Assumes: the data folder is on a local file system. Does not: know any table.
 */
import { closeSync, constants, fchmodSync, fstatSync, openSync } from "node:fs"
import { DatabaseSync } from "node:sqlite"
import { setTimeout as pause } from "node:timers/promises"
import { groupCommits } from "./group-commit.ts"
import { isAsMade, type Schema } from "./schema.ts"
import { StoreUnavailable } from "../store.ts"

export interface SqliteFile extends Disposable {
  read<T>(look: (db: DatabaseSync) => T): Promise<T>
  write<T>(change: (db: DatabaseSync) => T): Promise<T>
}
interface SharedFile extends SqliteFile {
  /** Once every change that was asked for was told of. */
  idle(): Promise<void>
}

const PRIMARY = 0xff
const BUSY = new Set([5, 6])
const FULL = 13
/** no room for what processes share beside the file */
const NO_SHARED_MEMORY = 4874
const DAMAGED = new Set([11, 26])

const resultOf = (error: unknown): number | undefined => {
  const { code, errcode } = error as { code?: unknown; errcode?: unknown }
  if (code !== "ERR_SQLITE_ERROR" || typeof errcode !== "number") return undefined
  return errcode === NO_SHARED_MEMORY ? FULL : errcode & PRIMARY
}

const unavailable = (file: string, error: unknown): unknown => {
  const result = resultOf(error)
  const { message } = error as Error
  if (result === undefined) return error
  if (result === FULL)
    return new StoreUnavailable("full", `the disk is full (${file}: ${message})`, "free disk space there")
  if (DAMAGED.has(result))
    return new StoreUnavailable(
      "damaged",
      `${file} is damaged: ${message}`,
      `move ${file} away; what it remembered is lost with it`,
    )
  return new StoreUnavailable(
    "trouble",
    `${file} cannot be used: ${message}`,
    "mend the data folder (permissions, disk), and keep it on a local file system",
  )
}

/** No link, nobody else's, and closed to others before anything is in it. */
const makeFile = (file: string): void => {
  const fd = openSync(file, constants.O_RDWR | constants.O_CREAT | constants.O_NOFOLLOW, 0o600)
  try {
    const { uid, mode } = fstatSync(fd)
    if (uid !== process.geteuid?.())
      throw new StoreUnavailable("foreign", `${file} belongs to another user (uid ${uid})`, `remove ${file}`)
    if ((mode & 0o077) !== 0) fchmodSync(fd, 0o600)
  } finally {
    closeSync(fd)
  }
}

const numberOf = (db: DatabaseSync, pragma: string): number =>
  Number(Object.values(db.prepare(`PRAGMA ${pragma}`).get() ?? {})[0])

/** The version of its schema. Throws for a file that is not ours, or not ours any more. */
const versionOf = (db: DatabaseSync, file: string, schema: Schema): number => {
  const { applicationId, steps } = schema
  const [found, version] = [numberOf(db, "application_id"), numberOf(db, "user_version")]
  const isEmpty = db.prepare("SELECT 1 FROM sqlite_schema LIMIT 1").get() === undefined
  if (found !== applicationId && !(isEmpty && found === 0 && version === 0))
    throw new StoreUnavailable("foreign", `${file} is not a store of this program`, `move ${file} away`)
  if (version > steps.length)
    throw new StoreUnavailable(
      "newer",
      `${file} was written by a newer version of this program (schema ${version}; this one knows ${steps.length})`,
      "use that version, or a data folder of its own",
    )
  if (!isAsMade(db, schema, version))
    throw new StoreUnavailable(
      "damaged",
      `${file} is damaged: its tables are not those that this program makes`,
      `move ${file} away; what it remembered is lost with it`,
    )
  return version
}

const bring = (db: DatabaseSync, file: string, schema: Schema): void => {
  const version = versionOf(db, file, schema)
  if (version === schema.steps.length) return
  for (const step of schema.steps.slice(version)) db.exec(step)
  db.exec(`PRAGMA application_id=${schema.applicationId}`)
  db.exec(`PRAGMA user_version=${schema.steps.length}`)
}

/** Waits in between, for as long as another process is at it. */
const patiently = async <T>(file: string, waitMs: number, work: () => T): Promise<T> => {
  const deadline = performance.now() + waitMs
  for (let wait = 1; ; wait = Math.min(wait * 2, 25)) {
    try {
      return work()
    } catch (error) {
      if (!BUSY.has(resultOf(error) ?? 0)) throw unavailable(file, error)
      if (performance.now() > deadline)
        throw new StoreUnavailable(
          "busy",
          `${file} stayed in use by another process for ${waitMs} ms`,
          "look for a process that hangs on the data folder, then try again",
        )
    }
    await pause(wait * (0.5 + Math.random()))
  }
}

const transaction = <T>(db: DatabaseSync, begin: string, work: (db: DatabaseSync) => T): T => {
  db.exec(begin)
  try {
    const result = work(db)
    db.exec("COMMIT")
    return result
  } catch (error) {
    // A full disk may have rolled it back already.
    if (db.isTransaction) db.exec("ROLLBACK")
    throw error
  }
}

/** Whether what is in the file is still what was looked at; another process may have brought it further since. */
const unchanged = (file: string, schema: Schema): ((db: DatabaseSync) => void) => {
  let seen = ""
  return (db) => {
    const now = `${numberOf(db, "schema_version")} ${numberOf(db, "user_version")}`
    if (now === seen) return
    const version = versionOf(db, file, schema)
    if (version !== schema.steps.length)
      throw new StoreUnavailable("trouble", `${file} was taken back to an older version of its tables`, "start again")
    seen = now
  }
}

export const openSqliteFile = async (file: string, schema: Schema, waitMs: number): Promise<SharedFile> => {
  makeFile(file)
  // Its own waiting would hold up the event loop.
  const db = new DatabaseSync(file, { timeout: 0, allowExtension: false, defensive: true })
  try {
    await patiently(file, waitMs, () => {
      db.exec("PRAGMA trusted_schema=OFF; PRAGMA cell_size_check=ON")
      // Looked at before anything is changed, the mode of the journal included.
      transaction(db, "BEGIN", () => versionOf(db, file, schema))
      const mode = String(Object.values(db.prepare("PRAGMA journal_mode=WAL").get() ?? {})[0])
      if (mode !== "wal")
        throw new StoreUnavailable(
          "trouble",
          `${file} cannot be shared between processes here (journal mode ${mode})`,
          "keep the data folder on a local file system",
        )
      db.exec("PRAGMA synchronous=FULL")
      transaction(db, "BEGIN IMMEDIATE", () => bring(db, file, schema))
    })
  } catch (error) {
    db.close()
    throw error
  }
  const look = unchanged(file, schema)
  const use = <T>(begin: string, work: (db: DatabaseSync) => T): Promise<T> =>
    patiently(file, waitMs, () =>
      transaction(db, begin, () => {
        look(db)
        return work(db)
      }),
    )
  const group = groupCommits((work) => use("BEGIN IMMEDIATE", work))
  return {
    read: (work) => use("BEGIN", work),
    write: group.write,
    idle: group.idle,
    [Symbol.dispose]: () => {
      if (db.isOpen) db.close()
    },
  }
}
