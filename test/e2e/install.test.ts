import { spawnSync } from "node:child_process"
import { mkdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { afterAll, expect, it } from "vitest"
import { shownFolder } from "../support/shown-folder.ts"
import { testNeeding } from "../support/needing.ts"
import { removeFolder } from "../support/remove-folder.ts"
import { layerOf, npm, openInstallCore, openInstallWorld, pip } from "./install-world.ts"

it("an npm package and what it needs are installed in a sandbox and frozen under the digest of their content", async () => {
  await using world = await openInstallWorld()
  await world.registry.publish(
    { name: "left", version: "1.0.0", files: { "index.js": "module.exports = 1\n" } },
    {
      name: "greet",
      version: "2.1.0",
      manifest: {
        dependencies: { left: "^1.0.0" },
        bin: { greet: "cli.js" },
        scripts: { postinstall: "touch /workspace/ran" },
      },
      files: { "cli.js": "#!/usr/bin/env node\nconsole.log('hello')\n" },
    },
    { name: "greet", version: "3.0.0" },
  )
  expect(await world.installs.find(npm("greet", "^2"))).toMatchObject({ ok: false, code: "tool_unavailable" })
  const layer = layerOf(await world.installs.ensure(npm("greet", "^2"), { tell: (each) => world.told.push(each) }))
  expect(layer.packages).toEqual([
    { name: "greet", version: "2.1.0" },
    { name: "left", version: "1.0.0" },
  ])
  expect(layer.digest).toMatch(/^sha256:[0-9a-f]{64}$/)
  expect(layer.bundles).toEqual({ [layer.folder]: layer.inside })
  expect(layer.bin("greet")?.inside).toBe("/opt/installed/npm/node_modules/.bin/greet")
  expect(layer.entry("left")?.host).toBe(join(layer.folder, "node_modules/left"))
  expect(layer.bin("../../../etc/passwd")).toBeUndefined()
  expect(readFileSync(layer.bin("greet")?.host ?? "", "utf8")).toContain("hello")
  expect(statSync(layer.folder).mode & 0o777).toBe(0o555)
  // The package's script was not run.
  expect(layer.entry("..")).toBeUndefined()
  expect(() => statSync(join(layer.folder, "ran"))).toThrow(/ENOENT/)
  expect(world.told.map(({ phase }) => phase)).toEqual(
    expect.arrayContaining(["building", "fetching", "freezing", "done"]),
  )
  const asked = world.registry.asked.length
  expect(layerOf(await world.installs.ensure(npm("greet", "^2"))).digest).toBe(layer.digest)
  expect(layerOf(await world.installs.find(npm("greet", "^2"))).digest).toBe(layer.digest)
  expect(world.registry.asked.length).toBe(asked)
})

it("a wheel and what it needs are installed, a source archive never is", async () => {
  await using world = await openInstallWorld()
  world.registry.publishWheels(
    { name: "leftpy", version: "1.0", files: { "leftpy.py": "value = 1\n" } },
    {
      name: "greetpy",
      version: "2.1",
      requires: ["leftpy>=1"],
      files: { "greetpy.py": "import leftpy\ndef main():\n    print('hello', leftpy.value)\n" },
      scripts: ["greetpy = greetpy:main"],
    },
    { name: "builtpy", version: "1.0", sdist: true },
  )
  const layer = layerOf(await world.installs.ensure(pip("greetpy", ">=2,<3")))
  expect(layer.packages).toEqual([
    { name: "greetpy", version: "2.1" },
    { name: "leftpy", version: "1.0" },
  ])
  expect(layer.env).toEqual({ PYTHONPATH: "/opt/installed/pip/site" })
  expect(layer.bin("greetpy")?.inside).toBe("/opt/installed/pip/site/bin/greetpy")
  expect(await world.installs.ensure(pip("builtpy"))).toMatchObject({
    ok: false,
    code: "install_failed",
    details: { stderr: expect.stringContaining("No matching distribution") as string },
  })
})

const environment = ((): ReturnType<typeof shownFolder> => {
  const { folder, missing } = shownFolder("venv")
  if (folder === undefined) return { ...(missing === undefined ? {} : { missing }) }
  const made = spawnSync("/usr/bin/python3", ["-m", "venv", folder])
  return made.status === 0 ? { folder } : { folder, missing: "no virtual environments: apt-get install python3-venv" }
})()
afterAll(() => {
  if (environment.folder !== undefined) removeFolder(environment.folder)
})

testNeeding("a virtual environment's Python installs, wherever it lies", environment.missing, async () => {
  await using world = await openInstallWorld(`interpreters: { python: "${environment.folder}/bin/python" }\n`)
  world.registry.publishWheels({ name: "leftpy", version: "1.0", files: { "leftpy.py": "value = 1\n" } })
  expect(layerOf(await world.installs.ensure(pip("leftpy"))).packages).toEqual([{ name: "leftpy", version: "1.0" }])
})

it("a Python that a sandbox cannot show where it lies is refused by name", async () => {
  await using world = await openInstallWorld()
  const python = join(world.folder, "venv/bin/python")
  mkdirSync(dirname(python), { recursive: true })
  symlinkSync("/usr/bin/python3", python)
  writeFileSync(join(world.data, "caisson.yaml"), `${world.registry.config}interpreters: { python: "${python}" }\n`)
  await using core = await openInstallCore(world.data)
  expect(await core.installs.ensure(pip("leftpy"))).toMatchObject({
    ok: false,
    code: "tool_unavailable",
    message: expect.stringContaining("cannot be shown where it lies") as string,
  })
})
