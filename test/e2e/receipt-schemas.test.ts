/** The schemas that receipts name: kept once, and missed where they are gone or changed. */
import { createHash } from "node:crypto"
import { cpSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { readReceipts, verifyChain } from "../../src/host/index.ts"
import { openWorld, type World } from "./host-world.ts"

describe("the schemas of a call", () => {
  let world: World
  beforeAll(async () => {
    world = await openWorld()
  })
  afterAll(() => world[Symbol.asyncDispose]())
  const folder = (): string => join(world.data, "audit", "schemas")
  const act = () => world.call("fixture.act", { verb: "print", args: ["1"] })

  it("are named by its receipt by digest, and lie beside the evidence once, whole and canonical", async () => {
    const calls = await Promise.all([act(), act(), act()])
    const named = calls.map(({ call }) => readReceipts(world.data, { call })[0]?.metadata?.["schemas"]) as {
      input: string
      output: string
    }[]
    expect(new Set(named.map((one) => JSON.stringify(one))).size).toBe(1)
    const files = readdirSync(folder())
    expect(files.sort()).toEqual(
      [...new Set(Object.values(named[0] ?? {}))].map((digest) => `${digest.slice("sha256:".length)}.json`).sort(),
    )
    for (const file of files)
      expect(
        `${createHash("sha256")
          .update(readFileSync(join(folder(), file)))
          .digest("hex")}.json`,
      ).toBe(file)
    const input = JSON.parse(readFileSync(join(folder(), `${named[0]?.input.slice(7)}.json`), "utf8")) as object
    expect(input).toMatchObject({ required: ["verb"], additionalProperties: false })
    expect(await verifyChain(world.data)).toMatchObject({ ok: true })
  })

  it("are missed by who verifies a copy where one is gone or changed", async () => {
    await act()
    const copy = join(world.folder, "copy")
    const [file = ""] = readdirSync(folder())
    const at = join(copy, "audit", "schemas", file)
    const fresh = (): void => {
      rmSync(copy, { recursive: true, force: true })
      cpSync(join(world.data, "audit"), join(copy, "audit"), { recursive: true })
    }
    fresh()
    expect(await verifyChain(copy)).toMatchObject({ ok: true })
    for (const harm of [() => rmSync(at), () => writeFileSync(at, `${readFileSync(at, "utf8")} `)]) {
      fresh()
      harm()
      expect(await verifyChain(copy)).toMatchObject({ ok: false, code: "schema.missing" })
    }
  })

  it("are kept again where the evidence was moved aside", async () => {
    await act()
    renameSync(folder(), join(world.folder, "aside"))
    const { call } = await act()
    expect(readReceipts(world.data, { call })[0]?.metadata?.["schemas"]).toBeDefined()
    expect(await verifyChain(world.data)).toMatchObject({ ok: true })
  })
})
