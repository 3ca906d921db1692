/** Write sets made to choke whoever tells, judges or records them: the call ends in words, with a receipt. */
import { readdirSync, statSync } from "node:fs"
import { join } from "node:path"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { auditLogFile } from "../../src/data-folder/paths.ts"
import { hostLimits } from "../../src/host/limits.ts"
import { readReceipts, verifyChain } from "../../src/host/receipts/verify.ts"
import { digestOfFolder, openWorld, type World } from "./host-world.ts"

let world: World
beforeEach(async () => {
  world = await openWorld()
})
afterEach(async () => world[Symbol.asyncDispose]())

describe("a tool that", () => {
  it("makes 19 000 links with backslashes in names and targets is refused, with envelope and receipt", async () => {
    const before = digestOfFolder(world.workspace)
    const envelope = await world.call("fixture.act", { verb: "links", args: ["notes", "19000", "5c", "5c", "3900"] })
    expect(envelope).toMatchObject({
      ok: false,
      error: { code: "limit_exceeded", details: { limit: "write-set" } },
      effects: [],
    })
    expect(digestOfFolder(world.workspace)).toBe(before)
    expect(readReceipts(world.data)).toMatchObject([{ metadata: { verdict: "limit_exceeded" } }])
    expect(await verifyChain(world.data)).toMatchObject({ ok: true })
  })

  it("renews its own state and then makes more changes than can be told has that state at the next call", async () => {
    const token = "/home/tool/.actor/token"
    const args = ["notes", "19000", "5c", "5c", "3900", token]
    const before = digestOfFolder(world.workspace)
    expect(await world.call("fixture.act", { verb: "links", args })).toMatchObject({
      ok: false,
      error: { code: "limit_exceeded", message: expect.stringContaining("the driver's own state was kept") as string },
    })
    expect(digestOfFolder(world.workspace)).toBe(before)
    expect(await world.call("fixture.act", { verb: "read", args: [token] })).toMatchObject({ value: "renewed" })
  })

  it("makes as many links as can be told lands them all, with a receipt that is bounded", async () => {
    const envelope = await world.call("fixture.act", { verb: "links", args: ["notes", "3000", "5c", "5c", "1200"] })
    expect(envelope.ok).toBe(true)
    expect(envelope.effects).toHaveLength(3000)
    expect(readdirSync(join(world.workspace, "notes"))).toHaveLength(3001)
    expect(statSync(auditLogFile(world.data)).size).toBeLessThan(hostLimits.receiptBytes.value)
    expect(readReceipts(world.data)).toMatchObject([
      { metadata: { effects_committed: true, effects_total: 3000, effects_digest: expect.any(String) } },
    ])
  })

  it("makes 1 500 links with names and targets that are no text does not hold up a call beside it", async () => {
    const input = { verb: "links", args: ["notes", "1500", "ff", "ff", "3900"] }
    const [slow, quick] = await Promise.all([
      world.call("fixture.act", input),
      world.call("fixture.act", { verb: "write", args: ["notes/quick.txt", "x"] }),
    ])
    expect(slow.ok).toBe(true)
    expect(slow.effects).toHaveLength(1500)
    expect(quick.ok).toBe(true)
  })
})
