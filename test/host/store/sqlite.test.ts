import { chmodSync, mkdtempSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs"
import { spawn } from "node:child_process"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { afterEach, beforeEach, expect, it } from "vitest"
import { openSqliteStore, schema } from "../../../src/host/store/sqlite.ts"
import { openSqliteFile } from "../../../src/host/store/sqlite/sqlite-file.ts"
import { StoreUnavailable } from "../../../src/host/store/store.ts"
import { heldCall, roomy, storeContract } from "./contract.ts"

storeContract("SQLite", async () => {
  const folder = mkdtempSync(join(tmpdir(), "caisson-store-"))
  return {
    open: (settled) => openSqliteStore(join(folder, "store.db"), settled === undefined ? {} : { settled }),
    async [Symbol.asyncDispose]() {
      rmSync(folder, { recursive: true })
    },
  }
})

let folder = ""
let file = ""
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "caisson-store-"))
  file = join(folder, "store.db")
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

const refusal = async (): Promise<StoreUnavailable> => {
  const opened = await openSqliteStore(file).catch((error: unknown) => error)
  expect(opened).toBeInstanceOf(StoreUnavailable)
  return opened as StoreUnavailable
}

it("is this user's alone, a loose umask or not", async () => {
  const before = process.umask(0)
  try {
    await using store = await openSqliteStore(file)
    await store.hold(heldCall("a"), roomy)
    for (const name of [file, `${file}-wal`, `${file}-shm`]) expect(statSync(name).mode & 0o777).toBe(0o600)
  } finally {
    process.umask(before)
  }
})

it("closes a file that was open to others", async () => {
  writeFileSync(file, "")
  chmodSync(file, 0o666)
  await using _store = await openSqliteStore(file)
  expect(statSync(file).mode & 0o777).toBe(0o600)
})

it("writes ahead, and has every transaction on disk", async () => {
  using own = await openSqliteFile(file, schema, 1_000)
  const modes = await own.read((db) =>
    ["journal_mode", "synchronous"].map((name) => db.prepare(`PRAGMA ${name}`).get()),
  )
  expect(modes).toEqual([{ journal_mode: "wal" }, { synchronous: 2 }])
})

it("of a transaction that fails in the middle nothing stays", async () => {
  using own = await openSqliteFile(file, schema, 1_000)
  await expect(
    own.write((db) => {
      db.exec("CREATE TABLE more (a TEXT)")
      throw new Error("on purpose")
    }),
  ).rejects.toThrow("on purpose")
  expect(await own.read((db) => db.prepare("SELECT 1 FROM sqlite_schema WHERE name = 'more'").get())).toBeUndefined()
})

/** Frames of the log ahead that end a transaction. */
const commits = (): number => {
  const log = readFileSync(`${file}-wal`)
  const frame = 24 + log.readUInt32BE(8)
  const salt = log.readBigUInt64BE(16)
  let count = 0
  for (let at = 32; at + frame <= log.length; at += frame)
    if (log.readBigUInt64BE(at + 8) === salt && log.readUInt32BE(at + 4) > 0) count += 1
  return count
}

it("commits at once what comes at once, each change whole or not at all", async () => {
  await using store = await openSqliteStore(file)
  using own = await openSqliteFile(file, schema, 1_000)
  const before = commits()
  const held = await Promise.all(Array.from({ length: 50 }, (_, n) => store.hold(heldCall(`h${n}`), roomy)))
  expect(held.every(({ ok }) => ok)).toBe(true)
  expect(commits() - before).toBe(1)
  const told = await Promise.allSettled(
    [1, 2, 3, 4].map((n) =>
      own.write((db) => {
        db.exec(`DELETE FROM held WHERE id = 'h${n}'`)
        if (n === 2) throw new Error("on purpose")
        if (n === 3) db.exec("INSERT INTO nowhere VALUES (1)")
        return n
      }),
    ),
  )
  expect(told.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "rejected", "fulfilled"])
  const left = await Promise.all(["h1", "h2", "h3", "h4"].map((id) => store.held(id)))
  expect(left.map((one) => one?.id)).toEqual([undefined, "h2", "h3", undefined])
})

it("ends only when what was asked for is told", async () => {
  const store = await openSqliteStore(file)
  const asked = store.hold(heldCall("last"), roomy)
  await store[Symbol.asyncDispose]()
  expect(await asked).toEqual({ ok: true })
})

it("refuses a newer schema, and leaves the file as it is", async () => {
  const db = new DatabaseSync(file)
  db.exec(`PRAGMA application_id=${schema.applicationId}; PRAGMA user_version=${schema.steps.length + 1}`)
  db.close()
  const before = readFileSync(file)
  expect(await refusal()).toMatchObject({ kind: "newer", message: expect.stringContaining("newer version") as unknown })
  expect(readFileSync(file).equals(before)).toBe(true)
})

it("a process of an older version stops at a file that a newer one has brought further, and loses nothing in it", async () => {
  const older = { ...schema, steps: schema.steps.slice(0, -1) }
  const newer = { ...schema, steps: [...schema.steps, "CREATE TABLE more (a TEXT) STRICT"] }
  const look = (db: DatabaseSync) => db.prepare("SELECT count(*) AS count FROM held").get()
  using old = await openSqliteFile(file, older, 1_000)
  expect(await old.read(look)).toEqual({ count: 0 })
  {
    await using store = await openSqliteStore(file)
    await store.hold(heldCall("a"), roomy)
    for (const use of [old.read(look), old.write((db) => db.exec("DELETE FROM held"))])
      await expect(use).rejects.toMatchObject({ name: "StoreUnavailable", kind: "newer" })
    using _further = await openSqliteFile(file, newer, 1_000)
    await expect(store.held("a")).rejects.toMatchObject({ kind: "newer" })
  }
  using further = await openSqliteFile(file, newer, 1_000)
  expect(await further.read(look)).toEqual({ count: 1 })
})

it("several processes of different versions that open a file at once bring it to the newest, once", async () => {
  const versions = [1, 2, schema.steps.length, 1, schema.steps.length]
  const opened = await Promise.allSettled(
    versions.map((count) => openSqliteFile(file, { ...schema, steps: schema.steps.slice(0, count) }, 5_000)),
  )
  for (const each of opened) if (each.status === "fulfilled") each.value[Symbol.dispose]()
  await using store = await openSqliteStore(file)
  expect(await store.hold(heldCall("a"), roomy)).toEqual({ ok: true })
})

it("can be let go of twice", async () => {
  const store = await openSqliteStore(file)
  await store[Symbol.asyncDispose]()
  await store[Symbol.asyncDispose]()
})

it("refuses another program's database, and leaves it as it is", async () => {
  const db = new DatabaseSync(file)
  db.exec("CREATE TABLE held (own TEXT)")
  db.close()
  const before = readFileSync(file)
  expect(await refusal()).toMatchObject({ kind: "foreign" })
  expect(readFileSync(file).equals(before)).toBe(true)
})

it("tells of a full disk, and keeps nothing of what did not fit", async () => {
  using own = await openSqliteFile(file, schema, 1_000)
  await own.read((db) => db.exec("PRAGMA max_page_count=6"))
  await expect(
    own.write((db) => {
      db.exec("CREATE TABLE more (a BLOB)")
      db.exec("INSERT INTO more VALUES (zeroblob(1000000))")
    }),
  ).rejects.toMatchObject({ name: "StoreUnavailable", kind: "full" })
  expect(await own.read((db) => db.prepare("SELECT 1 FROM sqlite_schema WHERE name = 'more'").get())).toBeUndefined()
})

it("follows no link to a file elsewhere", async () => {
  const elsewhere = join(folder, "elsewhere")
  writeFileSync(elsewhere, "")
  symlinkSync(elsewhere, file)
  await expect(openSqliteStore(file)).rejects.toMatchObject({ code: "ELOOP" })
  expect(readFileSync(elsewhere)).toHaveLength(0)
})

it("tells of a damaged file, and what to do", async () => {
  writeFileSync(file, "SQLite format 3\0".padEnd(8192, "x"))
  expect(await refusal()).toMatchObject({ kind: "damaged", fix: expect.stringContaining(file) as unknown })
})

it("waits for another process no longer than it may", async () => {
  await using store = await openSqliteStore(file, { waitMs: 30 })
  const db = new DatabaseSync(file)
  db.exec("BEGIN IMMEDIATE")
  await expect(store.hold(heldCall("a"), roomy)).rejects.toMatchObject({ name: "StoreUnavailable", kind: "busy" })
  // Reading goes on meanwhile, and so does writing once it is over.
  expect(await store.held("a")).toBeUndefined()
  db.exec("COMMIT")
  db.close()
  expect(await store.hold(heldCall("a"), roomy)).toEqual({ ok: true })
})

it("waits for another process without holding up this one, which alone can end the waiting here", async () => {
  await using store = await openSqliteStore(file, { waitMs: 20_000 })
  const db = new DatabaseSync(file)
  db.exec("BEGIN IMMEDIATE")
  const waiting = store.hold(heldCall("a"), roomy)
  // A turn of this process later the other one ends: in a process that is held up, the wait would have ended before.
  await new Promise((resolve) => setTimeout(resolve, 1))
  db.exec("COMMIT")
  db.close()
  expect(await waiting).toEqual({ ok: true })
})

it("of two processes that claim the same calls at once, each call has one", async () => {
  await using store = await openSqliteStore(file)
  const ids = Array.from({ length: 60 }, (_, n) => `call-${n}`)
  for (const id of ids) await store.hold(heldCall(id), roomy)
  const claimants = ["one", "two"].map((name) => {
    const child = spawn(process.execPath, [join(import.meta.dirname, "claimant.ts"), file, name, ...ids])
    let said = ""
    child.stdout.setEncoding("utf8").on("data", (text: string) => (said += text))
    const ready = new Promise((resolve) => child.stdout.once("data", resolve))
    const ended = new Promise<string[]>((resolve) =>
      child.once("close", () => resolve(said.split("\n").filter((line) => line.startsWith("call-")))),
    )
    return { child, ready, ended }
  })
  await Promise.all(claimants.map(({ ready }) => ready))
  for (const { child } of claimants) child.stdin.end("go\n")
  const [one = [], two = []] = await Promise.all(claimants.map(({ ended }) => ended))
  expect([...one, ...two].sort()).toEqual([...ids].sort())
})
