/** Which modules of Amplifier's are looked into, and when again. */
import { cpSync, mkdirSync, mkdtempSync, realpathSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterEach, beforeEach, expect, it } from "vitest"
import { amplify } from "../../../src/host/assemble/amplifier.ts"
import { defaultConfig } from "../../../src/host/config/types.ts"
import type { RunInModule } from "../../../src/host/drivers/runner/run-in-module.ts"
import { removeFolder } from "../../support/remove-folder.ts"

let folder: string
let data: string
let asked: string[]
beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), "caisson-amplify-")))
  data = join(folder, "data")
  asked = []
  cpSync(join(import.meta.dirname, "../../../fixtures/amplifier"), join(folder, "modules"), { recursive: true })
  mkdirSync(data, { recursive: true })
})
afterEach(() => removeFolder(folder))

const run: RunInModule = ({ bundles, request }) => {
  asked.push(JSON.stringify([bundles, request]))
  return Promise.resolve({ ok: true, value: { tools: [{ name: "one", description: "" }], more: 0 }, streamed: false })
}
const broken: RunInModule = () => {
  asked.push("broken")
  return Promise.resolve({ ok: false, kind: "ended", message: "it hit the limit wallMs" })
}
const look = (path: string, runInModule = run, config: object = {}) =>
  amplify(data, { ...defaultConfig, amplifier: [{ module: path, path, config: config as never }] }, runInModule)

it("looks into a module once for each edition of it and of its config, and remembers no failure", async () => {
  const path = join(folder, "modules/bash.py")
  expect((await look(path, broken)).problems).toHaveLength(1)
  expect((await look(path)).manifests).toHaveLength(2)
  expect((await look(path)).manifests).toHaveLength(2)
  expect(asked).toHaveLength(2)
  await look(path, run, { timeout: 1 })
  expect(asked).toHaveLength(3)
  // A file beside it may be what it imports.
  writeFileSync(join(folder, "modules/beside.py"), "x = 1\n")
  await look(path)
  expect(asked).toHaveLength(4)
})
it("shows no folder that holds the host's own files, nor one that is no module", async () => {
  for (const path of [join(data, "tool.py"), join(folder, "tool.py"), join(folder, "modules/absent.py"), folder]) {
    if (path.endsWith("tool.py")) writeFileSync(path, "")
    const { manifests, problems } = await look(path)
    expect(manifests).toEqual([])
    expect(problems).toHaveLength(1)
  }
  expect(asked).toEqual([])
})
it("of a package that package alone is shown", async () => {
  const path = join(folder, "modules/package")
  mkdirSync(path)
  writeFileSync(join(path, "__init__.py"), "")
  await look(path)
  expect(JSON.parse(asked[0] ?? "")).toMatchObject([{ [path]: "/opt/driver/package" }, {}])
})
it("gives no secret to a module that is looked into", async () => {
  await look(join(folder, "modules/bash.py"), run, { key: "k-${secrets.API_KEY}", deep: [{ v: "${secrets.OTHER}" }] })
  expect(asked[0]).toContain('{"key":"k-","deep":[{"v":""}]}')
})
