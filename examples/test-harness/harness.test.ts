/**
 * A test harness on Caisson's library: real drivers, sealed, as tests of any runner; here Node's own.
 *
 * What it shows: the examples of a contract as tests; a test of one's own on a workspace of its own, which sees exactly what
 * would change; equal runs by the digest of what they changed; a driver that would do more than it says turned red.
 */
import assert from "node:assert/strict"
import { cpSync, mkdirSync, mkdtempDisposableSync, readFileSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { test } from "node:test"
import { conform, createHost } from "caisson"

const tools = join(import.meta.dirname, "tools")

await test("lines.sort", async (each) => {
  using folder = mkdtempDisposableSync(join(tmpdir(), "harness-"))
  const workspace = join(folder.path, "workspace")
  mkdirSync(join(workspace, "data"), { recursive: true })
  await using host = await createHost({ data: join(folder.path, "data"), manifests: [tools], warm: true })

  await each.test("keeps the promises of its contract, and changes the same each time", async () => {
    for (const example of await conform(host, { driver: "example-sort" })) {
      const [first, second] = [await example.run(), await example.run()]
      assert.deepEqual([first.outcome, first.why], ["passed", []], example.title)
      assert.equal(first.writeSet, second.writeSet)
    }
  })

  await each.test("shows what it would change, and leaves the workspace alone until it is approved of", async () => {
    const file = join(workspace, "data/names.txt")
    writeFileSync(file, "b\na\n")
    const request = { tool: "lines.sort", input: { path: "data/names.txt" }, workspace }
    const planned = await host.call({ ...request, plan: true })
    assert.deepEqual(
      planned.effects.map(({ kind, path, committed }) => ({ kind, path, committed })),
      [{ kind: "modify", path: "data/names.txt", committed: false }],
    )
    assert.equal(readFileSync(file, "utf8"), "b\na\n")
    assert.equal((await host.call(request, { approved: true })).ok, true)
    assert.equal(readFileSync(file, "utf8"), "a\nb\n")
  })

  await each.test("is red when its driver may no longer write", async () => {
    const narrowed = join(folder.path, "narrowed")
    cpSync(tools, narrowed, { recursive: true })
    const manifest = join(narrowed, "DRIVER.md")
    writeFileSync(manifest, readFileSync(manifest, "utf8").replace('write: ["data/*"]', "write: []"))
    await using poorer = await createHost({ data: join(folder.path, "other"), manifests: [narrowed] })
    const outcomes = new Map<string, string>()
    for (const example of await conform(poorer, { driver: "example-sort" }))
      outcomes.set(example.name, (await example.run()).outcome)
    assert.deepEqual(Object.fromEntries(outcomes), { "three lines": "failed", "a file that is not there": "passed" })
  })
})
