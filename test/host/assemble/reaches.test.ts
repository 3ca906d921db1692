import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { DatabaseSync } from "node:sqlite"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterEach, beforeEach, expect, it } from "vitest"
import { readRegistry } from "../../../src/host/assemble/manifests.ts"
import { openRegistered } from "../../../src/host/store/registered.ts"
import type { Registry } from "../../../src/host/registry/types.ts"
import { cliFront, toolFront } from "../../manifest/from-text.ts"

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "caisson-reaches-"))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

const write = (name: string, front: string, at = "m"): void => {
  mkdirSync(join(folder, at), { recursive: true })
  writeFileSync(join(folder, at, name), `---\n${front}\n---\n`)
}
const read = (trusted = true, at = "m"): Promise<Registry> =>
  readRegistry(folder, [{ dir: join(folder, at), trusted }], [])
const version = (front: string, to: string): string => front.replace(/^version: .*$/m, `version: ${to}`)
const driver = (egress: string, to = "1.0.0"): string =>
  version(cliFront({ extra: `network: { egress: [${egress}] }` }), to)
const first = ({ drivers }: Registry): Registry["drivers"][number] | undefined => drivers[0]

it("a driver that reaches further without a new major is refused, with the diff and an example", async () => {
  write("TOOL.md", toolFront())
  write("DRIVER.md", driver("a.test"))
  expect(first(await read())?.refusal).toBeUndefined()
  write("DRIVER.md", driver("a.test, evil.test", "1.1.0"))
  const refused = first(await read())
  expect(refused?.bindings).toEqual([])
  expect(refused?.refusal).toMatchObject({
    code: "manifest_invalid",
    reason: expect.stringMatching(
      /1\.0\.0.*1\.1\.0.*`evil\.test:443` passes now \(before: a\.test; now: a\.test, evil\.test\)/,
    ) as string,
    fix: expect.stringContaining("2.0.0") as string,
  })
  write("DRIVER.md", driver("a.test, evil.test", "2.0.0"))
  expect(first(await read())?.refusal).toBeUndefined()
})

it("a narrower version is taken, and so is the first one again after it", async () => {
  write("TOOL.md", toolFront())
  for (const [egress, to] of [
    ["a.test, b.test", "1.0.0"],
    ["a.test", "1.1.0"],
    ["a.test, b.test", "1.0.0"],
  ] as const) {
    write("DRIVER.md", driver(egress, to))
    expect(first(await read())?.refusal).toBeUndefined()
  }
})

it("what was refused is not what later ones are held to, and stays refused", async () => {
  write("TOOL.md", toolFront())
  write("DRIVER.md", driver("a.test"))
  await read()
  write("DRIVER.md", driver("a.test, evil.test", "1.1.0"))
  for (let time = 0; time < 3; time += 1) expect(first(await read())?.refusal).toBeDefined()
})

it("a tool that asks for less is refused, and its drivers have nothing to serve", async () => {
  const careful = 'mutates: ["workspace:/notes/*"]\napproval: always\nrisk_level: 2'
  write("TOOL.md", toolFront(careful))
  write("DRIVER.md", driver("a.test"))
  expect((await read()).tools).toHaveLength(1)
  write("TOOL.md", version(toolFront(careful.replace("always", "on-mutate")), "1.2.0"))
  const registry = await read()
  expect(registry.tools).toEqual([])
  expect(registry.failed.map((each) => each.diagnostics.map((one) => one.rule))).toEqual([["widened-without-major"]])
  expect(first(registry)?.refusal).toBeDefined()
})

it("an action that falls below its own floor is there for no tool", async () => {
  const action = (extra: string): string => `schema: action/v1\nid: a:b\ndescription: d\nrisk_level: 2\n${extra}`
  write("ACTION.md", action("approval: always"))
  write("TOOL.md", toolFront("implements: a:b"))
  expect((await read()).tools[0]?.approval.class).toBe("always")
  write("ACTION.md", action("approval: auto\nversion: 1.1.0"))
  const registry = await read()
  expect(registry.actions).toEqual([])
  expect(registry.diagnostics.map((each) => each.rule)).toEqual(
    expect.arrayContaining(["widened-without-major", "action_ref_unresolvable"]),
  )
})

it("what nobody vouches for is remembered by its file, and holds nobody else to what it did", async () => {
  write("TOOL.md", toolFront(), "theirs")
  write("DRIVER.md", driver("a.test"), "theirs")
  await read(false, "theirs")
  write("TOOL.md", toolFront())
  write("DRIVER.md", driver("a.test, b.test"))
  expect(first(await read())?.refusal).toBeUndefined()
  write("DRIVER.md", driver("c.test"), "theirs")
  expect(first(await read(false, "theirs"))?.refusal).toBeDefined()
})

it("manifests that were taken as they are are not looked up again", async () => {
  write("TOOL.md", toolFront())
  await read()
  expect(existsSync(join(folder, "registered.db"))).toBe(true)
  rmSync(join(folder, "registered.db"))
  await read()
  expect(existsSync(join(folder, "registered.db"))).toBe(false)
})

it("a store that cannot be read stops the start: nothing is taken unseen", async () => {
  write("TOOL.md", toolFront())
  writeFileSync(join(folder, "registered.db"), "x".repeat(8192))
  await expect(read()).rejects.toMatchObject({
    code: "internal",
    fix: expect.stringContaining("registered.db") as string,
  })
})

it("of two processes that tell at once, the first is remembered for both", async () => {
  const file = join(folder, "registered.db")
  using one = await openRegistered(file)
  using two = await openRegistered(file)
  const row = (reach: string): { key: string; vouched: boolean; reach: string } => ({ key: "k", vouched: true, reach })
  const kept = await Promise.all([one.remember([row("1")]), two.remember([row("2")])])
  expect(new Set(kept.map((each) => each.get("k"))).size).toBe(1)
})

it.each([2, 3])(
  "at %i remembered keys, those that nobody vouches for are forgotten, the oldest first",
  async (most) => {
    using store = await openRegistered(join(folder, "registered.db"), { most })
    await store.remember([{ key: "vouched", vouched: true, reach: "0" }])
    for (const key of ["a", "b", "c"]) await store.remember([{ key, vouched: false, reach: "0" }])
    const again = await store.remember(["vouched", "c"].map((key) => ({ key, vouched: key === "vouched", reach: "1" })))
    expect([...again.values()]).toEqual(["0", "0"])
    const oldest = await store.remember([{ key: "a", vouched: false, reach: "1" }])
    expect(oldest.get("a")).toBe("1")
  },
)

it.each(["{", "7", "{}", '{"version":"1.0.0","digest":"x","parts":null}'])(
  "what was kept of a reach and is none any more stops the start, with what to do: %s",
  async (text) => {
    write("TOOL.md", toolFront())
    write("DRIVER.md", driver("a.test"))
    await read()
    using db = new DatabaseSync(join(folder, "registered.db"))
    db.prepare("UPDATE registered SET reach = ?").run(text)
    write("DRIVER.md", driver("a.test, evil.test", "1.1.0"))
    await expect(read()).rejects.toMatchObject({
      code: "internal",
      fix: expect.stringContaining("registered.db") as string,
    })
  },
)
