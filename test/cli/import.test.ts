/** `caisson import`: what is written is what was read, and nothing that is there is touched. */
import { execFileSync } from "node:child_process"
import { cpSync, existsSync, mkdirSync, readFileSync, readdirSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { afterEach, beforeEach, expect, test } from "vitest"
import { buildCatalogue } from "../../src/manifest/read/catalogue.ts"
import { discoverManifests } from "../../src/manifest/read/discover.ts"
import { caisson, scratch } from "./run-caisson.ts"

const fixtures = fileURLToPath(new URL("../../fixtures/formats", import.meta.url))
let room: ReturnType<typeof scratch>
beforeEach(() => {
  room = scratch()
})
afterEach(() => room[Symbol.dispose]())

const contractsOf = (folder: string) => {
  const { tools, drivers } = buildCatalogue(discoverManifests([folder], { mode: "compat" }))
  const plain = ({ source: _source, ...rest }: (typeof tools)[number] | (typeof drivers)[number]) => rest
  return { tools: tools.map(plain), drivers: drivers.map(plain) }
}
const byId = <T extends { readonly id: string }>(all: readonly T[]): readonly T[] =>
  all.toSorted((a, b) => (a.id < b.id ? -1 : 1))

test.each(["aml", "aruntime"])("writes the AIP manifests that %s files amount to", async (format) => {
  const to = join(room.folder, "out")
  const { code, stdout } = await caisson(["import", format, join(fixtures, format), "--to", to])
  expect(code).toBe(0)
  const { written } = JSON.parse(stdout) as { written: readonly string[] }
  expect(written.length).toBeGreaterThan(6)
  const [made, meant] = [contractsOf(to), contractsOf(join(fixtures, format))]
  expect(byId(made.tools)).toEqual(byId(meant.tools))
  const named = (drivers: typeof made.drivers) =>
    byId(drivers).map((each) => ("implements" in each ? { ...each, implements: each.implements } : each))
  expect(named(made.drivers)).toEqual(named(meant.drivers))
})

test("writes nothing at all where one of its files is there already", async () => {
  const to = join(room.folder, "out")
  mkdirSync(join(to, "note-write"), { recursive: true })
  writeFileSync(join(to, "note-write", "TOOL.md"), "mine")
  const { code, stderr } = await caisson(["import", "aruntime", join(fixtures, "aruntime"), "--to", to])
  expect(code).toBe(2)
  expect(stderr).toContain("nothing is written over")
  expect(readFileSync(join(to, "note-write", "TOOL.md"), "utf8")).toBe("mine")
  expect(readdirSync(to)).toEqual(["note-write"])
})

test.each([
  ["the folder itself", ""],
  ["a tool's folder", "note-write"],
])("writes through no link that somebody put there: %s", async (_, name) => {
  const [to, outside] = [join(room.folder, "out"), join(room.folder, "outside")]
  mkdirSync(outside)
  if (name !== "") mkdirSync(to)
  symlinkSync(outside, join(to, name))
  const { code, stderr } = await caisson(["import", "aruntime", join(fixtures, "aruntime"), "--to", to])
  expect(code).toBe(2)
  expect(stderr).toContain("nothing was written")
  expect(readdirSync(outside)).toEqual([])
})

test("writes nothing where one of the files is refused, and names its line", async () => {
  const from = join(room.folder, "from")
  cpSync(join(fixtures, "aml"), from, { recursive: true })
  const file = join(from, "order-lookup.tool.md")
  writeFileSync(file, readFileSync(file, "utf8").replace("type: retrieval", "type: magic"))
  const to = join(room.folder, "out")
  const { code, stdout } = await caisson(["import", "aml", from, "--to", to])
  expect(code).toBe(2)
  expect(JSON.parse(stdout)).toMatchObject({
    ok: false,
    written: [],
    diagnostics: expect.arrayContaining([expect.objectContaining({ file, path: "type", line: 12, column: 1 })]),
  })
  expect(existsSync(to)).toBe(false)
})

test.each([
  ["a pipe that nobody writes to", (path: string) => void execFileSync("mkfifo", [path])],
  ["a link to what never ends", (path: string) => symlinkSync("/dev/zero", path)],
])("waits for nothing and reads no further than what was named: %s", async (_, plant) => {
  const from = join(room.folder, "from")
  cpSync(join(fixtures, "aml"), from, { recursive: true })
  plant(join(from, "planted.tool.md"))
  const { code, stdout } = await caisson(["import", "aml", from, "--to", join(room.folder, "out")])
  expect(code).toBe(2)
  expect(JSON.parse(stdout)).toMatchObject({
    written: [],
    diagnostics: expect.arrayContaining([
      expect.objectContaining({ file: join(from, "planted.tool.md"), rule: "not-a-regular-file" }),
    ]),
  })
})

test("knows its formats by name", async () => {
  const { code, stderr } = await caisson(["import", "tar", room.folder])
  expect(code).toBe(2)
  expect(stderr).toContain("aml, aruntime")
})
