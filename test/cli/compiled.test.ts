import { existsSync, mkdirSync, readdirSync, statSync, symlinkSync } from "node:fs"
import { join } from "node:path"
import { expect, test } from "vitest"
import { caisson, scratch } from "./run-caisson.ts"

/** The launcher as it is without the place that a test run keeps compiled code in. */
const version = (data: string) => caisson(["--version"], { env: { CAISSON_DATA: data, NODE_COMPILE_CACHE: undefined } })

test("compiled code is kept in a data folder that is closed to others", async () => {
  using room = scratch()
  const data = join(room.folder, "data")
  mkdirSync(data, { mode: 0o700 })
  const first = await version(data)
  expect(readdirSync(join(data, "compiled"))).toHaveLength(1)
  expect(statSync(join(data, "compiled")).mode & 0o777).toBe(0o700)
  expect(await version(data)).toEqual(first)
})

test.each([
  ["is open to others", (data: string, _elsewhere: string) => mkdirSync(data, { mode: 0o755 })],
  ["is not there", () => undefined],
  [
    "leads elsewhere for it",
    (data: string, elsewhere: string) => {
      mkdirSync(data, { mode: 0o700 })
      symlinkSync(elsewhere, join(data, "compiled"))
    },
  ],
])("no compiled code is kept where the data folder %s", async (how, make) => {
  using room = scratch()
  const [data, elsewhere] = [join(room.folder, "data"), join(room.folder, "elsewhere")]
  mkdirSync(elsewhere, { mode: 0o700 })
  make(data, elsewhere)
  expect((await version(data)).code).toBe(0)
  expect(readdirSync(elsewhere)).toEqual([])
  expect(existsSync(join(data, "compiled", "."))).toBe(how.startsWith("leads"))
})
