/** AML tools over a database: a real MariaDB, asked by the host over the call's own way out. */
import { existsSync } from "node:fs"
import { join } from "node:path"
import { getCACertificates, setDefaultCACertificates } from "node:tls"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { createCallAuthority } from "../../src/egress-proxy/tls/authority.ts"
import { readReceipts } from "../../src/host/index.ts"
import type { Envelope } from "../../src/host/types.ts"
import { describeNeeding } from "../support/needing.ts"
import { ADMINISTRATOR, type MariadbServer, noMariadb, startMariadb } from "../support/servers/mariadb.ts"
import { type FormatsWorld, openFormatsWorld } from "./formats-world.ts"

const code = (envelope: Envelope): string => (envelope.ok ? "ok" : envelope.error.code)
const READER = "only-reads-here"

describeNeeding("AML over MariaDB", noMariadb, () => {
  let server: MariadbServer
  let world: FormatsWorld
  const before = getCACertificates("default")
  const count = async (): Promise<number> =>
    Number((await server.ask("SELECT count(*) AS n FROM shop.parts"))[0]?.["n"])
  const looted = (): string => join(server.folder, "looted")

  beforeAll(async () => {
    const authority = createCallAuthority({ names: ["db.test"] })
    setDefaultCACertificates([...before, authority.caPem])
    const { cert, key } = authority.leafFor("db.test")
    server = await startMariadb({ cert: String(cert), key: String(key) })
    await server.ask(
      `CREATE DATABASE shop; USE shop;
       CREATE TABLE parts (part varchar(40) PRIMARY KEY, stock int NOT NULL, price decimal(6,2), far bigint DEFAULT 9007199254740993, added datetime DEFAULT '2026-01-02 03:04:05', facts json DEFAULT '{"a":1}', raw varbinary(4) DEFAULT x'00ff');
       INSERT INTO parts (part, stock, price) VALUES ('bolt', 7, 1.50), ('nut', 0, 0.25);
       CREATE TABLE loose (part varchar(40) PRIMARY KEY) ENGINE=Aria TRANSACTIONAL=0;
       INSERT INTO loose VALUES ('bolt');
       CREATE SEQUENCE numbers;
       CREATE FUNCTION sneak() RETURNS int MODIFIES SQL DATA BEGIN INSERT INTO parts (part, stock) VALUES ('sneaked', 1); RETURN 1; END;
       CREATE PROCEDURE leave_it() BEGIN COMMIT; START TRANSACTION READ WRITE; INSERT INTO parts (part, stock) VALUES ('left', 1); COMMIT; END;
       CREATE USER reader IDENTIFIED BY '${READER}';
       GRANT SELECT, INSERT, DELETE, CREATE, DROP, EXECUTE, LOCK TABLES ON shop.* TO reader;
       CREATE USER files IDENTIFIED BY '${READER}'; GRANT FILE ON *.* TO files; GRANT SELECT ON shop.* TO files;
       CREATE ROLE lofty; GRANT FILE ON *.* TO lofty; CREATE USER climber IDENTIFIED BY '${READER}';
       GRANT SELECT ON shop.* TO climber; GRANT lofty TO climber; SET DEFAULT ROLE lofty FOR climber;`,
    )
    const database = (more: string, host = "db.test:3306"): string =>
      `database: { address: "${host}", name: shop, ${more} }`
    const asked = (statement: string): string =>
      database(`statement: ${JSON.stringify(statement)}, bind: [part]`).replace(
        "name: shop,",
        "name: shop, tls: false,",
      )
    const tools: Readonly<Record<string, string>> = {
      "stock-query": database(`statement: "SELECT * FROM parts WHERE part = ? -- ?", bind: [part]`),
      "stock-add": `${asked("INSERT INTO parts (part, stock) VALUES (?, 1) RETURNING part")}, mutates: ["database:parts"], approval: on-mutate`,
      "stock-call": `${asked("CALL leave_it() /* ? */").replace("bind: [part]", "bind: []")}, mutates: ["database:parts"]`,
      "stock-loose": `${asked("INSERT INTO loose VALUES ('new'), (?)")}, mutates: ["database:loose"]`,
      "stock-sneak": asked("SELECT sneak() FROM parts WHERE part <> ? LIMIT 1"),
      "stock-leave": asked("CALL leave_it()").replace("bind: [part]", "bind: []"),
      "stock-drop": asked("DROP TABLE parts").replace("bind: [part]", "bind: []"),
      "stock-out": asked(`SELECT ? INTO OUTFILE '${looted()}'`),
      "stock-free": database("sql_input: part, tls: false"),
      "stock-all": asked("SELECT repeat(?, 1000000) AS text FROM seq_1_to_100"),
      "stock-many": asked("SELECT seq FROM seq_1_to_10001 WHERE ? <> ''"),
      "stock-secure": database("sql_input: part"),
      "stock-other": database("sql_input: part", "other.test:3306"),
      "stock-wide": database("sql_input: part, tls: false", "127.0.0.1:3306"),
    }
    world = await openFormatsWorld({
      config: `annotations:\n${Object.entries(tools)
        .map(([id, text]) => `  ${id}: { ${text} }\n`)
        .join("")}`,
      edit: (put) => {
        let text = ""
        put("aml/stock-query.tool.md", (found) => (text = found.replace("engine: postgresql", "engine: mysql")))
        for (const id of Object.keys(tools).slice(1))
          put(`aml/${id}.tool.md`, () => text.replace("tool_id: stock_query", `tool_id: ${id}`))
      },
      services: { "db.test": `127.0.0.1:${server.port}`, "other.test": `127.0.0.1:${server.port}` },
    })
    await asReader()
  }, 180_000)
  afterAll(async () => {
    setDefaultCACertificates(before)
    await world[Symbol.asyncDispose]()
    await server[Symbol.asyncDispose]()
  })
  const account = async (user: string, password: string): Promise<void> => {
    const set = await world.host.secrets.set("stock-db", JSON.stringify({ user, password }), { shared: true })
    expect(set.ok).toBe(true)
  }
  const asReader = async (): Promise<void> => account("reader", READER)

  it("asks the operator's statement with what is bound, over TLS, and gives rows their exact values", async () => {
    expect(await world.call("stock-query", { part: "bolt" }, { approved: false })).toMatchObject({
      ok: true,
      value: [
        {
          part: "bolt",
          stock: 7,
          price: "1.50",
          far: "9007199254740993",
          added: "2026-01-02 03:04:05",
          raw: "AP8=",
        },
      ],
    })
    expect(await world.call("stock-query", { part: "none" })).toMatchObject({ ok: true, value: [] })
  })

  it.each(["' OR 1=1 -- ", "bolt'; DROP TABLE parts; -- ", "?", "\\' OR 1=1 # ", "0"])(
    "%j is a value, whatever it looks like",
    async (part) => {
      expect(await world.call("stock-query", { part })).toMatchObject({ ok: true, value: [] })
      expect(await count()).toBe(2)
    },
  )

  it("writes only where the contract says so, and is asked about then", async () => {
    expect(code(await world.call("stock-add", { part: "screw" }, { approved: false }))).toBe("approval_required")
    expect(await count()).toBe(2)
    expect(await world.call("stock-add", { part: "screw" })).toMatchObject({ ok: true, value: [{ part: "screw" }] })
    expect(await count()).toBe(3)
    await server.ask("DELETE FROM shop.parts WHERE part = 'screw'")
    expect(code(await world.call("stock-call", { part: "x" }))).toBe("ok")
    await server.ask("DELETE FROM shop.parts WHERE part = 'left'")
  })

  it("a failed write leaves nothing, and says so only where that is so", async () => {
    const end = await world.call("stock-add", { part: "bolt" })
    expect(end).toMatchObject({ ok: false, error: { code: "upstream_error", details: { sqlstate: "23000" } } })
    expect(end.ok || end.error.details["commit"]).toBeUndefined()
    expect(await count()).toBe(2)
    const loose = await world.call("stock-loose", { part: "bolt" })
    expect(loose).toMatchObject({ ok: false, error: { details: { sqlstate: "23000", commit: "unknown" } } })
  })

  it("stock-out writes no file there, though its account may", async () => {
    await account("files", READER)
    expect(code(await world.call("stock-out", { part: "x" }))).toBe("policy_violation")
    expect(existsSync(looted())).toBe(false)
    await asReader()
  })

  it.each(["stock-sneak", "stock-leave", "stock-drop"])(
    "%s changes nothing, since its contract changes nothing",
    async (tool) => {
      expect(code(await world.call(tool, { part: "x" }))).toBe("policy_violation")
      expect(await count()).toBe(2)
    },
  )

  describe("a statement that an input carries", () => {
    it("reads, in the order that it asks for", async () => {
      const part = "SELECT part, upper(part) FROM parts ORDER BY part DESC -- all; 'of them"
      expect(await world.call("stock-free", { part })).toMatchObject({
        ok: true,
        value: [
          { part: "nut", "upper(part)": "NUT" },
          { part: "bolt", "upper(part)": "BOLT" },
        ],
      })
      const joined = "WITH a AS (SELECT part FROM parts) SELECT a.part, b.part FROM a JOIN parts b USING (part)"
      expect(code(await world.call("stock-free", { part: joined }))).toBe("ok")
    })
    it.each([
      ["a second statement", "SELECT 1; DELETE FROM parts"],
      ["a second statement after a comment that only looks like one", "SELECT 1 --1; DELETE FROM parts"],
      ["one that closes what it stands in", "SELECT 1); DELETE FROM parts; SELECT (1"],
      ["half of a query", "SELECT 1) OR (SELECT 1"],
      ["a write", "DELETE FROM parts"],
      ["a write that returns", "INSERT INTO parts (part, stock) VALUES ('x', 1) RETURNING part"],
      ["a function that writes", "SELECT sneak()"],
      ["the same, quoted", "SELECT `sneak`()"],
      ["the same, of its database", "SELECT shop.sneak ()"],
      ["a comment that is carried out", "SELECT 1 /*!50000 INTO OUTFILE 'looted' */"],
      ["the same of MariaDB alone", "SELECT 1 /*M!100100 INTO OUTFILE 'looted' */"],
      ["a hint that sets variables", "SELECT /*+ SET_VAR(sql_mode='') */ 1"],
      ["a file of the server that is written", "SELECT part FROM parts INTO OUTFILE 'looted'"],
      ["the same inside", "SELECT * FROM (SELECT part FROM parts INTO DUMPFILE 'looted') AS a"],
      ["a file of the server that is read", "SELECT load_file('/etc/passwd')"],
      ["a file of this machine", "LOAD DATA LOCAL INFILE '/etc/passwd' INTO TABLE parts (part)"],
      ["a variable", "SELECT @a := 1"],
      ["a setting", "SET SESSION TRANSACTION READ WRITE"],
      ["a setting of the server", "SET GLOBAL general_log = 1"],
      ["a setting for one statement", "SET STATEMENT sql_select_limit=1 FOR DELETE FROM parts"],
      ["a table gone", "DROP TABLE parts"],
      ["a table more", "CREATE TABLE more AS SELECT 1"],
      ["the end of the transaction", "COMMIT"],
      ["a procedure", "CALL leave_it()"],
      ["a block of code", "BEGIN NOT ATOMIC COMMIT; DELETE FROM parts; END"],
      ["a statement in a string", "EXECUTE IMMEDIATE 'DELETE FROM parts'"],
      ["a lock of rows", "SELECT part FROM parts FOR UPDATE"],
      ["a lock by name", "SELECT get_lock('x', 1)"],
      ["a lock of tables", "LOCK TABLES parts WRITE"],
      ["a wait", "SELECT sleep(1)"],
      ["work for its own sake", "SELECT benchmark(10, md5('x'))"],
      ["a sequence counted on", "SELECT NEXT VALUE FOR numbers"],
      ["the same by a function", "SELECT nextval(numbers)"],
      ["a comment that hides the end", "SELECT 1 /*"],
      ["a quote that hides the end", "SELECT 'a"],
    ])("%s is refused, and nothing is changed", async (_what, part) => {
      const end = await world.call("stock-free", { part })
      expect(end.ok).toBe(false)
      expect(await count()).toBe(2)
      expect(await server.ask("SHOW TABLES FROM shop LIKE 'more'")).toEqual([])
    })
    it.each([
      ["the administrator", ADMINISTRATOR.user, ADMINISTRATOR.password],
      ["one that may read and write files", "files", READER],
    ])("is not asked as %s", async (_who, user, password) => {
      await account(user, password)
      expect(code(await world.call("stock-free", { part: "SELECT 1 AS one" }))).toBe("policy_violation")
      await asReader()
      expect(code(await world.call("stock-free", { part: "SELECT 1 AS one" }))).toBe("ok")
    })
    it("has nothing of what a role gives", async () => {
      await account("climber", READER)
      const end = await world.call("stock-free", { part: "SELECT current_role AS now" })
      expect(end).toMatchObject({ ok: true, value: [{ now: null }] })
      await asReader()
    })
  })

  it("a wrong password is a login that is not taken, and is told nowhere", async () => {
    await account("reader", "wrong-password-here")
    const end = await world.call("stock-query", { part: "bolt" })
    expect(end).toMatchObject({ ok: false, error: { code: "auth_required", details: { sqlstate: "28000" } } })
    expect(JSON.stringify([end, readReceipts(world.data)])).not.toContain("wrong-password-here")
    await asReader()
  })

  it("more than may be kept ends the call, with and without TLS", async () => {
    expect(code(await world.call("stock-all", { part: "x" }))).toBe("limit_exceeded")
    const part = "SELECT repeat('x', 1000000) AS text FROM seq_1_to_100"
    expect(code(await world.call("stock-secure", { part }))).toBe("limit_exceeded")
    expect(await world.call("stock-many", { part: "x" })).toMatchObject({
      ok: false,
      error: { code: "limit_exceeded", details: { limit: "rows" } },
    })
  })

  it("a certificate of another name is not taken, and nothing is sent", async () => {
    const end = await world.call("stock-other", { part: "SELECT 1" })
    expect(end).toMatchObject({ ok: false, error: { code: "upstream_error", details: { sent: false } } })
  })

  it("a private address is not reached, though the annotation names it", async () => {
    expect((await world.call("stock-wide", { part: "SELECT 1" })).ok).toBe(false)
  })
})
