/** What calls cost: shown and asked about before they run, counted, and refused beyond what the operator allows. */
import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { createHost, readReceipts } from "../../src/host/index.ts"
import { removeFolder } from "../support/remove-folder.ts"
import { writeCostly } from "./costs-world.ts"
import { type Answer, type Ask, type DaemonWorld, openDaemonWorld } from "./daemon-world.ts"
import { openFolder } from "./host-world.ts"

describe("calls that cost something", () => {
  const outside = openFolder()
  let world: DaemonWorld
  let agent: Ask
  let bob: Ask
  let person: Ask
  beforeAll(async () => {
    world = await openDaemonWorld(
      `manifests: [${writeCostly(outside)}]
budgets:
  - { per: month, each: [user], tool: metered.*, units: 4000 }
  - { per: month, tool: cheap.ask, each: [], calls: 3 }
data_classes:
  - { class: customers, users: [alice], roles: [approver] }
context:
  - { user: alice, values: { team: blue } }
  - { user: alice, workspace: ${join(outside, "red")}, values: { team: red } }
`,
    )
    mkdirSync(join(outside, "red"))
    mkdirSync(join(outside, "other"))
    agent = await world.as({ workspaces: "any" })
    bob = await world.as({ user: "bob", workspaces: "any" })
    person = await world.as({ agent: false, roles: ["caller", "approver"] })
  })
  afterAll(async () => {
    await world[Symbol.asyncDispose]()
    removeFolder(outside)
  })
  const call = (ask: Ask, tool: string, more: object = {}, headers = {}): Promise<Answer> =>
    ask("POST", "/v1/calls", { tool, input: {}, workspace: world.workspace, ...more }, headers)

  it("and are expensive are not run before somebody who may approve has heard what they cost", async () => {
    const refused = await call(agent, "dear.ask", {}, { "caisson-approved": "yes" })
    expect(refused).toMatchObject({
      status: 428,
      body: {
        error: {
          code: "approval_required",
          message: expect.stringContaining("2.5 EUR a call"),
          details: { cost: { class: "expensive", units: 250_000, currency: "EUR" }, approver: "another person" },
        },
      },
    })
    expect((await agent("POST", "/v1/why", { tool: "dear.ask" })).body).toMatchObject({
      error: { code: "approval_required", details: { cost: { units: 250_000 } } },
    })
    const approved = await call(person, "dear.ask", {}, { "caisson-approved": "yes" })
    expect(approved).toMatchObject({ status: 200, body: { value: "dear\n" } })
    expect(readReceipts(world.data, { call: String(approved.body["call"]) })[0]?.metadata).toMatchObject({
      cost: { class: "expensive", units: 250_000, currency: "EUR" },
    })
    expect((await person("POST", "/v1/grants", { tool: "dear.ask", workspace: world.workspace })).status).toBe(201)
    expect(await call(agent, "dear.ask")).toMatchObject({ status: 200 })
    expect(await call(agent, "dear.ask")).toMatchObject({ status: 428 })
  })

  it("are debited to each user's own account, and refused where it has no room, however many come at once", async () => {
    const answers = await Promise.all(Array.from({ length: 6 }, () => call(agent, "metered.ask")))
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(2)
    const refused = answers.filter(({ status }) => status !== 200)
    for (const { status, body } of refused)
      expect({ status, body }).toMatchObject({
        status: 429,
        body: { error: { code: "budget_exceeded", details: { per: "month", cost: 1500, used: { units: 3000 } } } },
      })
    expect(await call(bob, "metered.ask")).toMatchObject({ status: 200 })
  })

  it("are counted for all together where the operator says so", async () => {
    for (const ask of [agent, bob, agent]) expect(await call(ask, "cheap.ask")).toMatchObject({ status: 200 })
    expect(await call(bob, "cheap.ask")).toMatchObject({ status: 429, body: { error: { code: "budget_exceeded" } } })
  })

  it("are there for those alone whose data they work on, and a class that is nobody's is there for nobody", async () => {
    expect(await call(person, "secretive.ask")).toMatchObject({ status: 200, body: { value: "secretive\n" } })
    const other = await world.as({ user: "bob", agent: false, roles: ["caller", "approver"] })
    const elsewhere = await world.as({ tenant: "acme", agent: false, roles: ["caller", "approver"] })
    expect(await call(elsewhere, "secretive.ask")).toMatchObject({ status: 200 })
    for (const ask of [agent, other]) {
      expect(await call(ask, "secretive.ask")).toMatchObject({ status: 404, body: { error: { code: "not_found" } } })
      expect(JSON.stringify((await ask("GET", "/v1/tools")).body)).not.toContain("secretive.ask")
    }
    expect(await call(person, "unheard.ask")).toMatchObject({ status: 404 })
    expect(
      await world.local("POST", "/v1/calls", { tool: "unheard.ask", input: {}, workspace: world.workspace }),
    ).toMatchObject({ status: 403, body: { error: { details: { reason: "data_classification" } } } })
  })

  it("have of their context what the operator bound, by user and folder, and no caller says it", async () => {
    expect(await call(agent, "team.ask", { context: { note: "n" } })).toMatchObject({ body: { value: "blue n\n" } })
    expect(await call(agent, "team.ask", { context: { note: "n" }, workspace: join(outside, "red") })).toMatchObject({
      body: { value: "red n\n" },
    })
    const refused = { status: 403, body: { error: { code: "unauthorised", details: { field: "team" } } } }
    expect(await call(agent, "team.ask", { context: { team: "red", note: "n" } })).toMatchObject(refused)
    expect(await call(bob, "team.ask", { context: { note: "n" } })).toMatchObject(refused)
    expect(await call(bob, "team.ask", { context: { team: "blue", note: "n" } })).toMatchObject(refused)
    expect(await call(bob, "cheap.ask", { context: { team: "blue" } })).toMatchObject(refused)
  })
})

describe("rules that want several people, or allow so many calls", () => {
  it("are met by so many people's grants, none of them the caller's own, and count calls until they ask", async () => {
    const outside = openFolder()
    const at = writeCostly(outside)
    const rule = (slug: string, match: string, rest: string): void => {
      mkdirSync(join(at, slug))
      writeFileSync(
        join(at, slug, "POLICY.md"),
        `---\nschema: agentgovernance/v1\ndoctype: policy\nslug: ${slug}\nversion: 1.0.0\nmatch: { action: ${match} }\n${rest}\n---\n`,
      )
    }
    rule("two-people", "metered.ask", "decision: require-approval\nquorum: 2\nsigners: [{ role: approver }]")
    rule("three-a-day", "cheap.ask", "decision: allow\nbudget: { max_per_day: 3 }")
    try {
      await using world = await openDaemonWorld(`manifests: [${at}]\n`)
      const agent = await world.as()
      const people = await Promise.all(
        ["alice", "bea", "carl", "dora"].map((user) => world.as({ user, agent: false, roles: ["caller", "approver"] })),
      )
      const call = (ask: Ask, tool: string, headers = {}) =>
        ask("POST", "/v1/calls", { tool, input: {}, workspace: world.workspace }, headers)
      const give = (ask: Ask) =>
        ask("POST", "/v1/grants", { tool: "metered.ask", workspace: world.workspace, user: "alice", uses: 2 })
      const asks = { status: 428, body: { error: { code: "approval_required" } } }
      const [alice, bea, carl] = people as [Ask, Ask, Ask]
      expect(await call(alice, "metered.ask", { "caisson-approved": "yes" })).toMatchObject(asks)
      for (const ask of [alice, bea]) {
        expect(await give(ask)).toMatchObject({ status: 201 })
        expect(await call(agent, "metered.ask")).toMatchObject(asks)
      }
      expect(await give(carl)).toMatchObject({ status: 201 })
      const made = await call(agent, "metered.ask")
      expect(made).toMatchObject({ status: 200 })
      const [receipt] = readReceipts(world.data, { call: String(made.body["call"]) })
      const { grant } = (receipt?.metadata?.["approval"] ?? {}) as { grant: { by: string; beside: { by: string }[] } }
      expect([grant.by, ...grant.beside.map(({ by }) => by)].filter((by) => by !== "alice").sort()).toEqual([
        "bea",
        "carl",
      ])
      for (let n = 0; n < 3; n += 1) expect(await call(agent, "cheap.ask")).toMatchObject({ status: 200 })
      expect(await call(agent, "cheap.ask")).toMatchObject(asks)
      // Another host on the same folder goes on counting.
      await world.daemon.close()
      await using host = await createHost({ data: world.data, config: join(world.folder, "caisson.yaml") })
      expect(await host.call({ tool: "cheap.ask", input: {}, workspace: world.workspace })).toMatchObject({
        error: { code: "approval_required" },
      })
    } finally {
      removeFolder(outside)
    }
  })
})
