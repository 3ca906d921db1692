/** A PostgreSQL that goes away in the middle: what was asked takes place once, whether or not anybody heard so. */
import { afterAll, beforeAll, expect, it } from "vitest"
import { postgresSettings } from "../../../src/host/store/postgres/settings.ts"
import { openPostgresStore } from "../../../src/host/store/postgres/store.ts"
import type { Store } from "../../../src/host/store/store.ts"
import { cutCommits } from "../../support/cut-commits.ts"
import { describeNeeding } from "../../support/needing.ts"
import { noPostgres, type PostgresServer, startPostgresServer } from "../../support/servers/postgres.ts"
import { heldCall, roomy } from "./contract.ts"
import { keyed } from "./contract-calls.ts"
import { later } from "./instants.ts"

const keep = { keepMs: 1e9, keepKeyedMs: 8e9 }
const login = (user: string) => ({ tenant: "local", driver: "d@1", workspace: "w", user })
const change = { state: "authed", facts: { name: "", manifest: "", freshness: 0, setup: {} } } as const

const opened = (url: string, waitMs: number, port?: number): Promise<Store> => {
  const read = postgresSettings(url, { verify: true })
  if (!read.ok) throw new Error(read.message)
  const settings = port === undefined ? read.settings : { ...read.settings, port }
  return openPostgresStore(settings, { owner: "local", waitMs })
}

describeNeeding("a store whose PostgreSQL goes away", noPostgres, () => {
  let server: PostgresServer
  beforeAll(async () => {
    server = await startPostgresServer()
  }, 120_000)
  afterAll(() => server[Symbol.asyncDispose]())

  it.each(["before", "after"] as const)(
    "does what was asked once where the way breaks %s the commit",
    async (where) => {
      const url = await server.database()
      await using way = await cutCommits(server.port)
      await using store = await opened(url, 30_000, way.port)
      const cutting = async <T>(verb: () => Promise<T>): Promise<T> => {
        const cut = way.cut(where)
        const result = await verb()
        await cut
        return result
      }
      expect(await cutting(() => store.hold(heldCall("a"), roomy))).toEqual({ ok: true })
      expect(await cutting(() => store.claim("a", "approve", "alice", later(1)))).toMatchObject({
        ok: true,
        claim: { number: 1 },
      })
      expect(await cutting(() => store.release("a", 1))).toBe(true)
      expect(await store.claim("a", "deny", "alice", later(1))).toMatchObject({ claim: { number: 2 } })
      expect(await cutting(() => store.settle("a", 2, { verdict: "ok", committed: true }))).toBe(true)
      expect(await cutting(() => store.changeLogin(login("u"), 0, change))).toMatchObject({ generation: 1 })
      expect(await cutting(() => store.changeLogin(login("u"), 1, change))).toMatchObject({ generation: 2 })
      expect(await store.login(login("u"))).toMatchObject({ generation: 2 })
    },
  )

  it("loses nothing and does nothing twice while the server is stopped and started under load", {
    timeout: 240_000,
  }, async () => {
    const url = await server.database()
    const stores = [await opened(url, 60_000), await opened(url, 60_000)]
    const admitted = new Map<string, number>()
    const changes = new Map<string, number>()
    const claims = new Map<string, number>()
    let going = true
    let made = 0
    const count = (map: Map<string, number>, name: string): unknown => map.set(name, (map.get(name) ?? 0) + 1)
    const work = async (worker: number): Promise<void> => {
      const user = `u${worker}`
      for (let n = 0; going || n < 20; n += 1) {
        const key = `${worker}-${n}`
        const twice = await Promise.all(stores.map((store, i) => store.admit(keyed(`${key}-${i}`, key))))
        for (const [i, answer] of twice.entries()) {
          if (!answer.ok) continue
          count(admitted, key)
          await stores[i]?.settleCall(keyed(`${key}-${i}`, key), { endedMs: n, envelope: { key } }, keep)
        }
        const [one] = stores
        const seen = await one?.login(login(user))
        if ((await one?.changeLogin(login(user), seen?.generation ?? 0, change)) !== undefined) count(changes, user)
        expect(await one?.hold(heldCall(key), { count: 1e6, bytes: 1e12 })).toEqual({ ok: true })
        for (const answer of await Promise.all(stores.map((store) => store.claim(key, "approve", user, later(1)))))
          if (answer.ok) count(claims, key)
        made += 1
      }
    }
    try {
      const workers = Array.from({ length: 6 }, (_, n) => work(n))
      const stopping = (async () => {
        for (const signal of ["SIGINT", "SIGQUIT", "SIGINT", "SIGQUIT"] as const) {
          const before = made
          // Some work between two stops, so that each hits some.
          while (made < before + 12)
            await Promise.race([Promise.all(workers), new Promise((resolve) => setTimeout(resolve, 5))])
          await server.stop(signal)
          await server.start()
        }
      })().finally(() => (going = false))
      await Promise.all([...workers, stopping])
      const [store] = stores
      const calls = (await store?.calls({ tenant: "local", limit: 1e6 })) ?? []
      expect(calls.length).toBe(made)
      expect(calls.filter(({ state }) => state !== "settled")).toEqual([])
      expect([...admitted.values()].filter((times) => times !== 1)).toEqual([])
      expect(admitted.size).toBe(made)
      expect([...claims.values()].filter((times) => times !== 1)).toEqual([])
      expect(claims.size).toBe(made)
      for (const [user, times] of changes) expect(await store?.login(login(user))).toMatchObject({ generation: times })
    } finally {
      going = false
      for (const store of stores) await store[Symbol.asyncDispose]()
    }
  })
})
