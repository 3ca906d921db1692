/** Calls that may not run before somebody says yes, where nobody was there to ask: put to people, and made again. */
import { cpSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { readReceipts, verifyChain } from "../../src/host/index.ts"
import { removeFolder } from "../support/remove-folder.ts"
import { writeCostly } from "./costs-world.ts"
import { type Answer, type Ask, type DaemonWorld, openDaemonWorld } from "./daemon-world.ts"
import { fixtureTools, openFolder } from "./host-world.ts"

let outside: string
beforeEach(() => {
  outside = openFolder()
})
afterEach(() => removeFolder(outside))

const asks = { status: 428, body: { error: { code: "approval_required" } } }
/** Changes the workspace, and says of itself that it sends mail too: fixture.mail is asked about before it runs. */
const mail = (world: DaemonWorld, ask: Ask, text = "one", more: object = {}, headers = {}): Promise<Answer> =>
  ask(
    "POST",
    "/v1/calls",
    {
      tool: "fixture.mail",
      input: { verb: "write", args: ["notes/sent.txt", text] },
      workspace: world.workspace,
      ...more,
    },
    headers,
  )
const idOf = ({ body }: Answer): string => String((body["approval"] as { id?: string } | undefined)?.id)
const decide = (ask: Ask, id: string, decision: "approve" | "deny", more: object = {}) =>
  ask("POST", `/v1/approvals/${id}`, { decision, ...more })
const sent = ({ workspace }: DaemonWorld): string | undefined => {
  const file = join(workspace, "notes/sent.txt")
  return existsSync(file) ? readFileSync(file, "utf8") : undefined
}
const people = (world: DaemonWorld, ...users: readonly string[]): Promise<readonly Ask[]> =>
  Promise.all(users.map((user) => world.as({ user, agent: false, roles: ["caller", "approver"] })))

describe("a call that is asked about before it runs", () => {
  it("tells where it can be answered, shows what it would be given, and runs once when a person said yes", async () => {
    await using world = await openDaemonWorld("approvals: { on_mutate: auto }\n")
    const agent = await world.as()
    const [bea] = await people(world, "bea")
    if (bea === undefined) throw new Error("bea")
    const first = await mail(world, agent)
    expect(first).toMatchObject(asks)
    const id = idOf(first)
    expect(first.body["approval"]).toEqual({
      id,
      url: `/v1/approvals/${id}`,
      expires: expect.stringMatching(/^\d{4}-/),
    })
    expect(sent(world)).toBeUndefined()
    // Asked again, it is the same question.
    expect(idOf(await mail(world, agent))).toBe(id)
    expect((await bea("GET", "/v1/approvals")).body["approvals"]).toEqual([
      expect.objectContaining({ id, about: "call", tool: "fixture.mail@1", user: "alice", driver: "actor@1" }),
    ])
    expect((await bea("GET", `/v1/approvals/${id}`)).body).toMatchObject({
      about: "call",
      input: { verb: "write", args: ["notes/sent.txt", "one"] },
      workspace: world.workspace,
      mutates: expect.arrayContaining([expect.stringMatching(/^external:/)]),
    })
    expect((await bea("GET", "/v1/questions")).body["questions"]).toEqual([])
    const yes = await decide(bea, id, "approve", { reason: "it is the weekly one" })
    expect(yes).toMatchObject({ status: 200, body: { ok: true, value: { approved: true } } })
    expect(sent(world), "a yes runs nothing").toBeUndefined()
    const made = await mail(world, agent)
    expect(made).toMatchObject({ status: 200, body: { ok: true } })
    expect(sent(world)).toBe("one")
    const [receipt] = readReceipts(world.data, { call: String(made.body["call"]) })
    expect(receipt?.metadata?.["approval"]).toMatchObject({ requested: { by: "bea", request: id }, driver: "actor@1" })
    expect(readReceipts(world.data, { call: id }).find(({ action }) => action === "approval.decided")).toMatchObject({
      actor: { id: "bea" },
      metadata: { decision: { answer: "approve", reason: "it is the weekly one" }, request: { driver: "actor@1" } },
    })
    // Used up: the next one is another question.
    const again = await mail(world, agent)
    expect(again).toMatchObject(asks)
    expect(idOf(again)).not.toBe(id)
    expect(await verifyChain(world.data)).toMatchObject({ ok: true })
  })

  it("is made again under another key: the first one goes on answering that it has to be approved", async () => {
    await using world = await openDaemonWorld("approvals: { on_mutate: auto }\n")
    const agent = await world.as()
    const [bea] = (await people(world, "bea")) as [Ask]
    const keyed = (key: string) => mail(world, agent, "one", {}, { "idempotency-key": key })
    const first = await keyed("monday")
    expect(first).toMatchObject(asks)
    const id = idOf(first)
    expect(await decide(bea, id, "approve")).toMatchObject({ status: 200, body: { value: { approved: true } } })
    const replayed = await keyed("monday")
    expect(replayed.status).toBe(428)
    expect(replayed.body).toEqual(first.body)
    expect(sent(world), "a replay runs nothing, and uses no yes up").toBeUndefined()
    const made = await keyed("tuesday")
    expect(made).toMatchObject({ status: 200, body: { ok: true } })
    expect(sent(world)).toBe("one")
    expect((await keyed("tuesday")).body).toEqual(made.body)
    expect((await keyed("monday")).body, "what it answered stays what it answered").toEqual(first.body)
    expect(await keyed("wednesday"), "the yes was for one call").toMatchObject(asks)
  })

  it("is let through once, however many make it at once and however many said yes", async () => {
    await using world = await openDaemonWorld("approvals: { on_mutate: auto }\n")
    const agent = await world.as()
    const approvers = await people(world, "bea", "carl", "dora")
    const id = idOf(await mail(world, agent))
    const answers = await Promise.all(approvers.map((ask) => decide(ask, id, "approve")))
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1)
    for (const { status } of answers.filter(({ status }) => status !== 200)) expect([404, 409]).toContain(status)
    const made = await Promise.all(Array.from({ length: 8 }, () => mail(world, agent)))
    expect(made.filter(({ status }) => status === 200)).toHaveLength(1)
    for (const answer of made.filter(({ status }) => status !== 200)) expect(answer).toMatchObject(asks)
  })

  it("is answered for that very call: no other input, folder, driver, user, mode or contract", async () => {
    const tools = join(outside, "tools")
    cpSync(fixtureTools, tools, { recursive: true })
    await using world = await openDaemonWorld("approvals: { on_mutate: auto }\n", { manifests: [tools] })
    const other = join(world.folder, "other")
    mkdirSync(join(other, "notes"), { recursive: true })
    const agent = await world.as({ workspaces: [world.workspace, other] })
    const second = await world.as({ user: "bob" })
    const [bea] = await people(world, "bea")
    if (bea === undefined) throw new Error("bea")
    const id = idOf(await mail(world, agent))
    expect(await decide(bea, id, "approve")).toMatchObject({ status: 200 })
    expect(await mail(world, agent, "two")).toMatchObject(asks)
    expect(await mail(world, agent, "one", { workspace: other })).toMatchObject(asks)
    expect(await mail(world, agent, "one", { plan: true })).toMatchObject(asks)
    expect(await mail(world, second)).toMatchObject(asks)
    const contract = join(tools, "actor/tools/mail/TOOL.md")
    writeFileSync(contract, readFileSync(contract, "utf8").replace(/^description: .*$/m, "description: It sends more."))
    expect((await world.local("POST", "/v1/reload")).status).toBe(200)
    expect(await mail(world, agent)).toMatchObject(asks)
    expect(sent(world)).toBeUndefined()
  })

  it("is answered for the driver as it is, the module of its functions included", async () => {
    const tools = join(outside, "tools")
    cpSync(fixtureTools, tools, { recursive: true })
    const module = join(tools, "actor/driver.ts")
    writeFileSync(module, "export default { kind: 'one' }\n")
    await using world = await openDaemonWorld("approvals: { on_mutate: auto }\n", { manifests: [tools] })
    const agent = await world.as()
    const [bea] = (await people(world, "bea")) as [Ask]
    const id = idOf(await mail(world, agent))
    expect(await decide(bea, id, "approve")).toMatchObject({ status: 200, body: { value: { approved: true } } })
    writeFileSync(module, "export default { kind: 'another' }\n")
    expect((await world.local("POST", "/v1/reload")).status).toBe(200)
    const again = await mail(world, agent)
    expect(again).toMatchObject(asks)
    expect(idOf(again)).not.toBe(id)
    // As it was: what was said yes to stands.
    writeFileSync(module, "export default { kind: 'one' }\n")
    expect((await world.local("POST", "/v1/reload")).status).toBe(200)
    expect(await mail(world, agent)).toMatchObject({ status: 200 })
  })

  it("is told to those alone who may answer it, and answered by nobody else: not by its own agent, by its user's name, or from another tenant", async () => {
    await using world = await openDaemonWorld("approvals: { on_mutate: auto }\n")
    const agent = await world.as()
    const id = idOf(await mail(world, agent))
    const plain = await world.as({ user: "bob", agent: false, roles: ["caller"] })
    const elsewhere = await world.as({ tenant: "acme", user: "alice", agent: false, roles: ["caller", "approver"] })
    const otherFolder = await world.as({
      user: "eve",
      agent: false,
      roles: ["caller", "approver"],
      workspaces: [outside],
    })
    for (const ask of [plain, elsewhere, otherFolder]) {
      expect((await ask("GET", "/v1/approvals")).body["approvals"]).toEqual([])
      expect(await ask("GET", `/v1/approvals/${id}`)).toMatchObject({ status: 404 })
      expect(await decide(ask, id, "approve")).toMatchObject({ status: 404 })
    }
    // An agent sees what waits for its user, and can neither allow nor take it away.
    expect(await decide(agent, id, "approve")).toMatchObject({ status: 403 })
    expect(await decide(agent, id, "deny")).toMatchObject({ status: 403 })
    expect(await agent("POST", `/v1/questions/${id}`, { answer: { decision: "approve" } })).toMatchObject({
      status: 404,
    })
    expect(await mail(world, agent)).toMatchObject(asks)
    expect(readReceipts(world.data, { call: id }).filter(({ action }) => action === "approval.refused")).not.toEqual([])
    // The person that the agent works for is another than the agent.
    const [alice] = await people(world, "alice")
    expect(alice && (await decide(alice, id, "approve"))).toMatchObject({ status: 200 })
    expect(await mail(world, agent)).toMatchObject({ status: 200 })
  })

  it("is over with the first no, whose reason it is told once, and the yeses before it count for nothing", async () => {
    const at = join(outside, "rules", "two")
    mkdirSync(at, { recursive: true })
    writeFileSync(
      join(at, "POLICY.md"),
      "---\nschema: agentgovernance/v1\ndoctype: policy\nslug: two-people\nversion: 1.0.0\nmatch: { action: fixture.mail }\ndecision: require-approval\nquorum: 2\nsigners: [{ role: approver }]\n---\n",
    )
    await using world = await openDaemonWorld(`manifests: [${outside}]\napprovals: { on_mutate: auto }\n`)
    const agent = await world.as()
    const [alice, bea, carl] = (await people(world, "alice", "bea", "carl")) as [Ask, Ask, Ask]
    const first = idOf(await mail(world, agent))
    expect(readReceipts(world.data, { call: first })[0]?.metadata).toMatchObject({
      verdict: "approval_required",
      details: { policy: "two-people@1.0.0" },
    })
    expect(await decide(alice, first, "approve"), "its own user's yes is none of two").toMatchObject({ status: 403 })
    expect(await decide(bea, first, "approve")).toMatchObject({ status: 200, body: { value: { approved: false } } })
    expect(await decide(bea, first, "approve"), "nobody is two people").toMatchObject({ status: 409 })
    expect(await mail(world, agent)).toMatchObject(asks)
    expect(await decide(carl, first, "deny", { reason: "not on a Friday" })).toMatchObject({ status: 200 })
    expect(await decide(carl, first, "approve")).toMatchObject({ status: 404 })
    expect(await mail(world, agent)).toMatchObject({
      body: { error: { code: "approval_denied", message: expect.stringContaining("not on a Friday") } },
    })
    const second = idOf(await mail(world, agent))
    expect(second).not.toBe(first)
    expect(await decide(carl, second, "approve")).toMatchObject({ body: { value: { approved: false } } })
    expect(await mail(world, agent)).toMatchObject(asks)
    expect(await decide(bea, second, "approve")).toMatchObject({ body: { value: { approved: true } } })
    const made = await mail(world, agent)
    expect(made).toMatchObject({ status: 200 })
    const [receipt] = readReceipts(world.data, { call: String(made.body["call"]) })
    const { requested } = (receipt?.metadata?.["approval"] ?? {}) as {
      requested: { by: string; beside: { by: string }[] }
    }
    expect([requested.by, ...requested.beside.map(({ by }) => by)].sort()).toEqual(["bea", "carl"])
  })

  it("counts no yes that was taken back before it was used, nor one that would not count any more", async () => {
    await using world = await openDaemonWorld(`manifests: [${outside}]\napprovals: { on_mutate: auto }\n`)
    const agent = await world.as()
    const [bea] = (await people(world, "bea")) as [Ask]
    const first = idOf(await mail(world, agent))
    await decide(bea, first, "approve")
    const [grant] = (await bea("GET", "/v1/grants")).body["grants"] as { id: string }[]
    expect((await bea("DELETE", `/v1/grants/${grant?.id}`)).status).toBe(204)
    expect(await mail(world, agent)).toMatchObject(asks)
    const second = idOf(await mail(world, agent))
    await decide(bea, second, "approve")
    mkdirSync(join(outside, "owner"))
    writeFileSync(
      join(outside, "owner", "POLICY.md"),
      "---\nschema: agentgovernance/v1\ndoctype: policy\nslug: owner\nversion: 1.0.0\nmatch: { action: fixture.mail }\ndecision: require-approval\nsigners: [{ userId: carl }]\n---\n",
    )
    expect((await world.local("POST", "/v1/reload")).status).toBe(200)
    expect(await mail(world, agent)).toMatchObject(asks)
    expect(sent(world)).toBeUndefined()
  })

  it("is no yes to what it costs where that was not shown: an expensive call is shown with its units", async () => {
    await using world = await openDaemonWorld(`manifests: [${writeCostly(outside)}]\n`)
    const agent = await world.as()
    const [bea] = (await people(world, "bea")) as [Ask]
    const call = () => agent("POST", "/v1/calls", { tool: "dear.ask", input: {}, workspace: world.workspace })
    const id = idOf(await call())
    expect((await bea("GET", `/v1/approvals/${id}`)).body).toMatchObject({
      cost: { class: "expensive", units: 250_000, currency: "EUR" },
    })
    await decide(bea, id, "approve")
    expect(await call()).toMatchObject({ status: 200, body: { value: "dear\n" } })
    expect(await call()).toMatchObject(asks)
  })

  it("on no folder is for people of any folder to answer, and for that call alone", async () => {
    await using world = await openDaemonWorld(`manifests: [${writeCostly(outside)}]\n`)
    const agent = await world.as()
    const [bea] = (await people(world, "bea")) as [Ask]
    const call = (more: object = {}) => agent("POST", "/v1/calls", { tool: "dear.ask", input: {}, ...more })
    const id = idOf(await call())
    expect((await bea("GET", `/v1/approvals/${id}`)).body).toMatchObject({ about: "call", workspace: "" })
    expect(await decide(bea, id, "approve")).toMatchObject({ status: 200 })
    const { grants } = (await bea("GET", "/v1/grants")).body as { grants: object[] }
    expect(grants).toEqual([expect.objectContaining({ by: "bea", tool: "dear.ask@1", workspace: "" })])
    expect(await call({ workspace: world.workspace })).toMatchObject(asks)
    expect(await call()).toMatchObject({ status: 200, body: { value: "dear\n" } })
    expect(await call()).toMatchObject(asks)
  })

  it("is asked of nobody where it could not run anyway", async () => {
    await using world = await openDaemonWorld("region: moon\n")
    const agent = await world.as()
    const refused = await mail(world, agent)
    expect(refused.status).not.toBe(428)
    expect(refused.body).not.toHaveProperty("approval")
  })
})
