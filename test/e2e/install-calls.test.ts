import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, describe, expect, it } from "vitest"
import { caisson, scratch } from "../cli/run-caisson.ts"
import { acquireEngine } from "../support/docker-engine.ts"
import { describeNeeding } from "../support/needing.ts"
import { startPackageRegistry } from "../support/servers/package-registry.ts"
import { openWorld } from "./host-world.ts"
import { publishGreeters } from "./install-greeters.ts"

const manifests = [join(import.meta.dirname, "../../fixtures/installed")]

const engine = await acquireEngine()
afterAll(async () => {
  if (engine.ok) await engine[Symbol.asyncDispose]()
})

const suite = (backend: "namespace" | "docker"): void => {
  it("a program of an npm package and one of a wheel are installed when asked to, and called", async () => {
    await using registry = await startPackageRegistry()
    await publishGreeters(registry)
    const docker = engine.ok ? `docker: { engine: "unix://${engine.socket}" }\n` : ""
    await using world = await openWorld(`${registry.config}${docker}`, { manifests, backend })
    for (const name of ["greet", "greetpy"]) {
      expect(await world.call(`fixture.${name}`, { name: "Ada" })).toMatchObject({
        ok: false,
        error: { code: "tool_unavailable", hint: expect.stringContaining(`caisson install ${name}`) as string },
      })
      expect(await world.host.install(name)).toMatchObject({ ok: true, driver: `${name}@1`, version: "2.1.0" })
      expect(await world.call(`fixture.${name}`, { name: "Ada" })).toMatchObject({ ok: true, value: "hello Ada\n" })
    }
  })
}

describe("with the namespace backend", () => suite("namespace"))
describeNeeding("with the docker backend", engine.ok ? undefined : engine.reason, () => suite("docker"))

it("where the operator lets calls install, the first call does", async () => {
  await using registry = await startPackageRegistry()
  await publishGreeters(registry)
  const config = registry.config.replace("install: {", "install: { on_demand: true,")
  await using world = await openWorld(config, { manifests })
  const heard: string[] = []
  const envelope = await world.host.call(
    { tool: "fixture.greet", input: { name: "Ada" }, workspace: world.workspace },
    { onEvent: (event) => void (event.type === "installing" && heard.push(event.progress.phase)) },
  )
  expect(envelope).toMatchObject({ ok: true, value: "hello Ada\n" })
  expect(heard).toContain("building")
  const asked = registry.asked.length
  expect(await world.call("fixture.greet", { name: "Bob" })).toMatchObject({ ok: true, value: "hello Bob\n" })
  expect(registry.asked.length).toBe(asked)
})

it("a version outside the driver's range is installed anew once, and told with both versions", async () => {
  await using registry = await startPackageRegistry()
  await publishGreeters(registry, "2.0.5")
  await using world = await openWorld(registry.config, { manifests })
  expect(await world.host.install("greet")).toMatchObject({
    ok: false,
    error: { code: "version_mismatch", message: expect.stringMatching(/2\.0\.5 .*\^2\.1\.0/) as string },
  })
  await publishGreeters(registry, "2.1.3")
  expect(await world.host.install("greet")).toMatchObject({ ok: true, version: "2.1.3" })
})

it("the command line installs a driver, tells what happens, and says what it cannot install", async () => {
  await using registry = await startPackageRegistry()
  await publishGreeters(registry)
  using room = scratch()
  const data = join(room.folder, "data")
  const work = join(room.folder, "work")
  for (const folder of [data, work]) mkdirSync(folder, { mode: 0o700 })
  writeFileSync(join(data, "caisson.yaml"), registry.config, { mode: 0o600 })
  const run = (...args: readonly string[]) =>
    caisson([...args, "--manifests", manifests[0] ?? ""], { env: { CAISSON_DATA: data }, cwd: work })
  const installed = await run("install", "greet")
  expect(installed.code).toBe(0)
  expect(JSON.parse(installed.stdout)).toMatchObject({ ok: true, driver: "greet@1", layers: [{ source: "npm" }] })
  expect(installed.stderr).toContain("building greet@^2")
  const called = await run("call", "fixture.greet", "-i", '{"name":"Ada"}')
  expect(JSON.parse(called.stdout)).toMatchObject({ ok: true, value: "hello Ada\n" })
  expect((await run("install", "nobodys")).code).toBe(2)
  registry.answer("/simple/greetpy/", (_request, response) => void response.writeHead(500).end())
  const failed = await run("install", "greetpy")
  expect(failed.code).toBe(5)
  expect(JSON.parse(failed.stdout)).toMatchObject({ ok: false, error: { code: "install_failed" } })
  expect(JSON.parse((await run("prune")).stdout)).toEqual({ ok: true, removed: [], bytes: 0 })
})
