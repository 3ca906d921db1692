/** What a call requires beside its action: the hosts that it reaches and the secrets that it is given, held against policies. */
import { cpSync, mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { createServer, type Server } from "node:http"
import type { AddressInfo } from "node:net"
import { join } from "node:path"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { readReceipts } from "../../src/host/index.ts"
import { removeFolder } from "../support/remove-folder.ts"
import { fixtureTools, openFolder, openWorld, type World } from "./host-world.ts"

let outside: string
let server: Server
let asked: number
beforeEach(async () => {
  outside = openFolder()
  asked = 0
  server = createServer((_, response) => {
    asked += 1
    response.end("served")
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
})
afterEach(async () => {
  await new Promise((resolve) => server.close(resolve))
  removeFolder(outside)
})

const policy = (front: string): void => {
  const at = join(outside, "rules", "gate")
  mkdirSync(at, { recursive: true })
  writeFileSync(join(at, "POLICY.md"), `---\n${front}\n---\n`)
}
const rule = (decision: string, match: string, more = ""): void =>
  policy(
    `schema: agentgovernance/v1\ndoctype: policy\nslug: gate\nversion: 1.0.0\nmatch: ${match}\ndecision: ${decision}\n${more}`,
  )
const grants = (body: string): void => policy(`schema: policy/v1\nid: "@acme/gate"\n${body}`)
const config = (more = ""): string =>
  `manifests: [${join(outside, "rules")}]\negress: { services: { service.test: "127.0.0.1:${(server.address() as AddressInfo).port}" } }\n${more}`
const dial = (world: World) => world.call("fixture.dial", { how: "proxy", host: "service.test", port: 80 })
const print = (world: World) => world.call("fixture.act", { verb: "print", args: ["1"] })

/** The fixture, with a contract that says where it goes. */
const declared = (network: string): string => {
  const tools = join(outside, "tools")
  cpSync(fixtureTools, tools, { recursive: true })
  const contract = join(tools, "dialler/tools/dial/TOOL.md")
  writeFileSync(
    contract,
    readFileSync(contract, "utf8").replace(/^mutates: /m, `requires: { network: ${network} }\n$&`),
  )
  return tools
}

describe("a rule about what a call requires", () => {
  it("denies a host to a driver whose contract says nothing of it, by name, before anything is dialled or run", async () => {
    rule("deny", "{ action: sandbox.network-egress, subject: service.test }")
    await using world = await openWorld(config())
    expect(await dial(world)).toMatchObject({
      ok: false,
      error: { code: "policy_violation", message: expect.stringMatching(/gate.*service\.test/) },
    })
    expect(asked).toBe(0)
    const [receipt] = readReceipts(world.data)
    expect(receipt?.metadata?.["not_told"]).toMatchObject({
      barred: [{ driver: "dialler@1", policy: "gate", reason: expect.stringContaining("service.test") }],
    })
    expect(await print(world), "a tool without a network").toMatchObject({ ok: true })
  })
  it("of another host denies nothing", async () => {
    rule("deny", "{ action: sandbox.network-egress, subject: other.test }")
    await using world = await openWorld(config())
    expect(await dial(world)).toMatchObject({ ok: true })
    expect(asked).toBe(1)
  })
  it("asks a person where the contract names the host, and refuses a driver that goes where its contract does not say", async () => {
    rule("require-approval", '{ action: "sandbox.*" }', "signers: [{ role: owner }]")
    await using silent = await openWorld(config())
    expect(await dial(silent)).toMatchObject({
      ok: false,
      error: { code: "policy_violation", message: expect.stringContaining("which the contract does not name") },
    })
    await using world = await openWorld(config(), { manifests: [declared("[service.test]")] })
    const call = (approved: boolean) =>
      world.call("fixture.dial", { how: "proxy", host: "service.test", port: 80 }, { approved })
    expect(await call(false)).toMatchObject({ ok: false, error: { code: "approval_required" } })
    expect(asked).toBe(0)
    expect(await call(true)).toMatchObject({ ok: true })
    expect(asked).toBe(1)
  })
})

describe("a grant of what a call requires", () => {
  const mine = `{ principal: "*", actions: [{ action: fixture.dial }, { action: fixture.act }] }`
  it("is wanted of everybody once there is one, and holds for its hosts alone", async () => {
    grants(
      `default: deny\ngrants: [${mine}, { principal: "*", actions: [{ action: "sandbox:network-egress", scope: "network:other.test" }] }]`,
    )
    await using world = await openWorld(config())
    expect(await dial(world)).toMatchObject({
      ok: false,
      error: { code: "policy_violation", message: expect.stringContaining("@acme/gate") },
    })
    expect(asked).toBe(0)
    expect(await print(world)).toMatchObject({ ok: true })
    grants(
      `default: deny\ngrants: [${mine}, { principal: "*", actions: [{ action: "sandbox:*", scope: "network:service.test" }] }]`,
    )
    await using other = await openWorld(config())
    expect(await dial(other)).toMatchObject({ ok: true })
  })
  it("is not wanted where no policy speaks of it: who may use the tool may use what it requires", async () => {
    grants(`default: deny\ngrants: [${mine}]`)
    await using world = await openWorld(config())
    expect(await dial(world)).toMatchObject({ ok: true })
  })
  it("that is revoked is none, and the caller hears nothing of a tool whose contract requires it", async () => {
    grants(
      `default: deny\ngrants: [${mine}, { principal: "*", actions: [{ action: "sandbox:network-egress" }], revoked: true }]`,
    )
    await using world = await openWorld(config(), { manifests: [declared("[service.test]")] })
    expect(await dial(world)).toMatchObject({
      ok: false,
      error: { code: "unauthorised", details: { reason: "explicit-revoke", policy: "@acme/gate" } },
    })
    const caller = { user: "ana", actor: "ana", how: "token", workspaces: "any", roles: ["caller"] } as const
    expect(
      await world.host.call(
        { tool: "fixture.dial", input: { how: "proxy", host: "service.test" }, workspace: world.workspace },
        { caller: { ...caller, mayApprove: false } },
      ),
    ).toMatchObject({ ok: false, error: { code: "not_found" } })
  })
})

it("a requirement of network egress that nobody can meet here refuses every call with a network, and no other", async () => {
  grants(`default: allow\nrequirements: [{ kind: signed-by, role: admin, applies_to: ["sandbox:network-egress"] }]`)
  await using world = await openWorld(config())
  expect(await dial(world)).toMatchObject({
    ok: false,
    error: { code: "policy_violation", message: expect.stringContaining("signed-by") },
  })
  expect(asked).toBe(0)
  expect(await print(world)).toMatchObject({ ok: true })
})

it("a secret that a rule denies is asked for of nobody: neither the vault nor a person", async () => {
  const folder = join(outside, "tools")
  cpSync(join(import.meta.dirname, "../../fixtures/secrets"), folder, { recursive: true })
  rule("deny", "{ action: secrets.reveal, subject: sender-token }")
  await using world = await openWorld(config(), { manifests: [folder] })
  expect(await world.call("fixture.send", { host: "api.test" })).toMatchObject({
    ok: false,
    error: { code: "policy_violation", message: expect.stringMatching(/gate.*sender-token/) },
  })
})
