/** Real packages of npm and pip, unmodified, from a registry of this machine, as drivers of kind sdk. */
import { readdirSync, readFileSync, statSync } from "node:fs"
import { join, relative } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { type PackageRegistry, startPackageRegistry } from "../support/servers/package-registry.ts"
import { readReceipts } from "../../src/host/index.ts"
import { openWorld, type World } from "./host-world.ts"

const root = join(import.meta.dirname, "../..")
const manifests = [join(root, "fixtures/sdk-packages"), join(root, "fixtures/sdk-runner")]
/** pip brings these along, as they are published. */
const vendored = "/usr/lib/python3/dist-packages/pip/_vendor"

const filesIn = (folder: string, kind: RegExp): Record<string, Buffer> =>
  Object.fromEntries(
    readdirSync(folder, { recursive: true })
      .map((name) => join(folder, String(name)))
      .filter((path) => kind.test(path) && statSync(path).isFile())
      .map((path) => [relative(folder, path), readFileSync(path)]),
  )

const publish = async (registry: PackageRegistry): Promise<void> => {
  for (const name of ["yaml", "semver", "lodash"]) {
    const folder = join(root, "node_modules", name)
    const manifest = JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as { version: string }
    const files = Object.entries(filesIn(folder, /\.(?:js|mjs|cjs|json)$/)).filter(([path]) => path !== "package.json")
    await registry.publish({
      name,
      version: manifest.version,
      manifest,
      files: Object.fromEntries(files.map(([path, bytes]) => [path, { bytes }])),
    })
  }
  for (const [name, version] of [
    ["tomli", "2.0.1"],
    ["idna", "3.3"],
  ] as const) {
    const files = Object.entries(filesIn(join(vendored, name), /\.py$/))
    const texts = files.map(([path, bytes]) => [`${name}/${path}`, bytes.toString("utf8")])
    registry.publishWheels({ name, version, files: Object.fromEntries(texts) as Record<string, string> })
  }
}

describe("packages of npm and pip as drivers", () => {
  let registry: PackageRegistry
  let world: World
  beforeAll(async () => {
    registry = await startPackageRegistry()
    await publish(registry)
    world = await openWorld(registry.config, { manifests })
  })
  afterAll(async () => {
    await world[Symbol.asyncDispose]()
    await registry[Symbol.asyncDispose]()
  })
  const call = (driver: string, input: object) => world.call("sdk.text", input, { driver })
  const installed = async (driver: string): Promise<void> => {
    expect(await world.host.install(driver)).toMatchObject({ ok: true })
  }

  it.each([
    ["sdk-yaml", { text: "a: [1, 2]" }, { a: [1, 2] }],
    ["sdk-semver", { text: "1.2.3", more: "^1.0.0" }, true],
    ["sdk-lodash", { text: "fred, barney" }, "fred"],
    ["sdk-tomli", { text: "a = 1" }, { a: 1 }],
    ["sdk-idna", { text: "Bücher.example" }, Buffer.from("xn--bcher-kva.example").toString("base64")],
  ])("%s is not there, is installed when asked to, and then called", async (driver, input, expected) => {
    expect(await call(driver, input)).toMatchObject({
      ok: false,
      error: { message: expect.stringContaining("not installed") as string },
    })
    await installed(driver)
    const envelope = await call(driver, input)
    expect(envelope.ok ? envelope.value : envelope.error).toEqual(expected)
  })

  it("an exception of the package by its name is a login that is gone, where the driver says so", async () => {
    await installed("sdk-tomli")
    expect(await call("sdk-tomli", { text: "= 1" })).toMatchObject({
      ok: false,
      error: { code: "auth_required", details: { exception: "TOMLDecodeError" } },
    })
  })
  it("a function that the package does not have makes the driver unavailable, by name", async () => {
    await installed("sdk-yaml")
    const answer = await world.host.install("sdk-gone")
    expect(JSON.stringify(answer)).toContain("nowhere")
    expect(JSON.stringify(await call("sdk-gone", { text: "x" }))).toContain("function_ref_unresolvable")
  })
  it("a package manager that this host does not know is refused by name", async () => {
    const said = JSON.stringify(await call("sdk-crate", { text: "x" }))
    expect(said).toContain("rust-crate")
  })

  it("a runner by its name brings packages, programs and limits, and no other program", async () => {
    const input = { text: "a: 1" }
    const run = () => world.call("sdk.runner", input, { driver: "sdk-needy" })
    await installed("sdk-needy")
    const envelope = await run()
    expect(envelope.ok ? envelope.value : envelope.error).toEqual({ read: { a: 1 }, started: 0, other: null })
    const [receipt] = readReceipts(world.data, { call: envelope.call })
    expect(JSON.stringify(receipt)).toContain('"downgraded":true')
    const said = await world.host.why({
      tool: "sdk.runner",
      input,
      workspace: world.workspace,
      driver: "sdk-needy",
    })
    expect(JSON.stringify(said)).toContain(String(300 * 1024 * 1024))
  })
  it.each([
    ["sdk-absent", "./RUNNER.md"],
    ["sdk-imaged", "python:3"],
  ])("a runner that cannot be had is refused by name: %s", async (driver, name) => {
    expect(JSON.stringify(await world.call("sdk.runner", { text: "" }, { driver }))).toContain(name)
  })
})
