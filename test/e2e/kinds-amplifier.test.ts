import { chmodSync, cpSync, existsSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { buildCatalogue } from "../../src/manifest/read/catalogue.ts"
import { discoverManifests } from "../../src/manifest/read/discover.ts"
import { caisson, scratch } from "../cli/run-caisson.ts"
import { amplifierSuite, hookSuite } from "./amplifier-cases.ts"
import { openWorld } from "./host-world.ts"

describe("tools of Amplifier's modules, with the namespace backend", () => amplifierSuite("namespace", () => ""))
describe("hooks around them, with the namespace backend", () => hookSuite("namespace", () => ""))

it("an `amplifier_core` of the module's own is used before ours; a tool may be returned, and hooks of the module's own see its calls", async () => {
  const module = join(import.meta.dirname, "../../fixtures/amplifier-own/which.py")
  await using world = await openWorld(`amplifier: [{ module: ${module}, tools: { which_core: { mutates: [] } } }]\n`)
  expect(await world.call("which-core", { word: "yes" })).toMatchObject({
    ok: true,
    value: { output: { core: "of its own", word: "yes" } },
  })
  expect(await world.call("which-core", { word: "no" })).toMatchObject({
    ok: false,
    error: { code: "policy_violation", details: { type: "HookDenied", message: "not that word" } },
  })
  expect(await world.call("which-core", { word: 1 })).toMatchObject({ ok: false, error: { code: "input_invalid" } })
})

it("modules are mounted in a sandbox to be checked and written down, with the module beside its driver", async () => {
  using room = scratch()
  const env = { CAISSON_DATA: join(room.folder, "data") }
  const modules = join(room.folder, "modules")
  cpSync(join(import.meta.dirname, "../../fixtures/amplifier"), modules, { recursive: true })
  chmodSync(room.folder, 0o755)
  const checked = await caisson(["validate", join(modules, "bash.py"), join(modules, "never.py")], { env })
  expect(checked.code).toBe(2)
  expect(JSON.parse(checked.stdout)).toMatchObject({
    ok: false,
    manifests: 2,
    diagnostics: [
      { rule: "amplifier-module", message: expect.stringContaining("could not be mounted") as string },
      { rule: "amplifier-closed", message: expect.stringContaining("a person approves every call") as string },
    ],
  })
  const to = join(room.folder, "out")
  const imported = await caisson(["import", "amplifier", join(modules, "read_file.py"), "--to", to], { env })
  expect(imported.code).toBe(0)
  expect(existsSync(join(to, "amplifier-read-file/read_file.py"))).toBe(true)
  const { tools, drivers } = buildCatalogue(discoverManifests([to], { mode: "strict" }))
  expect(tools).toMatchObject([{ id: "read-file", approval: { class: "always" }, mutates: [] }])
  expect(drivers).toMatchObject([{ body: { kind: "sdk", sdk: { amplifier: { config: {} } } } }])
  const called = await caisson(
    ["call", "read-file", "-i", '{"path":"read_file.py"}', "--manifests", to, "--workspace", modules, "--yes"],
    { env },
  )
  expect(JSON.parse(called.stdout)).toMatchObject({ ok: true, value: { metadata: { path: "read_file.py" } } })
}, 180_000)
