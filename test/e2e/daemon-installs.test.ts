/** A driver's packages installed over the API, from a registry made for the test. */
import { join } from "node:path"
import { expect, it } from "vitest"
import { startPackageRegistry } from "../support/servers/package-registry.ts"
import { openDaemonWorld } from "./daemon-world.ts"
import { publishGreeters } from "./install-greeters.ts"

const manifests = [join(import.meta.dirname, "../../fixtures/installed")]

it("an operator installs a driver while going on, and it is called then; nobody else begins or looks at an install", async () => {
  await using registry = await startPackageRegistry()
  await publishGreeters(registry)
  await using world = await openDaemonWorld(registry.config, { manifests })
  const alice = await world.as()
  const operator = await world.as({ user: "olga", agent: false, roles: ["caller", "operator"] })
  const other = await world.as({ user: "otto", agent: false, roles: ["caller", "operator"] })
  const greet = () =>
    alice("POST", "/v1/calls", { tool: "fixture.greet", input: { name: "Ada" }, workspace: world.workspace })
  expect((await greet()).body).toMatchObject({ error: { code: "tool_unavailable" } })
  expect((await alice("POST", "/v1/installs", { driver: "greet" })).status).toBe(403)
  expect(registry.asked).toEqual([])
  const begun = await operator("POST", "/v1/installs", { driver: "greet" })
  expect(begun).toMatchObject({ status: 202, body: { state: "running", driver: "greet" } })
  const at = begun.headers.get("location") ?? ""
  for (const who of [alice, other]) {
    expect((await who("GET", at)).status).toBe(404)
    expect((await who("DELETE", at)).status).toBe(404)
  }
  // An install's name opens no login.
  expect((await operator("GET", at.replace("installs", "logins"))).status).toBe(404)
  await expect
    .poll(async () => (await operator("GET", at)).body, { timeout: 120_000 })
    .toMatchObject({ state: "ended", installed: true, install: { driver: "greet@1", version: "2.1.0" } })
  expect((await greet()).body).toMatchObject({ ok: true, value: "hello Ada\n" })
  expect((await operator("DELETE", at)).status).toBe(409)
})

it("an install that fails says why, and one that is cancelled ends", async () => {
  await using registry = await startPackageRegistry()
  await publishGreeters(registry, "1.0.0")
  await using world = await openDaemonWorld(registry.config, { manifests })
  const operator = await world.as({ user: "olga", agent: false, roles: ["caller", "operator"] })
  const end = async (driver: string, then: (at: string) => Promise<unknown> = async () => undefined) => {
    const at = (await operator("POST", "/v1/installs", { driver })).headers.get("location") ?? ""
    await then(at)
    await expect
      .poll(async () => (await operator("GET", at)).body, { timeout: 120_000 })
      .toMatchObject({ state: "ended" })
    return (await operator("GET", at)).body
  }
  expect(await end("no-such")).toMatchObject({ installed: false, error: { code: "not_found", status: 404 } })
  expect(await end("greet")).toMatchObject({
    installed: false,
    error: { code: expect.stringMatching(/install_failed|version_mismatch/) },
  })
  const cancelled = await end("greetpy", async (at) => expect((await operator("DELETE", at)).status).toBe(202))
  expect(cancelled).toMatchObject({ installed: false })
})
