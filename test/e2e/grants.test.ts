import { readdirSync } from "node:fs"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { openDaemon } from "../../src/daemon/daemon.ts"
import { readReceipts, verifyChain } from "../../src/host/index.ts"
import { type Ask, askAt, type DaemonWorld, openDaemonWorld } from "./daemon-world.ts"
import { fixtureTools } from "./host-world.ts"

describe("grants", () => {
  let world: DaemonWorld
  let agent: Ask
  let bob: Ask
  let person: Ask
  beforeAll(async () => {
    world = await openDaemonWorld()
    agent = await world.as()
    bob = await world.as({ user: "bob" })
    person = await world.as({ agent: false, roles: ["caller", "approver"] })
  })
  afterAll(() => world[Symbol.asyncDispose]())
  const write = (name: string, ask = agent) =>
    ask("POST", "/v1/calls", {
      tool: "fixture.act",
      input: { verb: "write", args: [`notes/${name}`, "by the tool"] },
      workspace: world.workspace,
    })
  const give = (more: object = {}, ask = person) =>
    ask("POST", "/v1/grants", { tool: "fixture.act", workspace: world.workspace, ...more })

  it("let exactly as many calls through as they have uses, of any number at once, each with a receipt that names the grant", async () => {
    const made = await give({ uses: 20, reason: "tidy the notes" })
    expect(made).toMatchObject({
      status: 201,
      body: { tool: "fixture.act@1", user: "alice", uses: 20, used: 0, good: true, by: "alice" },
    })
    const before = readdirSync(join(world.workspace, "notes")).length
    const answers = await Promise.all(Array.from({ length: 50 }, (_, n) => write(`race-${n}.txt`)))
    const through = answers.filter(({ body }) => body["ok"] === true)
    expect(through).toHaveLength(20)
    expect(readdirSync(join(world.workspace, "notes")).length - before).toBe(20)
    for (const { status, body } of answers.filter((answer) => !through.includes(answer)))
      expect({ status, body }).toMatchObject({ status: 428, body: { error: { code: "approval_required" } } })
    const id = String(made.body["id"])
    const named = through.flatMap(({ body }) => readReceipts(world.data, { call: String(body["call"]) }))
    const numbers = named.map(({ metadata }) => {
      const { grant } = (metadata ?? {})["approval"] as { grant: { id: string; by: string; use: number } }
      expect(grant).toMatchObject({ id, by: "alice", uses: 20 })
      return grant.use
    })
    expect(numbers.sort((a, b) => a - b)).toEqual(Array.from({ length: 20 }, (_, n) => n + 1))
    expect(readReceipts(world.data).find(({ subject }) => subject.ref === id)).toMatchObject({
      action: "grant.created",
      actor: { id: "alice" },
      metadata: { uses: 20, reason: "tidy the notes", user_id: "alice", tool: "fixture.act@1" },
    })
    expect(await verifyChain(world.data)).toMatchObject({ ok: true })
  }, 240_000)

  it("are given by who may approve alone, and reach no further than they do", async () => {
    expect((await give({}, agent)).status).toBe(403)
    expect((await give({ workspace: "any" })).status).toBe(403)
    expect((await give({ workspace: world.folder })).status).toBe(404)
    expect((await give({ tool: "fixture.none" })).status).toBe(404)
    expect((await give({ until: "2020-01-01" })).status).toBe(400)
    expect((await give({ until: "some day" })).status).toBe(400)
    expect((await give({ uses: 0 })).status).toBe(400)
    expect((await give({ tenant: "another" })).status).toBe(400)
    const plain = await world.as({ user: "carol", agent: false, roles: ["caller"] })
    expect((await give({}, plain)).status).toBe(403)
  })

  it("of another user's are not there, and answer nothing for anybody else", async () => {
    const made = await give({ uses: 5 })
    const id = String(made.body["id"])
    expect(await write("bobs.txt", bob)).toMatchObject({ status: 428 })
    const bobs = await bob("GET", "/v1/grants")
    expect(bobs).toMatchObject({ status: 200, body: { grants: [] } })
    expect((await bob("DELETE", `/v1/grants/${id}`)).status).toBe(404)
    expect((await agent("DELETE", `/v1/grants/${id}`)).status).toBe(403)
    expect((await person("DELETE", `/v1/grants/${id}`)).status).toBe(204)
    expect((await person("DELETE", `/v1/grants/${id}`)).status).toBe(404)
    expect(await write("revoked.txt")).toMatchObject({ status: 428 })
    expect(readReceipts(world.data).filter(({ subject }) => subject.ref === id)).toMatchObject([
      { action: "grant.created" },
      { action: "grant.revoked", metadata: { used: 0 } },
    ])
  })

  it("outlive the daemon, with the uses that are left", async () => {
    await give({ uses: 2 })
    expect(await write("before.txt")).toMatchObject({ status: 200, body: { ok: true } })
    await world.daemon.close()
    await using again = await openDaemon({ data: world.data, manifests: [fixtureTools], listen: "127.0.0.1:0" })
    const made = await again.host.tokens.issue({ user: "alice", workspaces: [world.workspace] })
    if (!made.ok) throw new Error(made.error.message)
    const ask = askAt(again.address ?? "", { authorization: `Bearer ${made.value.token}` })
    expect(await write("after.txt", ask)).toMatchObject({ status: 200, body: { ok: true } })
    expect(await write("late.txt", ask)).toMatchObject({ status: 428 })
  }, 60_000)
})
