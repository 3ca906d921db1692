/** The store on a real PostgreSQL: the contract, and what a server that is shared, stopped and started does to it. */
import { createServer } from "node:net"
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from "vitest"
import { bringTables, steps } from "../../../src/host/store/postgres/bring.ts"
import { type PostgresSettings, postgresSettings } from "../../../src/host/store/postgres/settings.ts"
import { openPostgresStore, type PostgresStoreOptions } from "../../../src/host/store/postgres/store.ts"
import { type Store, StoreUnavailable } from "../../../src/host/store/store.ts"
import { describeNeeding } from "../../support/needing.ts"
import { noPostgres, type PostgresServer, startPostgresServer } from "../../support/servers/postgres.ts"
import { heldCall, roomy, storeContract } from "./contract.ts"
import { keyed } from "./contract-calls.ts"
import { later } from "./instants.ts"

const keep = { keepMs: 1_000_000, keepKeyedMs: 8_000_000 }
const settingsOf = (url: string): PostgresSettings => {
  const read = postgresSettings(url, { verify: true })
  if (!read.ok) throw new Error(read.message)
  return read.settings
}
const opened = (url: string, more: Partial<PostgresStoreOptions> = {}): Promise<Store> =>
  openPostgresStore(settingsOf(url), { owner: "local", ...more })

const refusal = async (opening: Promise<unknown>): Promise<StoreUnavailable> => {
  const said = await opening.catch((error: unknown) => error)
  expect(said).toBeInstanceOf(StoreUnavailable)
  return said as StoreUnavailable
}

describeNeeding("a store on PostgreSQL", noPostgres, () => {
  let server: PostgresServer
  let url = ""
  const name = (): string => new URL(url).pathname.slice(1)
  beforeAll(async () => {
    server = await startPostgresServer()
  }, 120_000)
  afterAll(() => server[Symbol.asyncDispose]())

  const free: string[] = []
  storeContract("PostgreSQL", async () => {
    // Making a database takes longer than emptying one.
    const own = free.pop() ?? (await server.database())
    return {
      open: (settled) => opened(own, settled === undefined ? {} : { settled }),
      async [Symbol.asyncDispose]() {
        await server.ask("DROP SCHEMA caisson CASCADE", new URL(own).pathname.slice(1))
        free.push(own)
      },
    }
  })

  const stores: Store[] = []
  const open = async (more: Partial<PostgresStoreOptions> = {}): Promise<Store> => {
    const store = await opened(url, more)
    stores.push(store)
    return store
  }
  beforeEach(async () => {
    url = await server.database()
  })
  afterEach(async () => {
    for (const store of stores.splice(0)) await store[Symbol.asyncDispose]()
  })

  it("tells a host of its own held calls and open calls alone, and lets it end no other's", async () => {
    const [a, b] = [await open({ owner: "a" }), await open({ owner: "b" })]
    await a.hold(heldCall("held"), { count: 1, bytes: 1_000 })
    await a.admit(keyed("runs", "k"))
    expect(await b.held("held")).toBeUndefined()
    expect(await b.heldList({ tenant: "local", states: ["held", "deciding"] })).toEqual([])
    expect(await b.claim("held", "expire", "b", later(9e9))).toEqual({ ok: false, why: "absent" })
    expect(await b.openCalls()).toEqual([])
    await b.settleCall(keyed("runs", "k"), { endedMs: 9, envelope: { lost: true } }, keep)
    expect(await a.call("runs")).toMatchObject({ state: "running", owner: "a" })
    expect(await b.admit(keyed("again", "k"))).toMatchObject({ why: "known", call: { id: "runs", owner: "a" } })
    // What one holds takes no room from the other: it lies on another disk.
    expect(await b.hold(heldCall("own"), { count: 1, bytes: 1_000 })).toEqual({ ok: true })
    await a.claim("held", "deny", "alice", later(1))
    expect(await b.release("held", 1)).toBe(false)
    expect(await b.settle("held", 1, { verdict: "ok", committed: true })).toBe(false)
    await b.receipted("held", "sha256:b")
    expect(await a.held("held")).toMatchObject({ state: "deciding" })
    expect((await a.held("held"))?.receipt).toBeUndefined()
  })

  it("refuses tables of a newer version, and leaves them as they are", async () => {
    await (await open())[Symbol.asyncDispose]()
    await server.ask(`UPDATE caisson.version SET version = ${steps.length + 1}`, name())
    expect(await refusal(open())).toMatchObject({ kind: "newer", message: expect.stringContaining("newer") as unknown })
    expect(await server.ask("SELECT version FROM caisson.version", name())).toEqual([
      { version: `${steps.length + 1}` },
    ])
  })

  it("brings tables of an older version further, and keeps what is in them", async () => {
    await bringTables(settingsOf(url), "here", steps.slice(0, 1))
    await server.ask(
      `INSERT INTO caisson.held VALUES ('a','local','w','local',1,'held',1,'b',1,9,1,'{}',NULL,0,NULL,NULL)`,
      name(),
    )
    const store = await open()
    expect(await store.held("a")).toMatchObject({ state: "held" })
    expect(await store.tokens("local")).toEqual([])
  })

  it("changes no table while a host that knows them is connected", async () => {
    const store = await open()
    await store.held("a")
    const held = await server.ask(
      `SELECT count(*) AS count FROM pg_locks WHERE locktype = 'advisory' AND mode = 'ShareLock'
         AND database = (SELECT oid FROM pg_database WHERE datname = '${name()}')`,
    )
    expect(held).toEqual([{ count: "1" }])
    const blocked = server.ask(`SET lock_timeout = 50; SELECT pg_advisory_xact_lock(7017280452245743464)`, name())
    await expect(blocked).rejects.toMatchObject({ code: "55P03" })
  })

  it("refuses a schema that is another program's, and leaves it as it is", async () => {
    await server.ask("CREATE SCHEMA caisson; CREATE TABLE caisson.held (own TEXT)", name())
    expect(await refusal(open())).toMatchObject({ kind: "foreign" })
    expect(await server.ask("SELECT * FROM caisson.held", name())).toEqual([])
  })

  it.each([
    ["a wrong password", (text: string) => text.replace("not-a-secret", "hunter2-wrong"), "does not let this host in"],
    ["no password", (text: string) => text.replace(":not-a-secret", ""), "password"],
    ["a database that is not there", (text: string) => `${text}-none`, "does not exist"],
  ])("says what is wrong at once, without the password: %s", async (_what, change, words) => {
    const said = await refusal(opened(change(url), { waitMs: 60_000 }))
    expect(said).toMatchObject({ kind: "trouble", message: expect.stringContaining(words) as unknown })
    expect(`${said.stack} ${said.fix} ${JSON.stringify(said)}`).not.toMatch(/hunter2|not-a-secret/)
  })

  it("gives up on a server that is not there when its time is over, and says so", async () => {
    const nowhere = url.replace(`:${server.port}`, ":1")
    expect(await refusal(opened(nowhere, { waitMs: 100 }))).toMatchObject({
      kind: "unreachable",
      message: expect.stringContaining("127.0.0.1:1") as unknown,
    })
  })

  it("gives up on one that takes the connection and never says a word", { timeout: 60_000 }, async () => {
    const silent = createServer(() => undefined).listen(0, "127.0.0.1")
    await new Promise((resolve) => silent.once("listening", resolve))
    const address = silent.address()
    const port = typeof address === "object" ? address?.port : 0
    try {
      const said = await refusal(opened(url.replace(`:${server.port}`, `:${port}`), { waitMs: 100 }))
      expect(said.kind).toBe("unreachable")
    } finally {
      silent.close()
    }
  })

  it("waits for another's lock no longer than it may, keeps nothing then, and goes on after", {
    timeout: 60_000,
  }, async () => {
    const store = await open({ waitMs: 100 })
    await store.hold(heldCall("a"), roomy)
    const [{ pid } = {}] = await new Promise<readonly Record<string, unknown>[]>((resolve, reject) => {
      // Held by a session of its own until it is ended.
      server
        .ask("BEGIN; LOCK caisson.held IN ACCESS EXCLUSIVE MODE; SELECT pg_sleep(600)", name())
        .catch(() => undefined)
      const look = (): void => {
        server
          .ask("SELECT pid FROM pg_stat_activity WHERE query LIKE '%pg_sleep(600)%' AND pid <> pg_backend_pid()")
          .then((rows) => (rows.length === 0 ? setTimeout(look, 20) : resolve(rows)), reject)
      }
      look()
    })
    expect(await refusal(store.claim("a", "approve", "alice", later(1)))).toMatchObject({ kind: "busy" })
    await server.ask(`SELECT pg_terminate_backend(${String(pid)})`)
    expect(await store.claim("a", "approve", "alice", later(1))).toMatchObject({ ok: true, claim: { number: 1 } })
  })

  it("finds sessions that the server ended, and makes others", async () => {
    const store = await open()
    for (let n = 0; n < 3; n += 1) {
      await store.admit(keyed(`c${n}`, `k${n}`))
      await server.ask(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '${name()}'`)
    }
    expect(await store.openCalls()).toHaveLength(3)
  })

  it("asks for no more sessions than it may, however much is asked at once", async () => {
    const store = await open({ connections: 3 })
    await Promise.all(Array.from({ length: 60 }, (_, n) => store.admit(keyed(`c${n}`, `k${n}`))))
    const used = await server.ask(`SELECT count(*) AS count FROM pg_stat_activity WHERE datname = '${name()}'`)
    expect(Number(used[0]?.["count"])).toBeLessThanOrEqual(3)
    expect(await store.openCalls()).toHaveLength(60)
  })

  it("commits to the server's disk, also where the server does not by default", async () => {
    await server.ask(`ALTER DATABASE ${name()} SET synchronous_commit = off`)
    const store = await open()
    await server.ask(
      `CREATE TABLE seen (value TEXT); CREATE FUNCTION see() RETURNS trigger LANGUAGE plpgsql AS
         $$ BEGIN INSERT INTO public.seen VALUES (current_setting('synchronous_commit')); RETURN NEW; END $$;
       CREATE TRIGGER t AFTER INSERT ON caisson.calls FOR EACH ROW EXECUTE FUNCTION see()`,
      name(),
    )
    await store.admit(keyed("a", "k"))
    expect(await server.ask("SELECT value FROM seen", name())).toEqual([{ value: "on" }])
  })
})
