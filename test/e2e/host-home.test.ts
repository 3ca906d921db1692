import { cpSync, mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { createHost, readReceipts } from "../../src/host/index.ts"
import { createNamespaceBackend } from "../../src/sandbox/namespace/backend.ts"
import type { Job } from "../../src/sandbox/backend.ts"
import { homeFolderOf } from "../../src/sandbox/profile.ts"
import { fixtureTools, openFolder, openWorld, type World } from "./host-world.ts"
import { during } from "./swap.ts"
import { removeFolder } from "../support/remove-folder.ts"

const token = "/home/tool/.actor/token"

describe("a driver's own state", () => {
  let world: World
  beforeAll(async () => {
    world = await openWorld()
  })
  afterAll(() => world[Symbol.asyncDispose]())
  const held = async (): Promise<unknown> => {
    const envelope = await world.call("fixture.act", { verb: "read", args: [token] })
    return envelope.ok ? envelope.value : envelope.error.message
  }

  it.each([
    [
      "is refused for an undeclared write",
      "undeclared_write",
      { verb: "puts", args: [token, "a", "stray.txt", "x"] },
      {},
    ],
    ["is only planned", "ok", { verb: "puts", args: [token, "b", "notes/planned.txt", "x"] }, { plan: true }],
    ["fails", "actor:on_purpose", { verb: "fail", args: [token] }, {}],
  ])(
    "that was renewed by a call which %s is there at the next, and the effects are not",
    async (_how, code, input, more) => {
      const before = readdirSync(join(world.workspace, "notes"))
      const envelope = await world.call("fixture.act", input, more)
      expect(envelope.ok ? "ok" : envelope.error.code).toBe(code)
      expect(envelope.effects.filter(({ committed }) => committed)).toEqual([])
      expect(readdirSync(join(world.workspace, "notes"))).toEqual(before)
      expect(await held()).toBe(input.verb === "fail" ? "x" : input.args[1])
      const [receipt] = readReceipts(world.data, { call: envelope.call })
      expect(receipt?.metadata).toMatchObject({
        home: {
          kept: true,
          effects: expect.arrayContaining([
            expect.objectContaining({ path: ".actor/token", after: expect.stringMatching(/^sha256:/), kept: true }),
          ]) as unknown,
        },
      })
    },
  )

  it("that a call left alone is not in its receipt", async () => {
    const envelope = await world.call("fixture.act", { verb: "read", args: ["README.md"] })
    const [receipt] = readReceipts(world.data, { call: envelope.call })
    expect(receipt?.metadata).not.toHaveProperty("home")
  })
})

it("state that another call renewed meanwhile is an error that the caller sees, and nothing is committed", async () => {
  let home = ""
  let between = (): void => undefined
  const data = openFolder()
  using after = new DisposableStack()
  after.defer(() => removeFolder(data))
  await using real = createNamespaceBackend({ data })
  const started = (job: Job): void => {
    home = homeFolderOf(job) ?? home
  }
  await using world = await openWorld("", { backend: during(real, { started, exited: () => between() }) })
  expect(await world.call("fixture.act", { verb: "write", args: [token, "first"] })).toMatchObject({ ok: true })
  between = () => writeFileSync(join(home, ".actor/token"), "theirs")
  const envelope = await world.call("fixture.act", { verb: "puts", args: [token, "ours", "notes/new.txt", "x"] })
  expect(envelope).toMatchObject({
    ok: false,
    error: {
      code: "conflict",
      message: expect.stringContaining("own state was not kept"),
      details: { home: "conflict" },
    },
    effects: [{ path: "notes/new.txt", committed: false }],
  })
  expect(readFileSync(join(home, ".actor/token"), "utf8")).toBe("theirs")
  expect(readdirSync(join(world.workspace, "notes"))).not.toContain("new.txt")
  expect(readReceipts(world.data, { call: envelope.call })[0]?.metadata).toMatchObject({ home: { kept: false } })
})

it("a driver's state is not for another manifest that claims its id, nor for another folder at the workspace's path", async () => {
  const folder = openFolder()
  const [data, workspace] = [join(folder, "data"), join(folder, "work")]
  mkdirSync(workspace)
  cpSync(fixtureTools, join(folder, "mine"), { recursive: true })
  cpSync(fixtureTools, join(folder, "theirs"), { recursive: true })
  const read = async (manifests: string): Promise<string> => {
    await using host = await createHost({ data, manifests: [join(folder, manifests)] })
    const envelope = await host.call({ tool: "fixture.act", input: { verb: "read", args: [token] }, workspace })
    return envelope.ok ? String(envelope.value) : "nothing"
  }
  try {
    {
      await using host = await createHost({ data, manifests: [join(folder, "mine")] })
      const input = { verb: "write", args: [token, "secret"] }
      expect(await host.call({ tool: "fixture.act", input, workspace })).toMatchObject({ ok: true })
    }
    expect(await read("mine")).toBe("secret")
    expect(await read("theirs")).toBe("nothing")
    renameSync(workspace, join(folder, "before"))
    mkdirSync(workspace)
    expect(await read("mine")).toBe("nothing")
  } finally {
    removeFolder(folder)
  }
})
