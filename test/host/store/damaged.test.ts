/** A store whose file somebody else wrote in, or that lost bits: answers or refuses, and never breaks who asks. */
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import fc from "fast-check"
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest"
import { openSqliteStore } from "../../../src/host/store/sqlite.ts"
import { type Store, StoreUnavailable } from "../../../src/host/store/store.ts"
import { heldCall, roomy } from "./contract.ts"
import { later } from "./instants.ts"

let folder = ""
let whole = ""
let file = ""
const word = (digest: string) => ({ tenant: "local", subject: "s", name: "n", word: { digest, text: "{}" }, atMs: 1 })
const key = { tenant: "local", driver: "d@1", workspace: "w", user: "u" }
const facts = { name: "", manifest: "", freshness: 0, setup: {} }
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "caisson-store-"))
  whole = join(folder, "whole.db")
  await using store = await openSqliteStore(whole)
  for (const id of ["a", "b", "c"]) await store.hold(heldCall(id), roomy)
  await store.claim("c", "deny", "alice", later(1))
  await store.offered(word("first"))
  await store.offered(word("second"))
  await store.changeLogin(key, 0, { state: "authed", facts })
})
afterAll(() => rmSync(folder, { recursive: true }))
/** A file of its own each time: what is left open of an earlier one is in nobody's way. */
let files = 0
const damage = (change: (bytes: Buffer) => Buffer): void => {
  if (files > 0) for (const more of ["", "-wal", "-shm"]) rmSync(file + more, { force: true })
  files += 1
  file = join(folder, `store-${files}.db`)
  writeFileSync(file, change(readFileSync(whole)))
}
beforeEach(() => damage((bytes) => bytes))

const edited = (sql: string): void => {
  using db = new DatabaseSync(file)
  db.exec(`PRAGMA ignore_check_constraints=ON; ${sql}`)
}
/** Every verb, in an order in which each has something to do. */
const verbs = (store: Store): Readonly<Record<string, () => Promise<unknown>>> => ({
  held: () => store.held("a"),
  heldList: () => store.heldList({ tenant: "local", states: ["held", "deciding", "settled"] }),
  hold: () => store.hold(heldCall("new"), roomy),
  receipted: () => store.receipted("a", "sha256:1"),
  claim: () => store.claim("a", "approve", "me", later(1)),
  release: () => store.release("a", 1),
  settle: () => store.settle("c", 1, { verdict: "approval_denied", committed: false }),
  offered: () => store.offered(word("third")),
  offers: () => store.offers("local", "s"),
  acceptOffer: () => store.acceptOffer({ tenant: "local", subject: "s", digest: "third", by: "me", atMs: 2 }),
  login: () => store.login(key),
  logins: () => store.logins("local"),
  changeLogin: () => store.changeLogin(key, 1, { state: "expired", facts }),
})
/** What is thrown that is no `StoreUnavailable` is a bug. */
const orUnavailable = async (act: () => Promise<unknown>): Promise<unknown> => {
  try {
    return await act()
  } catch (error) {
    expect(error).toBeInstanceOf(StoreUnavailable)
    return error
  }
}

describe("a file in which there is something else than this program makes", () => {
  it.each([
    ["a table is missing", "DROP TABLE offers"],
    ["a column has another name", "ALTER TABLE held RENAME COLUMN receipt TO receipts"],
    ["a view stands for a table", "ALTER TABLE held RENAME TO kept; CREATE VIEW held AS SELECT * FROM kept"],
    ["a trigger forgets", "CREATE TRIGGER t AFTER UPDATE ON held BEGIN DELETE FROM held WHERE id <> new.id; END"],
    ["a trigger accepts", "CREATE TRIGGER t AFTER UPDATE ON offers BEGIN UPDATE offers SET digest = 'x'; END"],
    ["an index is more", "CREATE INDEX one ON held (owner)"],
    ["a table is more", "CREATE TABLE more (a TEXT)"],
  ])("is refused and left as it is: %s", async (_, sql) => {
    edited(sql)
    const before = readFileSync(file)
    const opened = await openSqliteStore(file).catch((error: unknown) => error)
    expect(opened).toMatchObject({
      name: "StoreUnavailable",
      kind: "damaged",
      fix: expect.stringContaining(file) as string,
    })
    expect(readFileSync(file).equals(before)).toBe(true)
  })
  it("is refused as soon as it is so, also by who opened it before", async () => {
    await using store = await openSqliteStore(file)
    expect(await store.held("a")).toMatchObject({ state: "held" })
    edited("CREATE TRIGGER t AFTER UPDATE ON held BEGIN DELETE FROM held WHERE id <> new.id; END")
    await expect(store.claim("a", "approve", "me", later(1))).rejects.toMatchObject({ kind: "damaged" })
    edited("DROP TRIGGER t")
    expect(await store.held("b")).toMatchObject({ state: "held" })
    expect(await store.claim("a", "approve", "me", later(1))).toMatchObject({ ok: true, claim: { number: 1 } })
  })
})

describe("a row that no verb wrote", () => {
  const most = "9223372036854775807"
  it.each([
    ["a moment that is none", `held_ms = ${most}`],
    ["a moment before all", `held_ms = -${most}`],
    ["a time that never ends", `hold_ms = ${most}`],
    ["more claims than can be counted", `claims = ${most}`],
    ["a size that cannot be added up", `bytes = ${most}`],
    ["less than nothing", `bytes = -${most}`],
    ["a state that there is not", "state = 'odd'"],
    ["facts that are none", "facts = '7'"],
    ["a claim that is none", "state = 'deciding', claim = '7'"],
    ["a decision without a claim", "state = 'deciding', claim = NULL"],
  ])("keeps nobody from the others, and can itself be settled: %s", async (_, change) => {
    edited(`UPDATE held SET ${change} WHERE id = 'a'`)
    await using store = await openSqliteStore(file)
    const listed = await store.heldList({ tenant: "local", states: ["held", "deciding"] })
    expect(listed.map(({ id }) => id)).toEqual(expect.arrayContaining(["b", "c"]))
    for (const { at, holdMs } of listed) expect(() => new Date(at.wallMs + holdMs).toISOString()).not.toThrow()
    expect(await store.hold(heldCall("new"), { count: 100, bytes: Number.MAX_VALUE })).toEqual({ ok: true })
    const found = await store.held("a")
    // Of a broken-off decision there is a claim to be taken back.
    if (found?.state === "deciding") expect(await store.release("a", found.claim?.number ?? -1)).toBe(true)
    const claims = [await store.claim("a", "expire", "me", later(1)), await store.claim("a", "deny", "me", later(1))]
    const claimed = claims.find((each) => each.ok)
    expect(claimed).toBeDefined()
    const number = claimed?.ok === true ? claimed.claim.number : -1
    expect(await store.settle("a", number, { verdict: "approval_denied", committed: false })).toBe(true)
  })
  it("of what a server said, or of a login, breaks nobody either", async () => {
    edited(`UPDATE offers SET accepted_ms = ${most}, waiting_ms = -1; UPDATE logins SET generation = ${most}`)
    await using store = await openSqliteStore(file)
    expect(await store.offers("local", "s")).toMatchObject([{ accepted: { atMs: 0 }, waiting: { atMs: 0 } }])
    expect(await store.logins("local")).toHaveLength(1)
  })
})

it("a file that lost any bits, or its end, is answered from or refused, at every verb", {
  timeout: 240_000,
}, async () => {
  const size = readFileSync(whole).length
  const flip = fc.record({ at: fc.nat(size - 1), to: fc.nat(255) })
  const cut = fc.option(fc.nat(size), { freq: 8, nil: size })
  await fc.assert(
    fc.asyncProperty(fc.array(flip, { minLength: 1, maxLength: 6 }), cut, async (flips, length) => {
      damage((bytes) => {
        for (const { at, to } of flips) bytes[at] = to
        return bytes.subarray(0, length)
      })
      const store = await orUnavailable(() => openSqliteStore(file))
      if (store instanceof StoreUnavailable) return
      await using open = store as Store
      for (const act of Object.values(verbs(open))) await orUnavailable(act)
    }),
    { numRuns: 150 },
  )
})

it("what lies beside it and is no log of its own is no harm", async () => {
  for (const more of ["-wal", "-shm"]) {
    damage((bytes) => bytes)
    cpSync(whole, file + more)
    await using store = await openSqliteStore(file)
    expect(await store.heldList({ tenant: "local", states: ["held", "deciding"] })).toHaveLength(3)
  }
})
