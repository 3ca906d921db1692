/** Effects that are held where a rule wants several people's yes: so many different people, none of whom made the call. */
import { existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterEach, beforeEach, expect, it } from "vitest"
import { readReceipts, verifyChain } from "../../src/host/index.ts"
import { removeFolder } from "../support/remove-folder.ts"
import { type Answer, type Ask, type DaemonWorld, openDaemonWorld } from "./daemon-world.ts"
import { openFolder } from "./host-world.ts"

let outside: string
beforeEach(() => {
  outside = openFolder()
})
afterEach(() => removeFolder(outside))

const rule = (decision: string): void => {
  mkdirSync(join(outside, "two"), { recursive: true })
  writeFileSync(
    join(outside, "two", "POLICY.md"),
    `---\nschema: agentgovernance/v1\ndoctype: policy\nslug: two-people\nversion: 1.0.0\nmatch: { action: fixture.act }\n${decision}\nquorum: 2\nsigners: [{ role: approver }]\n---\n`,
  )
}
const people = async (world: DaemonWorld): Promise<[Ask, Ask, Ask]> =>
  (await Promise.all(
    ["alice", "bea", "carl"].map((user) => world.as({ user, agent: false, roles: ["caller", "approver"] })),
  )) as [Ask, Ask, Ask]
const decide = (ask: Ask, id: string, decision: "approve" | "deny", more: object = {}): Promise<Answer> =>
  ask("POST", `/v1/approvals/${id}`, { decision, ...more })
const written = ({ workspace }: DaemonWorld): boolean => existsSync(join(workspace, "notes/new.txt"))
const waits = {
  status: 428,
  body: {
    ok: false,
    error: { code: "approval_required", details: { approved: false } },
    effects: [{ committed: false }],
  },
}

/** A call that was held, and whose tool a rule wants two people for by now. */
const heldCall = async (world: DaemonWorld): Promise<string> => {
  const agent = await world.as()
  const call = await agent("POST", "/v1/calls", {
    tool: "fixture.act",
    input: { verb: "write", args: ["notes/new.txt", "x"] },
    workspace: world.workspace,
  })
  expect(call).toMatchObject({ status: 428, body: { effects: [{ committed: false }] } })
  rule("decision: require-approval")
  expect((await world.local("POST", "/v1/reload")).status).toBe(200)
  return String(call.body["call"])
}
const world = () => openDaemonWorld(`manifests: [${outside}]\n`)

it("are committed by the second of two people, and by neither alone, nor by who made the call, nor by one of them twice", async () => {
  await using caisson = await world()
  const id = await heldCall(caisson)
  const [alice, bea, carl] = await people(caisson)
  expect(await decide(alice, id, "approve"), "whose call it is").toMatchObject({ status: 403 })
  expect(await decide(bea, id, "approve", { reason: "read it" })).toMatchObject(waits)
  expect(await decide(bea, id, "approve"), "nobody is two people").toMatchObject({ status: 409 })
  expect(await decide(alice, id, "approve")).toMatchObject({ status: 403 })
  expect(written(caisson)).toBe(false)
  expect((await carl("GET", "/v1/approvals")).body["approvals"]).toEqual([expect.objectContaining({ id })])
  expect(await decide(carl, id, "approve")).toMatchObject({
    status: 200,
    body: { ok: true, effects: [{ committed: true }] },
  })
  expect(written(caisson)).toBe(true)
  const decided = readReceipts(caisson.data, { call: id }).filter(({ action }) => action === "approval.decided")
  expect(decided.map(({ actor }) => actor.id)).toEqual(["bea", "bea", "carl"])
  expect(decided[0]?.metadata).toMatchObject({
    decision: { answer: "approve", final: false, waits: true, reason: "read it" },
    effects_committed: false,
  })
  expect(decided[2]?.metadata).toMatchObject({ decision: { final: true }, effects_committed: true })
  const { yeses } = (decided[2]?.metadata?.["decision"] ?? {}) as { yeses: { by: string }[] }
  expect(yeses.map(({ by }) => by).sort()).toEqual(["bea", "carl"])
  expect(readdirSync(join(caisson.data, "held"))).toEqual([])
  expect(await verifyChain(caisson.data)).toMatchObject({ ok: true })
})

it("are gone with the first no, whoever said yes before", async () => {
  await using caisson = await world()
  const id = await heldCall(caisson)
  const [, bea, carl] = await people(caisson)
  expect(await decide(bea, id, "approve")).toMatchObject(waits)
  expect(await decide(carl, id, "deny", { reason: "not on a Friday" })).toMatchObject({
    body: { ok: false, error: { code: "approval_denied" } },
  })
  expect(await decide(carl, id, "approve")).toMatchObject({ status: 409 })
  expect(written(caisson)).toBe(false)
  expect(readdirSync(join(caisson.data, "held"))).toEqual([])
  const { grants } = (await bea("GET", "/v1/grants")).body as { grants: { revoked?: unknown }[] }
  expect(grants.filter(({ revoked }) => revoked === undefined)).toEqual([])
})

it("are held on where a yes was taken back, and committed once where two people answer at the same moment", async () => {
  await using caisson = await world()
  const id = await heldCall(caisson)
  const [, bea, carl] = await people(caisson)
  expect(await decide(bea, id, "approve")).toMatchObject(waits)
  const [grant] = (await bea("GET", "/v1/grants")).body["grants"] as { id: string }[]
  expect((await bea("DELETE", `/v1/grants/${grant?.id}`)).status).toBe(204)
  expect(await decide(carl, id, "approve"), "the other's is gone").toMatchObject(waits)
  expect(written(caisson)).toBe(false)
  // Of answers at the same moment one may be told that another is under way; who is not heard asks again.
  await expect
    .poll(
      async () => {
        await Promise.all([decide(bea, id, "approve"), decide(carl, id, "approve")])
        return written(caisson)
      },
      { timeout: 30_000 },
    )
    .toBe(true)
  const committed = readReceipts(caisson.data, { call: id }).filter(
    ({ action, metadata }) => action === "approval.decided" && metadata?.["effects_committed"] === true,
  )
  expect(committed).toHaveLength(1)
})
