/**
 * Two tenants with a user of the same name, on the same folder: nothing of the one is there for the other, by id and by
 * name. Each test is named by what the other tenant tries.
 */
import { existsSync } from "node:fs"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { processCaller, readReceipts, verifyChain } from "../../src/host/index.ts"
import { type Answer, type Ask, type DaemonWorld, openDaemonWorld } from "./daemon-world.ts"
import { type LoginWorld, openLoginWorld } from "./login-world.ts"

const token = "/home/tool/.actor/token"
const gone = { status: 404, body: { code: "not_found" } }
const ofA = { tenant: "acme" }
const ofB = { tenant: "globex" }

describe("a tenant whose user has the same name", () => {
  let world: DaemonWorld
  let a: Ask
  let b: Ask
  let bPerson: Ask
  let aPerson: Ask
  let owner: Ask
  beforeAll(async () => {
    world = await openDaemonWorld()
    const person = { agent: false, roles: ["caller", "approver", "act-for"] }
    a = await world.as(ofA)
    b = await world.as(ofB)
    aPerson = await world.as({ ...ofA, ...person })
    bPerson = await world.as({ ...ofB, ...person })
    owner = await world.as({ ...person, roles: [...person.roles, "operator"] })
  })
  afterAll(() => world[Symbol.asyncDispose]())
  const act = (ask: Ask, verb: string, args: readonly string[], headers = {}): Promise<Answer> =>
    ask("POST", "/v1/calls", { tool: "fixture.act", input: { verb, args }, workspace: world.workspace }, headers)
  const others = (): readonly Ask[] => [b, bPerson, owner]

  it("makes a hundred calls beside a hundred of theirs, under the same keys: each gets its own answers and sees its own calls", async () => {
    const ids = new Map<Ask, string[]>([
      [a, []],
      [b, []],
    ])
    for (let round = 0; round < 10; round += 1)
      await Promise.all(
        Array.from({ length: 20 }, async (_, n) => {
          const [ask, length] = n % 2 === 0 ? ([a, 3] as const) : ([b, 5] as const)
          const made = await act(ask, "print", [String(length)], { "idempotency-key": `key-${round}-${n >> 1}` })
          expect(made).toMatchObject({ status: 200, body: { ok: true } })
          expect(String(made.body["value"])).toHaveLength(length)
          ids.get(ask)?.push(String(made.body["call"]))
        }),
      )
    for (const [ask, own] of ids) {
      expect(new Set(own).size).toBe(100)
      const { calls } = (await ask("GET", "/v1/calls?limit=200")).body as { calls: { call: string }[] }
      expect(calls.map(({ call }) => call).sort()).toEqual(own.toSorted())
    }
    for (const id of ids.get(a) ?? [])
      for (const ask of [b, bPerson]) expect(await ask("GET", `/v1/calls/${id}`)).toMatchObject(gone)
    expect(await verifyChain(world.data)).toMatchObject({ ok: true })
  }, 300_000)

  it("guesses the id of a held call: sees, approves, denies and cancels nothing, and cannot tell it from none", async () => {
    const held = await act(a, "write", ["notes/tenant.txt", "theirs"])
    expect(held).toMatchObject({ status: 428, body: { error: { code: "approval_required" } } })
    const id = String(held.body["call"])
    const none = "01J00000000000000000000000"
    const attempts: readonly (readonly [string, string, unknown?])[] = [
      ["GET", "/v1/calls/:id"],
      ["GET", "/v1/calls/:id/events"],
      ["GET", "/v1/calls/:id/diff"],
      ["DELETE", "/v1/calls/:id"],
      ["GET", "/v1/approvals/:id"],
      ["POST", "/v1/approvals/:id", { decision: "approve" }],
      ["POST", "/v1/approvals/:id", { decision: "deny" }],
    ]
    for (const ask of others()) {
      for (const [method, path, body] of attempts) {
        const guessed = await ask(method, path.replace(":id", id), body)
        expect([method, path, guessed.status]).toEqual([method, path, 404])
        const absent = await ask(method, path.replace(":id", none), body)
        const { receipt: _own, ...told } = guessed.body
        const { receipt: _other, ...expected } = absent.body
        expect(JSON.stringify(told).replaceAll(id, none)).toBe(JSON.stringify(expected))
      }
      expect((await ask("GET", "/v1/approvals")).body).toEqual({ approvals: [] })
    }
    expect(existsSync(join(world.workspace, "notes/tenant.txt"))).toBe(false)
    expect(await aPerson("GET", `/v1/approvals/${id}`)).toMatchObject({ status: 200, body: { intact: true } })
    expect(await aPerson("POST", `/v1/approvals/${id}`, { decision: "approve" })).toMatchObject({ status: 200 })
    expect(existsSync(join(world.workspace, "notes/tenant.txt"))).toBe(true)
    expect(readReceipts(world.data, { call: id })).toContainEqual(
      expect.objectContaining({ metadata: expect.objectContaining({ tenant: "acme", user_id: "alice" }) }),
    )
  }, 60_000)

  it("uses, sees and revokes a grant that is for that name", async () => {
    const body = { tool: "fixture.act", workspace: world.workspace, uses: 3 }
    const made = await aPerson("POST", "/v1/grants", body)
    expect(made).toMatchObject({ status: 201, body: { user: "alice", tenant: "acme" } })
    const id = String(made.body["id"])
    for (const ask of others()) {
      expect((await ask("GET", "/v1/grants")).body).toEqual({ grants: [] })
      expect((await ask("DELETE", `/v1/grants/${id}`)).status).toBe(404)
      expect(await act(ask, "write", ["notes/no-grant.txt", "x"])).toMatchObject({ status: 428 })
    }
    expect(await act(a, "write", ["notes/granted.txt", "x"])).toMatchObject({ status: 200, body: { ok: true } })
  }, 60_000)

  it("runs a tool whose home holds what the other's left there", async () => {
    expect(await act(aPerson, "write", [token, "of acme"], { "caisson-approved": "yes" })).toMatchObject({
      status: 200,
    })
    expect(await act(a, "read", [token])).toMatchObject({ status: 200, body: { value: "of acme" } })
    for (const ask of [b, owner]) expect((await act(ask, "read", [token])).body["value"]).not.toBe("of acme")
  }, 60_000)

  it("lists, replaces and removes a secret of that name", async () => {
    const set = (ask: Ask, value: string) => ask("POST", "/v1/secrets", { slug: "some-token", value })
    expect((await set(aPerson, "one")).status).toBe(204)
    expect((await b("GET", "/v1/secrets")).body).toEqual({ secrets: [] })
    expect((await bPerson("DELETE", "/v1/secrets/some-token")).body).toEqual({ removed: false })
    expect((await bPerson("DELETE", "/v1/secrets/some-token?user=acme%2Falice")).status).toBe(403)
    expect(
      (await bPerson("POST", "/v1/secrets", { slug: "some-token", value: "two", user: "acme/alice" })).status,
    ).toBe(403)
    expect((await a("GET", "/v1/secrets")).body).toMatchObject({ secrets: [{ slug: "some-token" }] })
  })

  it("acts for the user of that name, or makes itself an operator: it stays in its own tenant", async () => {
    const made = (await a("GET", "/v1/calls")).body as { calls: { call: string }[] }
    const id = made.calls[0]?.call ?? ""
    expect(id).not.toBe("")
    expect(await bPerson("GET", `/v1/calls/${id}`, undefined, { "caisson-user": "alice" })).toMatchObject(gone)
    expect((await bPerson("GET", `/v1/calls/${id}`, undefined, { "caisson-user": "acme/alice" })).status).toBe(400)
    const operator = { ...processCaller("alice"), ...ofB }
    expect(await world.daemon.host.recorded(id, { caller: operator })).toBeUndefined()
    expect(await world.daemon.host.tokens.list({ caller: operator })).toMatchObject({ ok: false })
    expect(await world.daemon.host.secrets.list({ caller: operator })).toEqual({ ok: true, value: [] })
  })
})

describe("a login of the one tenant's", () => {
  let world: LoginWorld
  const alice = processCaller("alice")
  beforeAll(async () => {
    world = await openLoginWorld()
    expect(await world.login()).toMatchObject({ ok: true })
  })
  afterAll(() => world[Symbol.asyncDispose]())

  it("serves no call of the same name's in another, is not told of there, and cannot be ended from there", async () => {
    const caller = { ...alice, ...ofB }
    expect(await world.call("signer.get", {}, { caller })).toMatchObject({
      ok: false,
      error: { code: "auth_required" },
    })
    const listed = await world.host.auth({ caller, workspace: world.workspace })
    expect(listed).toMatchObject({ ok: true, logins: [{ driver: "signer@1", state: "unauthed" }] })
    await world.host.logout("signer", { caller, workspace: world.workspace })
    expect(await world.call("signer.get", {})).toMatchObject({ ok: true, value: "the data" })
  }, 60_000)
})
