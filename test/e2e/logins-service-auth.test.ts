/**
 * AIP-50's flow `service-auth`, at a server of our own that follows the public text of auth.md (there is none to install): the
 * assertion is kept, its tokens are in memory, and another process makes its own.
 */
import { cpSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterEach, beforeEach, expect, it } from "vitest"
import { openVault } from "../../src/host/secrets/open-vault.ts"
import { loadConfig } from "../../src/host/config/load.ts"
import { createHost, processCaller } from "../../src/host/index.ts"
import { removeFolder } from "../support/remove-folder.ts"
import { openFolder } from "./host-world.ts"
import { type KindsWorld, openKinds } from "./logins-kinds-world.ts"

let root: string
let world: KindsWorld
beforeEach(async () => {
  root = openFolder()
  const folder = join(root, "manifests")
  cpSync(join(import.meta.dirname, "../../fixtures/logins-kinds"), folder, { recursive: true })
  const file = join(folder, "AUTH.md")
  const text = readFileSync(file, "utf8")
  writeFileSync(
    file,
    text.replace("flow: device-code", "flow: service-auth").replace(/ {2}scope: .*\n/, "  loginHint: alice@id.test\n"),
  )
  world = await openKinds({}, "", folder)
})
afterEach(async () => {
  await world[Symbol.asyncDispose]()
  removeFolder(root)
})

const caller = processCaller("alice")
/** A host on the same data folder, as another process would be. */
const another = () => createHost({ data: world.data, config: join(world.folder, "caisson.yaml") })
const readBy = (host: Awaited<ReturnType<typeof another>>) =>
  host.call(
    { tool: "kinds.read", input: {}, workspace: world.workspace, driver: "kinds-http" },
    { caller, approved: true },
  )
const kept = async (): Promise<readonly string[]> => {
  await using vault = await openVault(world.data, loadConfig(world.data, join(world.folder, "caisson.yaml")))
  const listed = await vault.list()
  const names = listed.ok ? listed.value : []
  const values = await Promise.all(names.map(({ slug, scope }) => vault.get(slug, scope)))
  return values.flatMap((found) => (found.ok && found.value !== undefined ? [found.value.reveal()] : []))
}
const filesBelow = (folder: string): string =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .map((entry) => (entry.isFile() ? readFileSync(join(entry.parentPath, entry.name), "latin1") : ""))
    .join("\n")

it("a person approves it by a code, its assertion alone is kept, and another process makes a token of its own of it", async () => {
  const { desk } = world
  expect(await world.read("kinds-http")).toMatchObject({ ok: false, error: { code: "auth_required" } })
  const report = await world.login("kinds-http")
  expect(report).toMatchObject({ ok: true, state: "authed", method: "oauth service-auth" })
  expect(world.pages).toEqual(["http://id.test/approve ABCD-1234"])
  expect(desk.claims.map((text) => JSON.parse(text) as unknown)).toEqual([
    { type: "service_auth", client_id: "caisson", login_hint: "alice@id.test" },
  ])
  expect(await world.read("kinds-http")).toMatchObject({ ok: true })
  expect(await kept()).toEqual(desk.given.assertions)

  {
    await using other = await another()
    expect(await readBy(other)).toMatchObject({ ok: true })
    expect(await other.login("kinds-http", { caller, workspace: world.workspace, person: {} })).toMatchObject({
      ok: true,
      already: true,
    })
  }
  expect(desk.claims).toHaveLength(1)
  expect(await kept()).toEqual(desk.given.assertions)
  for (const secret of [...desk.given.tokens, ...desk.given.assertions, ...desk.given.claims])
    expect(filesBelow(world.folder)).not.toContain(secret)
})

it("a token that ended is made anew, with the assertion of now, which is kept before", async () => {
  const { desk } = world
  await world.login("kinds-http")
  desk.rotates = true
  for (const count of [2, 3]) {
    desk.expire()
    expect(await world.read("kinds-http")).toMatchObject({ ok: true })
    expect(desk.given.assertions).toHaveLength(count)
    expect(await kept()).toEqual([desk.given.assertions.at(-1)])
  }
  expect(desk.claims).toHaveLength(1)
})

it("an assertion that is not taken any more signs out, and a new approval is asked for", async () => {
  const { desk } = world
  await world.login("kinds-http")
  desk.revoke()
  expect(await world.read("kinds-http")).toMatchObject({
    ok: false,
    error: { code: "auth_required", hint: expect.stringContaining("caisson login") as string },
  })
  expect(await world.login("kinds-http")).toMatchObject({ ok: true })
  expect(await world.read("kinds-http")).toMatchObject({ ok: true })
  expect(desk.claims).toHaveLength(2)
})

it("a process that cannot ask for a token says so, and signs nobody out", async () => {
  const { desk } = world
  await world.login("kinds-http")
  await world.host.close()
  await desk[Symbol.asyncDispose]()
  await using other = await another()
  expect(await readBy(other)).toMatchObject({
    ok: false,
    error: { code: "upstream_error", message: expect.stringContaining("nobody was signed out") as string },
  })
  const listed = await other.auth({ caller, workspace: world.workspace })
  expect(listed.ok && listed.logins.find(({ driver }) => driver === "kinds-http@1")).toMatchObject({ state: "authed" })
})

it("a logout ends it at the service, and nothing of it is left", async () => {
  const { desk } = world
  await world.login("kinds-http")
  expect(await world.host.logout("kinds-http", { caller, workspace: world.workspace })).toMatchObject({ ok: true })
  expect(desk.asked.filter((line) => line.startsWith("/revoke"))).toEqual(["/revoke 200", "/revoke 200"])
  expect(await kept()).toEqual([])
  expect(await world.read("kinds-http")).toMatchObject({ ok: false, error: { code: "auth_required" } })
})

it("another login in another process is the one that calls are made with from then on", async () => {
  const { desk } = world
  await world.login("kinds-http")
  await using other = await another()
  expect(await readBy(other)).toMatchObject({ ok: true })
  const before = [...desk.given.tokens]
  expect(await world.host.logout("kinds-http", { caller, workspace: world.workspace })).toMatchObject({ ok: true })
  expect(await world.login("kinds-http")).toMatchObject({ ok: true })
  desk.shown.length = 0
  expect(await readBy(other)).toMatchObject({ ok: true })
  expect(desk.shown).not.toHaveLength(0)
  for (const token of before) expect(desk.shown, "of the login before").not.toContain(token)
})
