import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterEach, describe, expect, it, vi } from "vitest"
import type { Checkable, Found } from "../../../src/host/health/check.ts"
import { createHealthChecks } from "../../../src/host/health/health-checks.ts"
import { openHealthRecords } from "../../../src/host/health/records.ts"
import type { HealthCheck } from "../../../src/manifest/types.ts"

const folders: string[] = []
const dataFolder = (): string => {
  const made = mkdtempSync(join(tmpdir(), "caisson-health-"))
  folders.push(made)
  return made
}
afterEach(() => {
  vi.useRealTimers()
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true })
})

const checkable = (id: string, healthCheck?: HealthCheck, digest = "d1"): Checkable =>
  ({
    driver: { key: `${id}@1`, contract: { id, source: { file: `/m/${id}/DRIVER.md`, digest }, healthCheck } },
    found: { available: true },
  }) as unknown as Checkable

const http: HealthCheck = { method: "http", timeoutMs: 100, probe: { method: "GET", url: "http://a.test/" } }

const world = (data = dataFolder(), answer: () => Found | Promise<Found> = () => ({ ok: true })) => {
  let now = 1_000_000
  const closing = new AbortController()
  const ran: string[] = []
  const checks = createHealthChecks({
    run: async ({ driver }) => {
      ran.push(driver.key)
      return answer()
    },
    records: openHealthRecords(data),
    closing: closing.signal,
    now: () => now,
    random: () => 0.5,
  })
  return { data, checks, ran, closing, at: (ms: number) => (now = ms) }
}

describe("health checks", () => {
  it("cost nothing where a driver declares none, or one that does nothing", async () => {
    const { checks, ran } = world()
    expect(await checks.of([checkable("a"), checkable("b", { method: "noop", timeoutMs: 1 })])).toEqual(new Map())
    expect(ran).toEqual([])
  })
  it("run when a route needs them, and again when their result is stale", async () => {
    const { checks, ran, at } = world()
    expect((await checks.of([checkable("a", http)])).get("a@1")).toEqual({ ok: true, at: 1_000_000 })
    at(1_000_000 + 299_999)
    await checks.of([checkable("a", http)])
    expect(ran).toHaveLength(1)
    at(1_000_000 + 300_000)
    await checks.of([checkable("a", http)])
    expect(ran).toHaveLength(2)
  })
  it("take a clock that was set back for a reason to look again, not for a young result", async () => {
    const { checks, ran, at } = world()
    await checks.of([checkable("a", http)])
    at(5)
    await checks.of([checkable("a", http)])
    expect(ran).toHaveLength(2)
  })
  it("are run once for all who ask at the same time", async () => {
    const { checks, ran } = world()
    const all = await Promise.all([1, 2, 3].map(() => checks.of([checkable("a", http)])))
    expect(ran).toHaveLength(1)
    expect(all.every((one) => one.get("a@1")?.ok === true)).toBe(true)
  })
  it("are remembered for the next process, by driver and manifest", async () => {
    const first = world(undefined, () => ({ ok: false, reason: "it is down" }))
    await first.checks.of([checkable("a", http)])
    const second = world(first.data)
    expect((await second.checks.of([checkable("a", http)])).get("a@1")).toEqual({
      ok: false,
      at: 1_000_000,
      reason: "it is down",
    })
    expect(second.ran).toEqual([])
    await second.checks.of([checkable("a", http, "d2")])
    expect(second.ran).toEqual(["a@1"])
  })
  it.each(["", "{", "[]", '{"ok":1,"at":1}', '{"ok":true,"at":"now"}', '{"ok":true,"at":null}', "x".repeat(9000)])(
    "are run again where what was remembered is %j",
    async (damaged) => {
      const { data, checks } = world()
      await checks.of([checkable("a", http)])
      const [name] = readdirSync(join(data, "health"))
      writeFileSync(join(data, "health", name as string), damaged)
      const next = world(data)
      await next.checks.of([checkable("a", http)])
      expect(next.ran).toEqual(["a@1"])
    },
  )
  it("go on by themselves, about as often as their driver says, until the host closes", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] })
    const { checks, ran, closing } = world()
    await checks.of([checkable("a", { ...http, everyMs: 60_000 })])
    await vi.advanceTimersByTimeAsync(60_000)
    await vi.waitFor(() => expect(ran).toHaveLength(2))
    closing.abort()
    await vi.advanceTimersByTimeAsync(600_000)
    expect(ran).toHaveLength(2)
  })
  it("say no more than so much of what went wrong", async () => {
    const { checks } = world(undefined, () => ({ ok: false, reason: "x".repeat(10_000) }))
    expect((await checks.of([checkable("a", http)])).get("a@1")?.reason).toHaveLength(300)
  })
})
