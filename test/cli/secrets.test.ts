/** The vault by the command line, as a person or a script uses it. */
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { afterEach, beforeEach, expect, test } from "vitest"
import { caisson, type Ended, scratch } from "./run-caisson.ts"

const canary = "tok_live-5b1f0c2e9d"
let room: ReturnType<typeof scratch>
let env: Record<string, string>
const run = (args: readonly string[], input?: string): Promise<Ended> =>
  caisson(args, { env, cwd: room.folder, ...(input === undefined ? {} : { input }) })

beforeEach(() => {
  room = scratch()
  env = { CAISSON_DATA: join(room.folder, "data") }
})
afterEach(() => room[Symbol.dispose]())

test("a secret is set from stdin, listed by name, given new keys, and removed; its value is told nowhere", async () => {
  const said: Ended[] = []
  const done = async (args: readonly string[], input?: string): Promise<Ended> => {
    const ended = await run(["secrets", ...args], input)
    said.push(ended)
    return ended
  }
  expect(await done(["set", "api-key", "--user", "alice"], `${canary}\n`)).toMatchObject({ code: 0, stdout: "" })
  expect((await done(["set", "team/token", "--shared"], "other-5b1f0c2e9d")).code).toBe(0)
  expect((await done(["set", "jq-key", "--driver", "jq", "--workspace", "."], "v")).code).toBe(0)
  const listed = JSON.parse((await done(["list"])).stdout) as readonly object[]
  expect(listed).toMatchObject([
    { slug: "api-key", scope: { user: "alice" } },
    { slug: "team/token", scope: {} },
    { slug: "jq-key", scope: { driver: expect.stringMatching(/^jq@1 catalogue:/) as string } },
  ])
  expect((await done(["rotate"])).code).toBe(0)
  expect(JSON.parse((await done(["list"])).stdout)).toEqual(listed)
  // Another scope is another secret.
  expect((await done(["rm", "api-key", "--user", "bob"])).code).toBe(2)
  expect((await done(["rm", "api-key", "--user", "alice"])).code).toBe(0)
  expect(JSON.stringify(said)).not.toContain("5b1f0c2e9d")
  const data = join(room.folder, "data")
  for (const entry of readdirSync(data, { recursive: true, withFileTypes: true }))
    if (entry.isFile()) expect(readFileSync(join(entry.parentPath, entry.name), "latin1")).not.toContain("5b1f0c2e9d")
})

test("a value is never taken from the command line, and what cannot be kept is refused without being repeated", async () => {
  expect((await run(["secrets", "set", "api-key", canary], "x")).code).toBe(2)
  const empty = await run(["secrets", "set", "api-key"], "")
  expect(empty).toMatchObject({ code: 2, stderr: expect.stringContaining("has 0 bytes") as string })
  expect((await run(["secrets", "set", "Bad Name"], canary)).stderr).toContain("not a secret's name")
  const long = await run(["secrets", "set", "api-key"], canary.repeat(10_000))
  expect(long.code).toBe(2)
  expect(long.stderr).not.toContain("5b1f0c2e9d")
  expect((await run(["secrets", "set", "api-key", "--driver", "nobodys"], canary)).stderr).toContain("no driver")
})
