import { join } from "node:path"
import { expect, it } from "vitest"
import { processCaller, readReceipts } from "../../src/host/index.ts"
import type { PageToOpen } from "../../src/host/person.ts"
import { BrowsingPerson, startOidc } from "../support/servers/oidc.ts"
import { openWorld, type World } from "./host-world.ts"

const fixtures = join(import.meta.dirname, "../../fixtures/logins-oauth")

const configFor = (port: number, flow: string): string => `
egress: { services: { "id.test": "127.0.0.1:${port}" } }
manifests: ["${fixtures}"]
logins:
  desk: { flow: ${flow}, issuer: "http://id.test", client_id: caisson, scopes: [openid, offline_access] }
`
const alice = processCaller("alice")
const loginAs = (world: World, open: (page: PageToOpen) => void) =>
  world.host.login("desk", { caller: alice, workspace: world.workspace, person: { open } })

it.each(["authorization-code", "device-code"])(
  "a login by %s is done by the host, proven, of use to nobody else, and ended by a logout; no token is written down",
  async (flow) => {
    await using server = await startOidc({ name: "id.test" })
    await using world = await openWorld(configFor(server.port, flow), { manifests: [] })
    expect(await world.call("desk.who", {})).toMatchObject({ ok: false, error: { code: "auth_required" } })
    const person = new BrowsingPerson({ name: "id.test", port: server.port })
    const visits: Promise<unknown>[] = []
    const report = await loginAs(world, (page) => visits.push(person.visit(page.direct ?? page.url)))
    await Promise.all(visits)
    expect(report).toMatchObject({ ok: true, state: "authed", account: "alice", method: `oauth ${flow}` })
    expect(await world.call("desk.who", {})).toMatchObject({ ok: true, value: { sub: "alice" } })
    // Another user, and the same one elsewhere, have no part in it.
    const bob = await world.call("desk.who", {}, { caller: processCaller("bob") })
    expect(bob).toMatchObject({ ok: false, error: { code: "auth_required" } })
    const out = await world.host.logout("desk", { caller: alice, workspace: world.workspace })
    expect(out).toMatchObject({ ok: true })
    expect(await world.call("desk.who", {})).toMatchObject({ ok: false, error: { code: "auth_required" } })
    expect(JSON.stringify(readReceipts(world.data))).not.toMatch(/refreshToken|access_token|Bearer/)
  },
)

it("fifty calls at the moment of expiry make one refresh, and all are served", async () => {
  await using server = await startOidc({ name: "id.test", accessTokenSeconds: 1 })
  await using world = await openWorld(configFor(server.port, "authorization-code"), { manifests: [] })
  const person = new BrowsingPerson({ name: "id.test", port: server.port })
  const visits: Promise<unknown>[] = []
  await loginAs(world, (page) => visits.push(person.visit(page.url)))
  await Promise.all(visits)
  server.accessTokenSeconds = 3600
  const before = server.grants.length
  const ended = await Promise.all(Array.from({ length: 50 }, () => world.call("desk.who", {})))
  expect(ended.filter(({ ok }) => !ok)).toEqual([])
  expect(server.grants.slice(before)).toEqual([{ type: "refresh_token", status: 200 }])
})
