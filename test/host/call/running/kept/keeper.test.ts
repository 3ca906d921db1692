/** Servers that wait for their next call: how many, for how long, and whose they are. */
import { afterEach, describe, expect, it, vi } from "vitest"
import { createKeeper, type Lane, type Waiting } from "../../../../../src/host/call/running/kept/keeper.ts"
import type { Whose } from "../../../../../src/host/call/running/kept/whose.ts"

const never = new AbortController().signal
const whoseOf = (tuple: string, more: Partial<Whose> = {}): Whose => ({
  tuple,
  origin: "manifest",
  shape: "profile",
  given: "secrets",
  ...more,
})

interface Fake extends Waiting {
  readonly ended: boolean
  die(): void
}
const server = (whose: Whose, memoryBytes = 1): Fake => {
  const over = Promise.withResolvers<void>()
  let ended = false
  return {
    whose,
    memoryBytes,
    over: over.promise,
    get ended() {
      return ended
    },
    die: () => over.resolve(),
    async [Symbol.asyncDispose]() {
      ended = true
    },
  }
}
type Kept = ReturnType<typeof createKeeper<Fake>>
const laneOf = async (keeper: Kept, tuple: string): Promise<Lane<Fake>> => {
  const lane = await keeper.lane(tuple, never)
  if (lane === undefined || lane === "full") throw new Error(`no lane: ${String(lane)}`)
  return lane
}
const keep = async (keeper: Kept, one: Fake): Promise<Fake> => {
  using lane = await laneOf(keeper, one.whose.tuple)
  lane.put(one)
  return one
}
const taken = async (keeper: Kept, whose: Whose): Promise<Fake | undefined> => {
  using lane = await laneOf(keeper, whose.tuple)
  return lane.take(whose)
}

afterEach(() => {
  vi.useRealTimers()
})

describe("a server that waits", () => {
  it("is handed to its own call, once", async () => {
    await using keeper = createKeeper<Fake>()
    const one = await keep(keeper, server(whoseOf("a")))
    expect(await taken(keeper, whoseOf("a"))).toBe(one)
    expect(await taken(keeper, whoseOf("a"))).toBeUndefined()
    expect(one.ended).toBe(false)
  })
  it.each([
    ["tuple", { tuple: "b" }, false],
    ["profile", { shape: "another" }, false],
    ["manifest or program", { origin: "another" }, true],
    ["set of secret values", { given: "others" }, true],
  ] as const)("is not handed to a call of another %s", async (_what, more, ends) => {
    await using keeper = createKeeper<Fake>()
    const one = await keep(keeper, server(whoseOf("a")))
    expect(await taken(keeper, { ...whoseOf("a"), ...more })).toBeUndefined()
    // What no call will want again goes at once.
    expect(one.ended).toBe(ends)
  })
  it.each([
    ["servers", { servers: 3 }, 1],
    ["memory", { memoryBytes: 30 }, 10],
  ] as const)(
    "makes way for others at the limit of %s, the one that waited longest first",
    async (_what, limits, size) => {
      await using keeper = createKeeper<Fake>(limits)
      const all = ["a", "b", "c"].map((tuple) => server(whoseOf(tuple), size))
      for (const one of all) await keep(keeper, one)
      expect(all.map(({ ended }) => ended)).toEqual([false, false, false])
      // Asked for, it is not the one that waited longest any more.
      await keep(keeper, (await taken(keeper, whoseOf("a"))) as Fake)
      await keep(keeper, server(whoseOf("d"), size))
      expect(all.map(({ ended }) => ended)).toEqual([false, true, false])
    },
  )
  it("ends when nobody called it for too long, and not before", async () => {
    vi.useFakeTimers()
    await using keeper = createKeeper<Fake>({ idleMs: 1000 })
    const one = await keep(keeper, server(whoseOf("a")))
    await vi.advanceTimersByTimeAsync(999)
    expect(one.ended).toBe(false)
    await keep(keeper, (await taken(keeper, whoseOf("a"))) as Fake)
    await vi.advanceTimersByTimeAsync(999)
    expect(one.ended).toBe(false)
    await vi.advanceTimersByTimeAsync(1)
    expect(one.ended).toBe(true)
    expect(await taken(keeper, whoseOf("a"))).toBeUndefined()
  })
  it("is forgotten when it ends by itself", async () => {
    await using keeper = createKeeper<Fake>()
    const one = await keep(keeper, server(whoseOf("a")))
    one.die()
    await one.over
    expect(await taken(keeper, whoseOf("a"))).toBeUndefined()
    expect(one.ended).toBe(true)
  })
  it("ends with the host, also where its call puts it back after that", async () => {
    const keeper = createKeeper<Fake>()
    const one = await keep(keeper, server(whoseOf("a")))
    using lane = await laneOf(keeper, "b")
    await keeper[Symbol.asyncDispose]()
    expect(one.ended).toBe(true)
    const late = server(whoseOf("b"))
    lane.put(late)
    expect(late.ended).toBe(true)
  })
})

describe("calls of one driver, workspace and user", () => {
  it("come one after the other, in their order, and hold up no others", async () => {
    await using keeper = createKeeper<Fake>()
    const first = await laneOf(keeper, "a")
    const order: string[] = []
    const next = ["b", "c"].map(async (name) => {
      using _lane = await laneOf(keeper, "a")
      order.push(name)
    })
    using _other = await laneOf(keeper, "elsewhere")
    expect(order).toEqual([])
    first[Symbol.dispose]()
    await Promise.all(next)
    expect(order).toEqual(["b", "c"])
  })
  it("leave the line when they are cancelled", async () => {
    await using keeper = createKeeper<Fake>()
    const first = await laneOf(keeper, "a")
    const cancel = new AbortController()
    const waiting = keeper.lane("a", cancel.signal)
    cancel.abort()
    expect(await waiting).toBeUndefined()
    first[Symbol.dispose]()
    using _next = await laneOf(keeper, "a")
  })
  it("are refused where too many wait already", async () => {
    await using keeper = createKeeper<Fake>({ ofOne: 2 })
    const first = await laneOf(keeper, "a")
    const waiting = [keeper.lane("a", never), keeper.lane("a", never)]
    expect(await keeper.lane("a", never)).toBe("full")
    first[Symbol.dispose]()
    for (const each of waiting) ((await each) as Lane<Fake>)[Symbol.dispose]()
    using _again = await laneOf(keeper, "a")
  })
})
