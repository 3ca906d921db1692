import { describe, expect, it } from "vitest"
import type { ParkedContainer } from "../../../src/sandbox/docker/container/parked.ts"
import { DEFAULT_BUDGET, type Kind, Pool, type PoolBudget } from "../../../src/sandbox/docker/container/pool.ts"

/** Containers that cost nothing, and a count of what is there and what is starting. */
const world = () => {
  const seen = { live: 0, mostLive: 0, starting: 0, mostStarting: 0, made: 0 }
  const made: { kill: () => void }[] = []
  const kind = (key: string, memoryBytes = 1): Kind => ({
    key,
    memoryBytes,
    start: async () => {
      seen.starting += 1
      seen.mostStarting = Math.max(seen.mostStarting, seen.starting)
      await Promise.resolve()
      await new Promise((resolve) => setImmediate(resolve))
      seen.starting -= 1
      seen.live += 1
      seen.made += 1
      seen.mostLive = Math.max(seen.mostLive, seen.live)
      let alive = true
      const parked = {
        alive: () => alive,
        kill: () => {
          alive = false
        },
        dispose: async () => {
          seen.live -= 1
        },
      }
      made.push(parked)
      return { ok: true, parked: parked as unknown as ParkedContainer }
    },
  })
  return { seen, kind, made }
}
const poolOf = (budget: Partial<PoolBudget>): Pool => new Pool({ ...DEFAULT_BUDGET, ...budget })
const take = async (pool: Pool, kind: Kind): Promise<ParkedContainer> => {
  const taken = await pool.take(kind)
  if (!taken.ok) throw new Error("not started")
  return taken.parked
}

describe("the pool's rules", () => {
  it("keeps nothing ready unless asked to", async () => {
    const { seen, kind } = world()
    const pool = poolOf({})
    const parked = await take(pool, kind("a"))
    pool.release(parked)
    pool.refill(kind("a"))
    await pool.filled()
    expect([pool.readyCount, seen.made]).toEqual([0, 1])
    await pool.close()
  })

  it.each([1, 2, 3])("fills up to %i of a kind and no more", async (perProfile) => {
    const { kind } = world()
    const pool = poolOf({ perProfile })
    pool.refill(kind("a"))
    pool.refill(kind("a"))
    await pool.filled()
    expect(pool.readyCount).toBe(perProfile)
    await pool.close()
  })

  it("stops at its total and at its memory", async () => {
    const { kind } = world()
    const byTotal = poolOf({ perProfile: 4, total: 3 })
    byTotal.refill(kind("a"))
    await byTotal.filled()
    expect(byTotal.readyCount).toBe(3)
    const byMemory = poolOf({ perProfile: 4, memoryBytes: 25 })
    byMemory.refill(kind("a", 10))
    await byMemory.filled()
    expect(byMemory.readyCount).toBe(2)
    await Promise.all([byTotal.close(), byMemory.close()])
  })

  it("uses a container once", async () => {
    const { kind } = world()
    const pool = poolOf({ perProfile: 1 })
    pool.refill(kind("a"))
    await pool.filled()
    const [first, second] = [await take(pool, kind("a")), await take(pool, kind("a"))]
    expect(first).not.toBe(second)
    await pool.close()
  })

  it("never exceeds its bounds however many calls come at once", async () => {
    const { seen, kind } = world()
    const pool = poolOf({ perProfile: 2, live: 5, starting: 2 })
    await Promise.all(
      Array.from({ length: 60 }, async (_, index) => {
        const own = kind(index % 2 === 0 ? "a" : "b")
        const parked = await take(pool, own)
        await new Promise((resolve) => setImmediate(resolve))
        pool.release(parked)
        pool.refill(own)
      }),
    )
    expect(seen.mostLive).toBeLessThanOrEqual(5)
    expect(seen.mostStarting).toBeLessThanOrEqual(2)
    await pool.close()
    expect(seen.live).toBe(0)
  })

  it("gives the place of a ready container of another kind to a call that waits", async () => {
    const { kind } = world()
    const pool = poolOf({ perProfile: 1, live: 1 })
    pool.refill(kind("a"))
    await pool.filled()
    await take(pool, kind("b"))
    expect(pool.readyCount).toBe(0)
    await pool.close()
  })

  it("passes over a ready container that died", async () => {
    const { seen, kind, made } = world()
    const pool = poolOf({ perProfile: 1 })
    pool.refill(kind("a"))
    await pool.filled()
    made[0]?.kill()
    const taken = await take(pool, kind("a"))
    expect([seen.made, taken.alive()]).toEqual([2, true])
    await pool.close()
    expect(seen.live).toBe(0)
  })

  it("lets go of its place when a container cannot be started", async () => {
    const pool = poolOf({ live: 1 })
    const failing: Kind = {
      key: "x",
      memoryBytes: 1,
      start: async () => ({ ok: false, failure: { kind: "bridge", message: "no" } }),
    }
    for (let attempt = 0; attempt < 3; attempt += 1) expect(await pool.take(failing)).toMatchObject({ ok: false })
    await pool.close()
  })

  it("removes containers in use when it closes", async () => {
    const { seen, kind } = world()
    const pool = poolOf({})
    await take(pool, kind("a"))
    await pool.close()
    expect(seen.live).toBe(0)
  })

  it("a call that is cancelled while it waits for a place leaves the line, and takes none", async () => {
    const { seen, kind } = world()
    const pool = poolOf({ live: 1 })
    const first = await take(pool, kind("a"))
    const cancel = new AbortController()
    const waiting = pool.take(kind("a"), cancel.signal)
    const next = pool.take(kind("a"))
    cancel.abort()
    expect(await waiting).toMatchObject({ ok: false, failure: { kind: "cancelled" } })
    pool.release(first)
    expect(await next).toMatchObject({ ok: true })
    expect(seen.made).toBe(2)
    await pool.close()
  })
})
