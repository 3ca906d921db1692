/** Two daemons, each on a data folder of its own, that remember on one PostgreSQL. */
import { existsSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, beforeAll, expect, it } from "vitest"
import { describeNeeding } from "../support/needing.ts"
import { noPostgres, type PostgresServer, startPostgresServer } from "../support/servers/postgres.ts"
import { type Ask, type DaemonWorld, openDaemonWorld } from "./daemon-world.ts"

describeNeeding("two daemons on one PostgreSQL", noPostgres, () => {
  let server: PostgresServer
  let worlds: readonly DaemonWorld[] = []
  let alice: readonly Ask[] = []
  beforeAll(async () => {
    server = await startPostgresServer()
    const file = join(server.folder, "url")
    writeFileSync(file, `${await server.database()}\n`, { mode: 0o600 })
    const config = `store: { postgres: { url_file: ${file} } }`
    worlds = [await openDaemonWorld(config), await openDaemonWorld(config)]
    // What one ran lies in a folder that is none of the other's own.
    alice = await Promise.all(worlds.map((world) => world.as({ workspaces: "any" })))
  }, 120_000)
  afterAll(async () => {
    for (const world of worlds) await world[Symbol.asyncDispose]()
    await server[Symbol.asyncDispose]()
  })
  const [one, two] = [0, 1].map((n) => ({
    ask: (...of: Parameters<Ask>) => (alice[n] as Ask)(...of),
    get world() {
      return worlds[n] as DaemonWorld
    },
  })) as [{ ask: Ask; world: DaemonWorld }, { ask: Ask; world: DaemonWorld }]
  const call = (world: DaemonWorld, verb: string, ...args: string[]): object => ({
    tool: "fixture.act",
    input: { verb, args },
    workspace: world.workspace,
  })

  it("keep nothing of it in their data folders, and what one ran the other can tell", async () => {
    const made = await one.ask("POST", "/v1/calls", call(one.world, "print", "5"))
    expect(made).toMatchObject({ status: 200, body: { ok: true } })
    expect(await two.ask("GET", `/v1/calls/${String(made.body["call"])}`)).toMatchObject({
      status: 200,
      body: { state: "settled" },
    })
    for (const { data } of worlds) expect(existsSync(join(data, "store.db"))).toBe(false)
  })

  it("let a token of one in at the other, and a key run once on both", async () => {
    const elsewhere = worlds[1]?.address ?? ""
    const issued = await one.world.daemon.host.tokens.issue({ user: "bob", workspaces: "any" })
    if (!issued.ok) throw new Error(issued.error.message)
    const headers = {
      authorization: `Bearer ${issued.value.token}`,
      "content-type": "application/json",
      "idempotency-key": "both",
    }
    const body = JSON.stringify(call(one.world, "print", "7"))
    const answers = await Promise.all(
      [one.world.address, elsewhere].map(async (address) => {
        const answer = await fetch(`${address}/v1/calls`, { method: "POST", headers, body })
        return (await answer.json()) as Record<string, unknown>
      }),
    )
    const ran = answers.filter(({ ok }) => ok === true)
    const again = await fetch(`${elsewhere}/v1/calls`, { method: "POST", headers, body })
    expect(ran.length).toBeGreaterThan(0)
    expect(await again.json()).toEqual(ran[0])
    const receipts = worlds.flatMap(({ data }) =>
      readFileSync(join(data, "audit", "audit-log.jsonl"), "utf8")
        .split("\n")
        .filter((line) => line.includes('"tool.invoked"') && line.includes(String(ran[0]?.["call"]))),
    )
    expect(receipts).toHaveLength(1)
  })

  it("hold effects each for themselves: what one holds the other neither shows nor decides", async () => {
    const held = await one.ask("POST", "/v1/calls", call(one.world, "write", "notes/held.txt", "x"))
    expect(held.body).toMatchObject({ ok: false, error: { code: "approval_required" } })
    const id = String(held.body["call"])
    const people = await Promise.all(worlds.map((world) => world.as({ agent: false, roles: ["caller", "approver"] })))
    expect(JSON.stringify((await people[1]?.("GET", "/v1/approvals"))?.body)).not.toContain(id)
    expect((await people[1]?.("POST", `/v1/approvals/${id}`, { decision: "approve" }))?.status).toBe(404)
    expect(JSON.stringify((await people[0]?.("GET", "/v1/approvals"))?.body)).toContain(id)
    expect(await people[0]?.("POST", `/v1/approvals/${id}`, { decision: "approve" })).toMatchObject({ status: 200 })
    expect(readFileSync(join(one.world.workspace, "notes", "held.txt"), "utf8")).toContain("x")
  })
})
