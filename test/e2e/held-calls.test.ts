import { type ChildProcess, spawn } from "node:child_process"
import { createHash } from "node:crypto"
import { once } from "node:events"
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { processCaller } from "../../src/host/access/caller.ts"
import { DatabaseSync } from "node:sqlite"
import { storeFile } from "../../src/data-folder/paths.ts"
import { jcs } from "../../src/manifest/values/digest.ts"
import { createHost, readReceipts, verifyChain } from "../../src/host/index.ts"
import type { CallEvent, Envelope, Host } from "../../src/host/index.ts"
import { until } from "../support/sealed.ts"
import { fixtureTools, openWorld, type World } from "./host-world.ts"

const change = { verb: "write", args: ["notes/new.txt", "by the tool"] }
const token = "/home/tool/.actor/token"

const approvalOf = (envelope: Envelope): { readonly id: string; readonly expires: string } => {
  if (envelope.ok || envelope.error.code !== "approval_required") throw new Error(JSON.stringify(envelope))
  return envelope.error.details["approval"] as never
}
const heldIn = (world: World): string[] => {
  const folder = join(world.data, "held")
  return existsSync(folder) ? readdirSync(folder) : []
}
const open = (world: World): Promise<Host> =>
  createHost({ data: world.data, manifests: [fixtureTools], config: join(world.folder, "caisson.yaml") })
const note = (world: World, name = "new.txt"): string | undefined => {
  const file = join(world.workspace, "notes", name)
  return existsSync(file) ? readFileSync(file, "utf8") : undefined
}

describe("a call whose effects nobody was there to approve", () => {
  let world: World
  beforeEach(async () => {
    world = await openWorld()
  })
  afterEach(() => world[Symbol.asyncDispose]())
  const hold = async (input: object = change): Promise<string> =>
    approvalOf(await world.call("fixture.act", input, { approved: false })).id

  it("is held: nothing is committed, and a later host commits exactly that, with two receipts, one naming the other", async () => {
    const envelope = await world.call("fixture.act", change, { approved: false })
    const { id, expires } = approvalOf(envelope)
    expect(id).toBe(envelope.call)
    expect(Date.parse(expires)).toBeGreaterThan(Date.now())
    expect(envelope.effects).toMatchObject([{ kind: "create", path: "notes/new.txt", committed: false }])
    expect(note(world)).toBeUndefined()
    await world.host.close()
    await using later = await open(world)
    expect(await later.approvals()).toMatchObject([
      { id, tool: "fixture.act@1", driver: "actor@1", user: "alice", workspace: world.workspace, changes: 1 },
    ])
    expect(await later.approval(id)).toMatchObject({ intact: true, effects: [{ path: "notes/new.txt" }] })
    const decided = await later.decide(id, "approve")
    expect(decided).toMatchObject({ ok: true, call: id, effects: [{ path: "notes/new.txt", committed: true }] })
    expect(note(world)).toBe("by the tool")
    expect(await later.approvals()).toEqual([])
    expect(heldIn(world)).toEqual([])
    expect(readdirSync(join(world.data, "tx"))).toEqual([])
    const [first, second, ...more] = readReceipts(world.data, { call: id })
    expect(more).toEqual([])
    expect(first).toMatchObject({
      action: "tool.invoked",
      metadata: { verdict: "approval_required", held: { id, expires }, effects_committed: false },
    })
    expect(second).toMatchObject({
      action: "approval.decided",
      metadata: {
        verdict: "ok",
        decision: { number: 1, answer: "approve", final: true, held_receipt: `sha256:${first?.hash}` },
        effects_committed: true,
        effects_total: 1,
      },
    })
    expect(decided.receipt).toBe(`sha256:${second?.hash}`)
    // What was approved, by digest: contract, driver, input and profile as they were, and the layer that came of it.
    const ran = first?.metadata as unknown as {
      tool: { digest: string }
      driver: { digest: string }
      profile: string
      held: { layer: string }
    }
    const input = createHash("sha256")
      .update(jcs([id, change]))
      .digest("hex")
    expect(second?.metadata?.["held"]).toMatchObject({
      layer: ran.held.layer,
      bound: { tool: ran.tool.digest, driver: ran.driver.digest, profile: ran.profile, input: `sha256:${input}` },
    })
    expect(await verifyChain(world.data)).toMatchObject({ ok: true })
  })

  it("that is denied is gone, and the workspace as it was", async () => {
    const id = await hold()
    expect(await world.host.decide(id, "deny")).toMatchObject({ ok: false, error: { code: "approval_denied" } })
    expect(note(world)).toBeUndefined()
    expect(heldIn(world)).toEqual([])
    expect(await world.host.decide(id, "approve")).toMatchObject({
      error: { code: "conflict", details: { verdict: "approval_denied", committed: false } },
    })
    expect(readReceipts(world.data, { call: id }).map(({ action }) => action)).toEqual([
      "tool.invoked",
      "approval.decided",
      "approval.refused",
    ])
  })

  it("is a conflict where its base changed meanwhile, and nothing is committed", async () => {
    const id = await hold({ verb: "append", args: ["notes/old.txt", "more"] })
    writeFileSync(join(world.workspace, "notes/old.txt"), "another\n")
    expect(await world.host.decide(id, "approve")).toMatchObject({
      ok: false,
      error: { code: "conflict", details: { paths: ["notes/old.txt"] } },
      effects: [{ path: "notes/old.txt", committed: false }],
    })
    expect(note(world, "old.txt")).toBe("another\n")
    expect(await world.host.approvals()).toEqual([])
    expect(heldIn(world)).toEqual([])
  })

  it.each([
    ["another folder", (path: string) => void mkdirSync(join(path, "notes"), { recursive: true })],
    ["a link to it", (path: string) => symlinkSync(`${path}-moved`, path)],
  ])("is refused while %s is at its workspace's path, and committed once that is back", async (_what, put) => {
    const id = await hold()
    renameSync(world.workspace, `${world.workspace}-moved`)
    put(world.workspace)
    const refused = await world.host.decide(id, "approve")
    expect(refused).toMatchObject({ ok: false, error: { code: "conflict" } })
    expect(existsSync(join(`${world.workspace}-moved`, "notes/new.txt"))).toBe(false)
    expect(note(world)).toBeUndefined()
    renameSync(world.workspace, `${world.workspace}-other`)
    renameSync(`${world.workspace}-moved`, world.workspace)
    expect(await world.host.decide(id, "approve")).toMatchObject({ ok: true })
    expect(note(world)).toBe("by the tool")
    expect(readReceipts(world.data, { call: id }).map(({ metadata }) => metadata?.["verdict"])).toEqual([
      "approval_required",
      "conflict",
      "ok",
    ])
  })

  it("is refused where its layer was edited meanwhile", async () => {
    const id = await hold()
    writeFileSync(join(world.data, "held", id, "upper/notes/new.txt"), "by another")
    expect(await world.host.decide(id, "approve")).toMatchObject({ ok: false, error: { code: "commit_failed" } })
    expect(note(world)).toBeUndefined()
    expect(await world.host.approvals()).toEqual([])
  })

  it("is neither shown nor approved where what it answered was edited meanwhile", async () => {
    const id = await hold()
    const file = join(world.data, "held", id, "call.json")
    writeFileSync(file, readFileSync(file, "utf8").replace("notes/new.txt", "notes/abc.txt"))
    expect(await world.host.approval(id)).toMatchObject({ intact: false, effects: [] })
    expect(await world.host.decide(id, "approve")).toMatchObject({ ok: false, error: { code: "commit_failed" } })
    expect(note(world)).toBeUndefined()
  })

  it("leaves evidence of an answer that did not count, and none that tells a call that is not told of from none", async () => {
    const id = await hold()
    const eve = { ...processCaller("eve"), actor: "eve", roles: [], workspaces: [] }
    const told = await world.host.decide(id, "approve", { caller: eve })
    expect(told).toMatchObject({ error: { code: "not_found" }, call: id, receipt: expect.stringMatching(/^sha256:/) })
    const none = "01K00000000000000000000000"
    const absent = await world.host.decide(none, "approve", { caller: eve })
    expect(Object.keys(absent)).toEqual(Object.keys(told))
    expect(absent).toMatchObject({ error: { code: "not_found" }, receipt: expect.stringMatching(/^sha256:/) })
    const [refused] = readReceipts(world.data, { call: id }).filter(({ action }) => action === "approval.refused")
    expect(refused).toMatchObject({
      actor: { id: "eve" },
      metadata: { ok: false, verdict: "not_found", decision: { answer: "approve", final: false } },
    })
    expect(readReceipts(world.data, { call: none })).toMatchObject([{ action: "approval.refused" }])
    expect(await verifyChain(world.data)).toMatchObject({ ok: true })
  })

  it.each([
    ["is no JSON", "{"],
    ["is of another shape", '{"tool":1}'],
  ])(
    "is in no other's way where what was remembered of it %s: it is named, cannot be approved, and can be denied",
    async (_how, facts) => {
      const [broken, whole] = [await hold(), await hold({ verb: "write", args: ["notes/b.txt", "b"] })]
      await world.host.close()
      const db = new DatabaseSync(storeFile(world.data))
      db.prepare("UPDATE held SET facts = ? WHERE id = ?").run(facts, broken)
      db.close()
      await using later = await open(world)
      const list = await later.approvals()
      expect(list).toMatchObject([{ id: broken, damaged: true, tool: "unknown@0" }, { id: whole }])
      expect(list[1]).not.toHaveProperty("damaged")
      const eve = { ...processCaller("unknown"), actor: "unknown", roles: ["approver" as const] }
      expect((await later.approvals({ caller: eve })).map(({ id }) => id)).not.toContain(broken)
      expect(await later.approval(broken)).toMatchObject({ damaged: true, intact: false, effects: [] })
      expect(await later.decide(broken, "deny")).toMatchObject({ error: { code: "approval_denied" } })
      expect(await later.decide(whole, "approve")).toMatchObject({ ok: true })
      expect(await later.approvals()).toEqual([])
      expect(heldIn(world)).toEqual([])
    },
  )

  it("has one decider of two hosts that approve at once, and one receipt of that", async () => {
    await using other = await open(world)
    for (let round = 0; round < 4; round += 1) {
      const id = await hold({ verb: "write", args: [`notes/${round}.txt`, "x"] })
      const both = await Promise.all([world.host.decide(id, "approve"), other.decide(id, "approve")])
      expect(both.filter(({ ok }) => ok)).toHaveLength(1)
      const refused = both.find(({ ok }) => !ok)
      expect(refused).toMatchObject({ error: { code: "conflict" } })
      const receipts = readReceipts(world.data, { call: id })
      expect(receipts.map(({ action }) => action).sort()).toEqual([
        "approval.decided",
        "approval.refused",
        "tool.invoked",
      ])
      expect(receipts.find(({ hash }) => refused?.receipt === `sha256:${hash}`)?.action).toBe("approval.refused")
      expect(note(world, `${round}.txt`)).toBe("x")
    }
  })

  it("has its driver's own state kept all the same", async () => {
    const id = await hold({ verb: "puts", args: [token, "renewed", "notes/new.txt", "x"] })
    const read = async (): Promise<unknown> => {
      const envelope = await world.call("fixture.act", { verb: "read", args: [token] })
      return envelope.ok ? envelope.value : envelope.error.message
    }
    expect(await read()).toBe("renewed")
    expect(note(world)).toBeUndefined()
    await world.host.decide(id, "deny")
    expect(await read()).toBe("renewed")
  })

  it("is shown with what it deletes first", async () => {
    const id = await hold({ verb: "delete", args: ["notes/old.txt"] })
    expect(await world.host.approval(id)).toMatchObject({ effects: [{ kind: "delete", path: "notes/old.txt" }] })
  })

  it("is told of to those who may see it, and decided by those who may approve", async () => {
    const id = await hold()
    const bob = { ...processCaller("bob"), actor: "bob", roles: ["caller"] as const }
    const alice = { ...processCaller("alice"), actor: "alice", roles: ["caller"] as const, mayApprove: false }
    const elsewhere = { ...processCaller("eve"), roles: ["approver"] as const, workspaces: ["/nowhere"] }
    for (const caller of [bob, elsewhere]) {
      expect(await world.host.approvals({ caller })).toEqual([])
      expect(await world.host.approval(id, { caller })).toBeUndefined()
      const hidden = await world.host.decide(id, "approve", { caller })
      const absent = await world.host.decide("01ABCDEFGHJKMNPQRSTVWXYZ00", "approve", { caller })
      // Each has a receipt, of the same kind.
      const told = (envelope: Envelope): string => JSON.stringify(envelope).replace(/sha256:[0-9a-f]{64}/, "R")
      expect(told(hidden).replaceAll(id, "X")).toBe(told(absent).replaceAll("01ABCDEFGHJKMNPQRSTVWXYZ00", "X"))
      expect(hidden).toMatchObject({ error: { code: "not_found" } })
    }
    expect(await world.host.approvals({ caller: alice })).toHaveLength(1)
    expect(await world.host.decide(id, "approve", { caller: alice })).toMatchObject({ error: { code: "unauthorised" } })
    const approver = { ...processCaller("carol"), actor: "carol", roles: ["approver"] as const }
    expect(await world.host.decide(id, "approve", { caller: approver })).toMatchObject({ ok: true })
    expect(readReceipts(world.data, { call: id }).at(-1)?.actor).toEqual({ id: "carol", role: "approver" })
  })

  it("is refused while the operator does not have its workspace, and held on", async () => {
    const id = await hold()
    await world.host.close()
    const config = join(world.folder, "narrow.yaml")
    writeFileSync(config, `workspaces: [${join(world.folder, "elsewhere")}]\n`, { mode: 0o600 })
    await using narrow = await createHost({ data: world.data, manifests: [fixtureTools], config })
    expect(await narrow.decide(id, "approve")).toMatchObject({ ok: false, error: { code: "unauthorised" } })
    await using wide = await open(world)
    expect(note(world)).toBeUndefined()
    expect(await wide.decide(id, "approve")).toMatchObject({ ok: true })
  })

  it("is refused where the host itself uses by now what it writes", async () => {
    const id = await hold()
    await world.host.close()
    await using host = await createHost({ data: world.data, manifests: [fixtureTools, join(world.workspace, "notes")] })
    expect(await host.decide(id, "approve")).toMatchObject({ ok: false, error: { code: "policy_violation" } })
    expect(note(world)).toBeUndefined()
    expect(await host.approvals()).toHaveLength(1)
  })

  it("is not approved by who made it in another's name, nor by who it was made for, where their own yes does not count", async () => {
    const mallory = {
      ...processCaller("bob"),
      actor: "mallory",
      roles: ["caller", "act-for", "approver"] as const,
      mayApprove: false,
    }
    const { id } = approvalOf(await world.call("fixture.act", change, { approved: false, caller: mallory }))
    for (const caller of [
      mallory,
      { ...mallory, user: "mallory" },
      { ...mallory, user: "carol" },
      { ...mallory, user: "bob", actor: "bob" },
    ])
      for (const answer of ["approve", "deny"] as const)
        expect(await world.host.decide(id, answer, { caller })).toMatchObject({ error: { code: "unauthorised" } })
    expect(note(world)).toBeUndefined()
    const carol = { ...mallory, user: "carol", actor: "carol" }
    expect(await world.host.decide(id, "approve", { caller: carol })).toMatchObject({ ok: true })
  })

  it("is told of to nobody who claims to be its user and may not act for them", async () => {
    const id = await hold()
    const eve = { ...processCaller("alice"), actor: "eve", roles: ["caller", "approver"] as const }
    expect(await world.host.approvals({ caller: eve })).toEqual([])
    expect(await world.host.approval(id, { caller: eve })).toBeUndefined()
    expect(await world.host.decide(id, "deny", { caller: eve })).toMatchObject({ error: { code: "not_found" } })
    expect(await world.host.tools({ caller: eve })).toEqual([])
    expect(await world.host.drivers({ caller: eve })).toEqual([])
    expect(await world.host.approvals()).toHaveLength(1)
  })

  it("is not committed where its user's grant was taken back meanwhile, whoever says yes", async () => {
    const policies = join(world.folder, "policies")
    mkdirSync(policies, { mode: 0o700 })
    const grant = (principal: string): void =>
      writeFileSync(
        join(policies, "POLICY.md"),
        `---\nschema: policy/v1\nid: "@acme/team"\ndefault: deny\ngrants: [{ id: ours, principal: "user://${principal}", actions: [{ action: fixture.act }] }]\n---\n`,
        { mode: 0o600 },
      )
    const id = await hold()
    writeFileSync(join(world.folder, "caisson.yaml"), "manifests: [./policies]\n", { mode: 0o600 })
    grant("bob")
    {
      await using revoked = await open(world)
      expect(await revoked.decide(id, "approve")).toMatchObject({
        error: { code: "unauthorised", details: { reason: "no-grant" } },
      })
      expect(note(world)).toBeUndefined()
    }
    grant("alice")
    await using granted = await open(world)
    expect(await granted.decide(id, "approve")).toMatchObject({ ok: true })
  })

  it("is not held where the call was cancelled, planned, approved or answered", async () => {
    await world.call("fixture.act", change, { approved: false, plan: true })
    await world.call("fixture.act", change)
    const answered = await world.host.call(
      { tool: "fixture.act", input: { verb: "write", args: ["notes/b.txt", "x"] }, workspace: world.workspace },
      { approve: async () => false },
    )
    expect(answered).toMatchObject({ error: { code: "approval_denied" } })
    expect(heldIn(world)).toEqual([])
    expect(await world.host.approvals()).toEqual([])
  })

  it("tells whoever observes it what happens, in order, whatever the observer does", async () => {
    const events: CallEvent[] = []
    const envelope = await world.host.call(
      { tool: "fixture.act", input: change, workspace: world.workspace },
      {
        onEvent: (event) => {
          events.push(event)
          throw new Error("an observer's own trouble")
        },
      },
    )
    const { id, expires } = approvalOf(envelope)
    expect(events.map(({ type }) => type).filter((type) => type !== "output")).toEqual([
      "admitted",
      "routed",
      "sealed",
      "started",
      "judged",
      "held",
      "settled",
    ])
    const printed = events.flatMap((event) => (event.type === "output" ? [Buffer.from(event.bytes).toString()] : []))
    expect(printed.join("")).toContain("write done")
    expect(events.map(({ seq }) => seq)).toEqual(events.map((_, index) => index))
    expect(new Set(events.map(({ call }) => call))).toEqual(new Set([envelope.call]))
    expect(events.at(-2)).toMatchObject({ id, expires })
    expect(events.at(-1)).toMatchObject({ ok: false, code: "approval_required", commit: "none" })
  })
})

it.each([
  ["the number of held calls", "approvals: { hold_count: 1 }", change],
  ["their size", "approvals: { hold_mb: 1 }", { verb: "many", args: ["notes", "400"] }],
])("a call beyond the bound on %s is not held, and says why", async (_what, config, input) => {
  await using world = await openWorld(config)
  const first = await world.call("fixture.act", change, { approved: false })
  approvalOf(first)
  const second = await world.call("fixture.act", input, { approved: false })
  expect(second).toMatchObject({
    ok: false,
    error: { code: "approval_required", details: { not_held: expect.stringMatching(/hold_count|bytes/) as unknown } },
  })
  expect(heldIn(world)).toEqual([first.call])
  expect(await world.host.approvals()).toHaveLength(1)
})

it("calls whose time is over leave their room to the next, in a host that lives on and is asked for no list", async () => {
  await using world = await openWorld("approvals: { hold_ms: 1, hold_count: 1 }")
  const ids: string[] = []
  for (const name of ["a", "b", "c"]) {
    const input = { verb: "write", args: [`notes/${name}.txt`, "x"] }
    ids.push(approvalOf(await world.call("fixture.act", input, { approved: false })).id)
  }
  expect(heldIn(world)).toEqual([ids[2]])
})

it("nothing is held where the operator says so", async () => {
  await using world = await openWorld("approvals: { hold_ms: 0 }")
  const envelope = await world.call("fixture.act", change, { approved: false })
  expect(envelope).toMatchObject({ error: { code: "approval_required", details: { approval: "on-mutate" } } })
  expect(existsSync(join(world.data, "store.db"))).toBe(false)
})

it("a held call whose time is over is thrown away, with a receipt, and cannot be approved", async () => {
  await using world = await openWorld("approvals: { hold_ms: 1 }")
  const { id } = approvalOf(await world.call("fixture.act", change, { approved: false }))
  expect(await world.host.decide(id, "approve")).toMatchObject({ error: { code: "approval_expired" } })
  expect(await world.host.approvals()).toEqual([])
  expect(heldIn(world)).toEqual([])
  expect(await world.host.decide(id, "approve")).toMatchObject({ error: { code: "conflict" } })
  expect(readReceipts(world.data, { call: id }).map(({ action }) => action)).toEqual([
    "tool.invoked",
    "approval.refused",
    "approval.expired",
    "approval.refused",
  ])
  expect(note(world)).toBeUndefined()
})

it("a held call whose time is over makes room for the next, and goes while the host lives on", async () => {
  await using world = await openWorld("approvals: { hold_ms: 1, hold_count: 1 }")
  const first = approvalOf(await world.call("fixture.act", change, { approved: false }))
  const second = approvalOf(await world.call("fixture.act", change, { approved: false }))
  expect(first.id).not.toBe(second.id)
  await until(() => heldIn(world).length === 0, "both are thrown away")
  expect(readReceipts(world.data).filter(({ action }) => action === "approval.expired")).toHaveLength(2)
})

it("a host that was killed after it held a call leaves it to the next, which commits the same bytes", async () => {
  await using world = await openWorld()
  await world.host.close()
  const child: ChildProcess = spawn(
    process.execPath,
    [join(import.meta.dirname, "host-holder.ts"), world.data, world.workspace],
    { stdio: ["ignore", "pipe", "inherit"] },
  )
  const [said] = (await once(child.stdout as NodeJS.ReadableStream, "data")) as [Buffer]
  child.kill("SIGKILL")
  await once(child, "close")
  const id = said.toString().trim()
  await using host = await open(world)
  expect(await host.approvals()).toMatchObject([{ id }])
  expect(await host.decide(id, "approve")).toMatchObject({ ok: true })
  expect(note(world)).toBe("by the tool")
  expect(heldIn(world)).toEqual([])
})
