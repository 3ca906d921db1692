/** A driver's own module is the file that was registered, or it is not loaded at all. */
import { execFileSync } from "node:child_process"
import { symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterEach, beforeEach, expect, test } from "vitest"
import { findEntry } from "../../../../src/host/drivers/code/entry.ts"
import type { Surroundings } from "../../../../src/host/drivers/kind.ts"
import type { DriverContract } from "../../../../src/manifest/types.ts"
import { sha256 } from "../../../../src/manifest/values/digest.ts"
import { scratch } from "../../../cli/run-caisson.ts"

let room: ReturnType<typeof scratch>
beforeEach(() => {
  room = scratch()
})
afterEach(() => room[Symbol.dispose]())

test.each([
  ["a pipe that nobody writes to", (path: string) => void execFileSync("mkfifo", [path])],
  ["a link to what never ends", (path: string) => symlinkSync("/dev/zero", path)],
  ["a link to the same text", (path: string) => symlinkSync(`${path}.same`, path)],
  ["a file that outgrew what can be registered", (path: string) => writeFileSync(path, "x".repeat(2_000_000))],
])("one that was replaced by %s is refused at once", async (_, replace) => {
  const module = join(room.folder, "driver.mjs")
  writeFileSync(`${module}.same`, "export default {}")
  replace(module)
  const code = { module, export: "default", digest: sha256("export default {}"), adapters: [], transforms: [] }
  // It ends before anything of its surroundings is asked.
  const found = await findEntry({ id: "own", code } as unknown as DriverContract, {} as Surroundings)
  expect(found).toMatchObject({ ok: false, answer: { code: "tool_unavailable" } })
})
