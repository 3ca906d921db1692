/** AML tools over a database: a real PostgreSQL, asked by the host over the call's own way out. */
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { readReceipts } from "../../src/host/index.ts"
import type { Envelope } from "../../src/host/types.ts"
import { describeNeeding } from "../support/needing.ts"
import { noPostgres, type PostgresServer, startPostgresServer } from "../support/servers/postgres.ts"
import { type FormatsWorld, openFormatsWorld } from "./formats-world.ts"

const code = (envelope: Envelope): string => (envelope.ok ? "ok" : envelope.error.code)
const READER = "only-reads-here"

describeNeeding("AML over PostgreSQL", noPostgres, () => {
  let server: PostgresServer
  let world: FormatsWorld
  let name = ""
  const count = async (): Promise<number> =>
    Number((await server.ask("SELECT count(*) AS n FROM parts", name))[0]?.["n"])

  beforeAll(async () => {
    server = await startPostgresServer()
    name = new URL(await server.database()).pathname.slice(1)
    await server.ask(
      `CREATE TABLE parts (part text PRIMARY KEY, stock int NOT NULL, price numeric, added timestamptz DEFAULT '2026-01-02T03:04:05Z');
       INSERT INTO parts VALUES ('bolt', 7, 1.50), ('nut', 0, 0.25);
       CREATE ROLE reader LOGIN PASSWORD '${READER}';
       GRANT SELECT, INSERT ON parts TO reader;
       CREATE ROLE chief SUPERUSER;
       CREATE ROLE deputy LOGIN NOINHERIT PASSWORD '${READER}' IN ROLE chief;
       CREATE ROLE copyist LOGIN REPLICATION PASSWORD '${READER}';
       GRANT SELECT ON parts TO deputy, copyist;
       CREATE FUNCTION sneak() RETURNS int LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN INSERT INTO parts VALUES ('sneaked', 1); RETURN 1; END $$;`,
      name,
    )
    const database = (more: string): string =>
      `database: { address: "db.test:5432", name: ${name}, tls: false, ${more} }`
    const config = `annotations:
  stock-query: { ${database('statement: "SELECT part, stock, price, added FROM parts WHERE part = $1", bind: [part]')} }
  stock-add: { ${database('statement: "INSERT INTO parts VALUES ($1, 1) RETURNING part", bind: [part]')}, mutates: ["database:parts"], approval: on-mutate }
  stock-sneak: { ${database('statement: "SELECT sneak() WHERE $1::text IS NOT NULL", bind: [part]')} }
  stock-free: { ${database("sql_input: part")} }
  stock-all: { ${database('statement: "SELECT repeat($1, 1000000) AS text FROM generate_series(1, 100)", bind: [part]')} }
  stock-wide: { ${database('statement: "SELECT 1 WHERE $1::text IS NOT NULL", bind: [part]').replace("db.test:5432", "127.0.0.1:5432")} }
`
    world = await openFormatsWorld({
      config,
      edit: (put) => {
        let text = ""
        put("aml/stock-query.tool.md", (found) => (text = found))
        for (const id of ["stock-add", "stock-sneak", "stock-free", "stock-all", "stock-wide"])
          put(`aml/${id}.tool.md`, () => text.replace("tool_id: stock_query", `tool_id: ${id}`))
      },
      services: { "db.test": `127.0.0.1:${server.port}` },
    })
    await asReader()
  }, 120_000)
  afterAll(async () => {
    await world[Symbol.asyncDispose]()
    await server[Symbol.asyncDispose]()
  })
  const account = async (user: string, password: string): Promise<void> => {
    const set = await world.host.secrets.set("stock-db", JSON.stringify({ user, password }), { shared: true })
    expect(set.ok).toBe(true)
  }
  const asReader = async (): Promise<void> => account("reader", READER)

  it("asks the operator's statement with what is bound, and gives rows their exact values", async () => {
    expect(await world.call("stock-query", { part: "bolt" }, { approved: false })).toMatchObject({
      ok: true,
      value: [{ part: "bolt", stock: 7, price: "1.50", added: expect.stringContaining("2026-01-02") as string }],
    })
    expect(await world.call("stock-query", { part: "none" })).toMatchObject({ ok: true, value: [] })
  })

  it.each(["' OR 1=1 --", "bolt'; DROP TABLE parts; --", "$1", "\\'; SELECT pg_sleep(9)", "\u0000"])(
    "%j is a value, whatever it looks like",
    async (part) => {
      const end = await world.call("stock-query", { part })
      if (end.ok) expect(end.value).toEqual([])
      else expect(end.error.details["sqlstate"]).toBe("22021")
      expect(await count()).toBe(2)
    },
  )

  it("writes only where the contract says so, and is asked about then", async () => {
    expect(code(await world.call("stock-add", { part: "screw" }, { approved: false }))).toBe("approval_required")
    expect(await count()).toBe(2)
    expect(await world.call("stock-add", { part: "screw" })).toMatchObject({ ok: true, value: [{ part: "screw" }] })
    expect(await count()).toBe(3)
    await server.ask("DELETE FROM parts WHERE part = 'screw'", name)
  })

  it("a failed write leaves nothing", async () => {
    const end = await world.call("stock-add", { part: "bolt" })
    expect(end).toMatchObject({ ok: false, error: { code: "upstream_error", details: { sqlstate: "23505" } } })
    expect(await count()).toBe(2)
  })

  it("a function that writes does not, where the contract changes nothing", async () => {
    expect(code(await world.call("stock-sneak", { part: "x" }))).toBe("policy_violation")
    expect(await count()).toBe(2)
  })

  describe("a statement that an input carries", () => {
    it("reads", async () => {
      expect(await world.call("stock-free", { part: "SELECT part FROM parts ORDER BY part -- all" })).toMatchObject({
        ok: true,
        value: [{ part: "bolt" }, { part: "nut" }],
      })
    })
    it.each([
      ["a second statement", "SELECT 1; DELETE FROM parts"],
      ["one that closes what it stands in", "SELECT 1) AS a; DELETE FROM parts; SELECT * FROM (SELECT 1"],
      ["a write", "DELETE FROM parts"],
      ["a write in a WITH", "WITH gone AS (DELETE FROM parts RETURNING 1) SELECT * FROM gone"],
      ["a function that writes", "SELECT sneak()"],
      ["a change of the transaction", "SET TRANSACTION READ WRITE"],
      ["a change of the transaction by a function", "SELECT set_config('transaction_read_only', 'off', true), sneak()"],
      ["the end of the transaction", "COMMIT"],
      ["a program", "COPY (SELECT 1) TO PROGRAM 'touch /tmp/caisson-was-here'"],
      ["a file of the server", "SELECT pg_read_file('/etc/passwd')"],
      ["a block of code", "DO $$ BEGIN DELETE FROM parts; END $$"],
      ["a comment that hides the end", "SELECT 1 /*"],
    ])("%s is refused, and nothing is changed", async (_what, part) => {
      const end = await world.call("stock-free", { part })
      expect(end.ok).toBe(false)
      expect(await count()).toBe(2)
    })
    it("is not asked as an account that may run programs", async () => {
      await account("tester", "not-a-secret")
      const end = await world.call("stock-free", { part: "SELECT 1 AS one" })
      expect(end).toMatchObject({ ok: false, error: { code: "policy_violation" } })
      await asReader()
      expect(code(await world.call("stock-free", { part: "SELECT 1 AS one" }))).toBe("ok")
    })
    it.each([
      [
        "deputy",
        "SELECT set_config('role', 'chief', true) AS who, query_to_xml('SELECT pg_read_file(''PG_VERSION'')', true, true, '') AS file",
      ],
      ["copyist", "SELECT pg_create_physical_replication_slot('hostile', true)"],
    ])("nor as one that may become who may, or keep what no transaction undoes: %s", async (user, part) => {
      await account(user, READER)
      const end = await world.call("stock-free", { part })
      expect(end).toMatchObject({ ok: false, error: { code: "policy_violation" } })
      expect(await server.ask("SELECT slot_name FROM pg_replication_slots")).toEqual([])
      await asReader()
    })
    it("does not go on in the database once its call is over", async () => {
      const asked = async (): Promise<number> =>
        (await server.ask("SELECT 1 FROM pg_stat_activity WHERE usename = 'reader' AND state = 'active'")).length
      const cancel = new AbortController()
      const part = "SELECT count(*) FROM generate_series(1, 1000000000000)"
      const going = world.call("stock-free", { part }, { signal: cancel.signal })
      await expect.poll(asked, { timeout: 60_000, interval: 200 }).toBe(1)
      cancel.abort()
      expect(code(await going)).toBe("cancelled")
      await expect.poll(asked, { timeout: 60_000, interval: 500 }).toBe(0)
      const most = await world.call("stock-free", { part: "SELECT current_setting('statement_timeout') AS most" })
      expect(most).toMatchObject({ ok: true, value: [{ most: expect.stringMatching(/^[1-9]/) as string }] })
    }, 150_000)
  })

  it("a wrong password is a login that is not taken, and is told nowhere", async () => {
    await account("reader", "wrong-password-here")
    const end = await world.call("stock-query", { part: "bolt" })
    expect(end).toMatchObject({ ok: false, error: { code: "auth_required", details: { sqlstate: "28P01" } } })
    expect(JSON.stringify([end, readReceipts(world.data)])).not.toContain("wrong-password-here")
    await asReader()
  })

  it("more than may be kept ends the call", async () => {
    expect(code(await world.call("stock-all", { part: "x" }))).toBe("limit_exceeded")
  })

  it("a private address is not reached, though the annotation names it", async () => {
    expect((await world.call("stock-wide", { part: "x" })).ok).toBe(false)
  })
})
