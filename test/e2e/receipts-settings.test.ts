/** What caisson.yaml says of the log of receipts, as a host's own log does it. */
import { existsSync, readdirSync } from "node:fs"
import { afterEach, expect, it, vi } from "vitest"
import { auditSegmentsFolder } from "../../src/data-folder/paths.ts"
import { readReceipts, verifyChain } from "../../src/host/index.ts"
import { openAuditLog } from "../../src/host/receipts/log.ts"
import { openWorld, type World } from "./host-world.ts"

const DAY_MS = 86_400_000
afterEach(() => {
  vi.useRealTimers()
})

/** More than a MiB of the log, of so many days ago. */
const fill = async ({ data }: World, days = 0): Promise<void> => {
  const text = "x".repeat(60_000)
  if (days > 0) vi.useFakeTimers({ toFake: ["Date"], now: Date.now() - days * DAY_MS })
  await using log = openAuditLog(data)
  for (let n = 0; n < 20; n += 1)
    await log.append({
      actor: { id: "alice" },
      action: "tool.invoked",
      subject: { kind: "tool", ref: "old@1" },
      metadata: { call: `old-${n}`, text },
    })
  vi.useRealTimers()
}
const parts = ({ data }: World): number =>
  existsSync(auditSegmentsFolder(data))
    ? readdirSync(auditSegmentsFolder(data)).filter((name) => name.endsWith(".jsonl")).length
    : 0
const call = (world: World) => world.call("fixture.act", { verb: "print", args: ["1"] })
const old = ({ data }: World): number => readReceipts(data).filter(({ subject }) => subject.ref === "old@1").length

it.each([
  ["receipts: { segment_mb: 1 }\n", 1],
  ["receipts: { segment_mb: 2 }\n", 0],
  ["", 0],
])("closes a part where the log has grown beyond what %j says: %d", async (config, closed) => {
  await using world = await openWorld(config)
  await fill(world)
  expect(await call(world)).toMatchObject({ ok: true })
  expect(await call(world)).toMatchObject({ ok: true })
  expect(parts(world)).toBe(closed)
  expect(await verifyChain(world.data)).toMatchObject({ ok: true })
})

it.each([
  ["receipts: { segment_mb: 1, keep_days: 2 }\n", 0],
  ["receipts: { segment_mb: 1, keep_days: 4 }\n", 20],
  ["receipts: { segment_mb: 1 }\n", 20],
])("keeps parts as long as %j says, and no longer: of twenty entries of three days ago %d", async (config, kept) => {
  await using world = await openWorld(config)
  await fill(world, 3)
  expect(await call(world)).toMatchObject({ ok: true })
  expect(await call(world)).toMatchObject({ ok: true })
  expect(old(world)).toBe(kept)
  expect(readReceipts(world.data).some(({ action }) => action === "audit.pruned")).toBe(kept === 0)
  expect(await verifyChain(world.data)).toMatchObject({ ok: true })
})
