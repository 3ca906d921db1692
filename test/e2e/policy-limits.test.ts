/** Conditions and limits of the operator's policies, held by a daemon and by other hosts on its data folder. */
import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { createHost, readReceipts } from "../../src/host/index.ts"
import { removeFolder } from "../support/remove-folder.ts"
import { type Ask, type DaemonWorld, openDaemonWorld } from "./daemon-world.ts"
import { fixtureTools, openFolder } from "./host-world.ts"

let outside: string
beforeEach(() => {
  outside = openFolder()
})
afterEach(() => removeFolder(outside))

const policy = (body: string, id = "team"): void => {
  mkdirSync(join(outside, id), { recursive: true })
  writeFileSync(join(outside, id, "POLICY.md"), `---\nschema: policy/v1\nid: "@acme/${id}"\n${body}\n---\n`)
}
const everything = (conditions = "[]"): string =>
  `default: deny\ngrants: [{ id: ours, principal: "*", actions: [{ action: fixture.act }, { action: fixture.always }, { action: fixture.mail }], conditions: ${conditions} }]\n`
const config = (): string => `manifests: [${outside}]\napprovals: { on_mutate: auto }\n`
const call = (world: DaemonWorld, ask: Ask, verb = "print", tool = "fixture.act", headers = {}) =>
  ask("POST", "/v1/calls", { tool, input: { verb, args: ["notes/a.txt"] }, workspace: world.workspace }, headers)

describe("a grant on a condition", () => {
  it("holds for whoever comes from such an address, and for nobody whose address is another or cannot be told", async () => {
    policy(everything('[{ kind: ip-range, cidr: "127.0.0.0/8" }]'))
    await using world = await openDaemonWorld(config())
    const agent = await world.as()
    expect(await call(world, agent)).toMatchObject({ status: 200 })
    expect(await call(world, agent, "print", "fixture.act", { "x-forwarded-for": "192.0.2.9" })).toMatchObject({
      status: 200,
    })
    const local = await call(world, world.local)
    expect(local).toMatchObject({
      status: 403,
      body: { error: { code: "unauthorised", details: { reason: "condition-failed", policy: "@acme/team" } } },
    })
  })
  it("is not talked into it by what a request says of itself", async () => {
    policy(everything('[{ kind: ip-range, cidr: "192.0.2.0/24" }]'))
    await using world = await openDaemonWorld(config())
    const agent = await world.as()
    for (const headers of [
      { "x-forwarded-for": "192.0.2.9" },
      { forwarded: "for=192.0.2.9" },
      { "x-real-ip": "192.0.2.9" },
    ])
      expect(await call(world, agent, "print", "fixture.act", headers)).toMatchObject({
        status: 404,
        body: { error: { code: "not_found" } },
      })
  })
  it("does not hold where its kind is not known here, and its operator is told at the start", async () => {
    policy(everything("[{ kind: full-moon }]"))
    await using world = await openDaemonWorld(config())
    expect(await call(world, await world.as())).toMatchObject({ status: 404 })
    expect(JSON.stringify(world.daemon.host.diagnostics())).toContain("full-moon")
  })
})

describe("a limit of a policy", () => {
  it("lets so many calls of each user through in its time, whichever host they come to, and says whose word it was", async () => {
    policy(`${everything()}limits: [{ kind: rate-tool-calls, value: 3, per: day, scope: user }]`)
    await using world = await openDaemonWorld(config())
    const [alice, bob] = [await world.as(), await world.as({ user: "bob" })]
    const answers = await Promise.all(Array.from({ length: 8 }, () => call(world, alice)))
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(3)
    const refused = answers.find(({ status }) => status !== 200)
    expect(refused).toMatchObject({
      status: 429,
      body: { error: { code: "rate_limited", details: { reason: "limit-exceeded", policy: "@acme/team" } } },
    })
    expect(readReceipts(world.data, { call: String(refused?.body["call"]) })[0]?.metadata).toMatchObject({
      not_told: { access: { decision: "deny", reason: "limit-exceeded", policy: "@acme/team" } },
    })
    expect(await call(world, bob)).toMatchObject({ status: 200 })
    await using other = await createHost({
      data: world.data,
      config: join(world.folder, "caisson.yaml"),
      manifests: [fixtureTools],
    })
    const caller = {
      user: "alice",
      actor: "alice",
      how: "token",
      workspaces: "any",
      roles: ["caller"],
      mayApprove: false,
    } as const
    expect(
      await other.call(
        { tool: "fixture.act", input: { verb: "print", args: [] }, workspace: world.workspace },
        { caller },
      ),
    ).toMatchObject({ ok: false, error: { code: "rate_limited" } })
  })
  it("is looked at before a person is asked, and counts no call of who may not make it", async () => {
    policy(`${everything()}limits: [{ kind: rate-tool-calls, value: 1, per: day, applies_to: [fixture.always] }]`)
    await using world = await openDaemonWorld(config())
    const agent = await world.as()
    const barred = await world.as({ roles: [] })
    expect(await call(world, barred, "print", "fixture.always")).toMatchObject({ status: 403 })
    expect(await call(world, agent, "print", "fixture.always")).toMatchObject({ status: 428 })
    expect(await call(world, agent, "print", "fixture.always")).toMatchObject({ status: 429 })
    expect(await call(world, agent)).toMatchObject({ status: 200 })
  })
  it("has so many sandboxes at once, over all hosts, and a place again when one is gone", async () => {
    policy(`${everything()}limits: [{ kind: max-concurrent-sandboxes, value: 1 }]`)
    await using world = await openDaemonWorld(config())
    const agent = await world.as()
    const first = await agent(
      "POST",
      "/v1/calls",
      { tool: "fixture.act", input: { verb: "sleep", args: ["notes/s"] }, workspace: world.workspace },
      { prefer: "respond-async" },
    )
    const id = String(first.body["call"])
    // Refused from the moment that it has its place.
    await expect.poll(async () => (await call(world, agent)).status, { timeout: 20_000 }).toBe(429)
    await using other = await createHost({
      data: world.data,
      config: join(world.folder, "caisson.yaml"),
      manifests: [fixtureTools],
    })
    const again = () =>
      other.call({ tool: "fixture.act", input: { verb: "print", args: [] }, workspace: world.workspace })
    expect(await again()).toMatchObject({
      ok: false,
      error: { code: "rate_limited", message: expect.stringContaining("1 sandbox at once") },
    })
    expect((await agent("DELETE", `/v1/calls/${id}`)).status).toBe(202)
    await expect
      .poll(async () => (await agent("GET", `/v1/calls/${id}`)).body["state"], { timeout: 20_000 })
      .toBe("settled")
    expect(await again()).toMatchObject({ ok: true })
  })
  it("that this host cannot hold refuses what it speaks of, and nothing else", async () => {
    policy(`${everything()}limits: [{ kind: max-egress-bytes-per-day, value: 1, applies_to: [fixture.mail] }]`)
    await using world = await openDaemonWorld(config())
    expect(await call(world, world.local, "print", "fixture.mail")).toMatchObject({
      status: 403,
      body: { error: { details: { reason: "limit-exceeded" } } },
    })
    expect(await call(world, world.local)).toMatchObject({ status: 200 })
  })
})

describe("a policy that cannot be taken", () => {
  const broken: readonly (readonly [string, () => void])[] = [
    ["breaks its schema", () => policy("default: deny\ngrants: [{ principal: '*', actions: oops }]")],
    ["is no YAML", () => policy("default: [deny")],
    ["is empty", () => writeAt("team", "")],
    [
      "is claimed by two files",
      () => {
        policy(everything())
        writeAt("again", `---\nschema: policy/v1\nid: "@acme/team"\ndefault: allow\n---\n`)
      },
    ],
    ["is of a schema that is not known", () => writeAt("team", "---\nschema: policy/v9\nid: '@acme/team'\n---\n")],
    [
      "is a broken rule",
      () => writeAt("team", "---\nschema: agentgovernance/v1\ndoctype: policy\nslug: stop\ndecision: deny\n---\n"),
    ],
  ]
  const writeAt = (name: string, text: string): void => {
    mkdirSync(join(outside, name), { recursive: true })
    writeFileSync(join(outside, name, "POLICY.md"), text)
  }
  it.each(broken)("is never as if it were not there: it %s", async (_, write) => {
    write()
    await using world = await openDaemonWorld(config())
    expect(await call(world, world.local)).toMatchObject({
      status: 403,
      body: { error: { code: "policy_violation", details: { reason: "policy-unreadable" } } },
    })
    expect(await call(world, await world.as())).toMatchObject({ status: 404, body: { error: { code: "not_found" } } })
  })
  it("holds nobody back where the operator does not vouch for it", async () => {
    policy("default: [deny")
    await using world = await openDaemonWorld("approvals: { on_mutate: auto }\n", {
      manifests: [fixtureTools, outside],
    })
    expect(await call(world, world.local)).toMatchObject({ status: 200 })
  })
})
