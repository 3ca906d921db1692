/** AUTH.md in use: found endpoints, what counts before it, and whom its tokens are of no use to. */
import { cpSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { processCaller, readReceipts } from "../../src/host/index.ts"
import { openFolder } from "./host-world.ts"
import { removeFolder } from "../support/remove-folder.ts"
import { type KindsWorld, openKinds } from "./logins-kinds-world.ts"

const fixtures = join(import.meta.dirname, "../../fixtures/logins-kinds")

/** A copy of the fixtures, with one of its files changed as a test wants it. */
const copied = (change: (folder: string) => void): string & Disposable => {
  const root = openFolder()
  const folder = join(root, "manifests")
  cpSync(fixtures, folder, { recursive: true })
  change(folder)
  return Object.assign(folder, { [Symbol.dispose]: () => removeFolder(root) })
}
const edit = (file: string, from: string | RegExp, to: string): void => {
  const text = readFileSync(file, "utf8")
  if (text.replace(from, to) === text) throw new Error(`${file} has no ${String(from)}`)
  writeFileSync(file, text.replace(from, to))
}
const discovery = ({ desk }: KindsWorld): readonly string[] =>
  desk.asked.filter((line) => line.startsWith("/.well-known/"))

describe("endpoints of an AUTH.md", () => {
  it("are those that the service's authorization server publishes, and a person is shown the code", async () => {
    await using world = await openKinds()
    const refused = await world.read("kinds-http")
    expect(refused).toMatchObject({
      ok: false,
      error: { code: "auth_required", hint: expect.stringContaining("caisson login") as string },
    })
    expect(await world.login("kinds-http")).toMatchObject({ ok: true, method: "oauth device-code" })
    expect(world.pages).toEqual(["http://id.test/enter WXYZ-1234"])
    expect(discovery(world)).toEqual([
      "/.well-known/oauth-protected-resource 200",
      "/.well-known/oauth-authorization-server 200",
    ])
  })
  it("are those of its `agentproto-host.json` where it publishes nothing else", async () => {
    await using world = await openKinds()
    world.desk.publishes = "host-file"
    expect(await world.login("kinds-http")).toMatchObject({ ok: true })
  })
  it("are its own where it has them, and where there are none at all the login says what to write", async () => {
    using folder = copied((each) =>
      edit(
        join(each, "AUTH.md"),
        "clientId: caisson",
        'clientId: caisson\n  endpoints: { token: "http://id.test/token", deviceAuthorization: "http://id.test/device" }',
      ),
    )
    await using own = await openKinds({}, "", String(folder))
    own.desk.publishes = "nothing"
    expect(await own.login("kinds-http")).toMatchObject({ ok: true })
    expect(discovery(own)).toEqual([])
    await using none = await openKinds()
    none.desk.publishes = "nothing"
    expect(await none.login("kinds-http")).toMatchObject({
      ok: false,
      error: { code: "auth_failed", message: expect.stringContaining("no token endpoint") as string },
    })
  })
})

describe("an AUTH.md", () => {
  it("does not count where the operator wrote the login, not by halves either", async () => {
    const logins = `logins: { kinds-http: { flow: device-code, client_id: other, endpoints: { token: "http://id.test/token", device_authorization: "http://id.test/device" } } }`
    await using world = await openKinds({}, logins)
    expect(await world.login("kinds-http")).toMatchObject({ ok: true })
    expect(discovery(world)).toEqual([])
  })
  it("that names another audience makes another login, also where the operator vouches for it", async () => {
    using folder = copied(() => undefined)
    await using world = await openKinds({}, "", String(folder))
    expect(await world.login("kinds-http")).toMatchObject({ ok: true })
    expect(await world.read("kinds-http")).toMatchObject({ ok: true })
    await world.host.close()
    edit(join(String(folder), "AUTH.md"), "apiBase:", "audience: tunnel\napiBase:")
    const { createHost } = await import("../../src/host/index.ts")
    await using host = await createHost({ data: world.data, manifests: [], config: join(world.folder, "caisson.yaml") })
    const call = { tool: "kinds.read", input: {}, workspace: world.workspace, driver: "kinds-http" }
    expect(await host.call(call, { caller: processCaller("alice") })).toMatchObject({
      ok: false,
      error: { code: "auth_required" },
    })
  })
  it("of a service with two accounts is that of two drivers, each with a login of its own", async () => {
    using folder = copied((each) => {
      cpSync(join(each, "http"), join(each, "work"), { recursive: true })
      edit(join(each, "work/DRIVER.md"), "id: kinds-http", "id: kinds-work")
    })
    await using world = await openKinds({}, "", String(folder))
    expect(await world.login("kinds-http")).toMatchObject({ ok: true })
    expect(await world.read("kinds-work")).toMatchObject({ ok: false, error: { code: "auth_required" } })
    expect(await world.login("kinds-work")).toMatchObject({ ok: true })
    // The service gave newer tokens to the second; those of the first are no longer taken, and are its own.
    expect(await world.read("kinds-work")).toMatchObject({ ok: true, value: { said: "data 2" } })
    const out = await world.host.logout("kinds-work", { caller: processCaller("alice"), workspace: world.workspace })
    expect(out).toMatchObject({ ok: true })
    const report = await world.host.auth({ caller: processCaller("alice"), workspace: world.workspace })
    const states = report.ok ? new Map(report.logins.map(({ driver, state }) => [driver, state])) : new Map()
    expect([states.get("kinds-http@1"), states.get("kinds-work@1")]).toEqual(["authed", "unauthed"])
  })
})

describe("a set-up step of kind oauth", () => {
  const withStep = (slug: string) =>
    copied((each) =>
      edit(
        join(each, "http/DRIVER.md"),
        "base_url:",
        `setup: [{ id: desk, kind: oauth, secret_slug: ${slug} }]\nbase_url:`,
      ),
    )
  it("obtains what it names by the driver's provider, once, and keeps it when the login is ended", async () => {
    using folder = withStep("desk-extra")
    await using world = await openKinds({}, "", String(folder))
    expect(await world.read("kinds-http")).toMatchObject({
      ok: false,
      error: { code: "setup_required", details: { pending: ["desk"] } },
    })
    expect(await world.login("kinds-http")).toMatchObject({ ok: true, state: "authed" })
    // One code for the step, one for the login.
    expect(world.pages).toHaveLength(2)
    await world.host.logout("kinds-http", { caller: processCaller("alice"), workspace: world.workspace })
    expect(await world.login("kinds-http")).toMatchObject({ ok: true })
    expect(world.pages).toHaveLength(3)
    expect(readReceipts(world.data).map(({ action }) => action)).toContain("login.setup_done")
  })
  it("for the login's own tokens is done by the login", async () => {
    using folder = withStep("desk-token")
    await using world = await openKinds({}, "", String(folder))
    expect(await world.login("kinds-http")).toMatchObject({ ok: true, state: "authed" })
    expect(world.pages).toHaveLength(1)
    expect(await world.read("kinds-http")).toMatchObject({ ok: true })
  })
})
