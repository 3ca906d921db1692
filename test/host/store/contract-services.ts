/** Of the store's contract: offers, logins and paces. */
import { describe, expect, it } from "vitest"
import { hostLimits } from "../../../src/host/limits.ts"
import type { Instant } from "../../../src/host/store/instant.ts"
import type { LoginFacts, LoginKey, NewOffer, NewQuestion, Store } from "../../../src/host/store/store.ts"
import type { Opened } from "./contract-calls.ts"
import { began, later } from "./instants.ts"

const offer = (digest: string, change: Partial<NewOffer> = {}): NewOffer => ({
  tenant: "local",
  subject: "driver",
  name: "tool",
  word: { digest, text: `"${digest}"` },
  atMs: 1,
  ...change,
})
const acceptance = (digest: string, tenant = "local") => ({ tenant, subject: "driver", digest, by: "op", atMs: 2 })

export const offersContract = (opened: () => Opened): unknown =>
  describe("of offers", () => {
    it("have their first word accepted, and any other waiting, across processes", async () => {
      const { store, other } = opened()
      expect(await store.offered(offer("a"))).toMatchObject({ first: true, offer: { accepted: { digest: "a" } } })
      expect(await other.offered(offer("a"))).toMatchObject({ first: false })
      const heard = await other.offered(offer("b"))
      expect(heard).toMatchObject({ first: false, offer: { accepted: { digest: "a" }, waiting: { digest: "b" } } })
      expect(await store.offered(offer("a"))).toMatchObject({ offer: { accepted: { digest: "a" } } })
    })
    it("are accepted by the digest that waits, and no other", async () => {
      const { store } = opened()
      await store.offered(offer("a"))
      await store.offered(offer("b"))
      await store.offered(offer("c"))
      expect(await store.acceptOffer(acceptance("b"))).toBeUndefined()
      expect(await store.acceptOffer(acceptance("c", "another"))).toBeUndefined()
      expect(await store.acceptOffer(acceptance("c"))).toEqual({
        name: "tool",
        accepted: { digest: "c", text: '"c"', atMs: 2, by: "op" },
      })
      expect(await store.acceptOffer(acceptance("c"))).toBeUndefined()
      expect((await store.offered(offer("a"))).offer).toMatchObject({ waiting: { digest: "a" } })
    })
    it("of one subject, tenant and name are nobody else's", async () => {
      const { store } = opened()
      await store.offered(offer("a"))
      for (const other of [{ tenant: "t" }, { subject: "s" }, { name: "n" }])
        expect(await store.offered(offer("b", other))).toMatchObject({ first: true })
      expect(await store.offers("local", "driver")).toMatchObject([{ name: "n" }, { name: "tool" }])
    })
    it("that come at once have one first", async () => {
      const { store: one, other: two } = opened()
      const heard = await Promise.all([one, two, one, two].map((store, i) => store.offered(offer(`d${i}`))))
      expect(heard.filter(({ first }) => first)).toHaveLength(1)
      const accepted = new Set(heard.map((each) => each.offer.accepted.digest))
      expect(accepted.size).toBe(1)
    })
  })

const key: LoginKey = { tenant: "local", driver: "gh@1 file:/a", workspace: "w-1", user: "alice" }
const facts: LoginFacts = { name: "gh@1", manifest: "sha256:a", freshness: 1, setup: {}, account: "ä 😀 \u0000 '" }

export const loginsContract = (opened: () => Opened): unknown =>
  describe("of logins", () => {
    it("are there as they were written, through every connection", async () => {
      const { store, other } = opened()
      const whole: LoginFacts = {
        ...facts,
        proven: began,
        refreshed: began,
        refreshMs: 5,
        expiresMs: 6,
        failure: { at: began, of: "refresh", message: "no network", coolDownMs: 30 },
        setup: { init: { atMs: 7 }, pick: { atMs: 8, skipped: true } },
        expiredSecrets: "sha256:b",
      }
      expect(await store.login(key)).toBeUndefined()
      expect(await store.changeLogin(key, 0, { state: "authed", facts: whole })).toMatchObject({ generation: 1 })
      expect(await other.login(key)).toEqual({ ...key, state: "authed", generation: 1, facts: whole })
      expect(await other.logins("local")).toEqual([{ ...key, state: "authed", generation: 1, facts: whole }])
      expect(await other.logins("another")).toEqual([])
    })

    it("change only on the generation that the change was made for", async () => {
      const { store } = opened()
      expect(await store.changeLogin(key, 3, { state: "authed", facts })).toBeUndefined()
      await store.changeLogin(key, 0, { state: "unauthed", facts })
      expect(await store.changeLogin(key, 0, { state: "authed", facts })).toBeUndefined()
      expect(await store.changeLogin(key, 1, { state: "logging-in", facts })).toMatchObject({ generation: 2 })
      expect(await store.changeLogin(key, 1, { state: "authed", facts })).toBeUndefined()
      expect(await store.login(key)).toMatchObject({ state: "logging-in", generation: 2 })
    })

    it.each([
      ["tenant", { tenant: "other" }],
      ["driver of another origin", { driver: "gh@1 file:/b" }],
      ["major", { driver: "gh@2 file:/a" }],
      ["workspace", { workspace: "w-2" }],
      ["user", { user: "bob" }],
    ])("of one are nothing to another %s", async (_what, other) => {
      const { store } = opened()
      await store.changeLogin(key, 0, { state: "authed", facts })
      expect(await store.login({ ...key, ...other })).toBeUndefined()
      expect(await store.changeLogin({ ...key, ...other }, 1, { state: "unauthed", facts })).toBeUndefined()
      expect(await store.login(key)).toMatchObject({ state: "authed", generation: 1 })
    })

    it("of many that change one at once, each generation has one author", async () => {
      const { store, other } = opened()
      const changed = await Promise.all(
        Array.from({ length: 12 }, (_, n) =>
          (n % 2 === 0 ? store : other).changeLogin(key, 0, { state: "authed", facts }),
        ),
      )
      expect(changed.filter((each) => each !== undefined)).toHaveLength(1)
    })
    it("are listed by user, driver and workspace, byte by byte", async () => {
      const { store } = opened()
      for (const user of ["b", "B", "a", "ä", "_"])
        await store.changeLogin({ ...key, user }, 0, { state: "authed", facts })
      expect((await store.logins("local")).map(({ user }) => user)).toEqual(["B", "_", "a", "b", "ä"])
    })
  })

const MINUTE = 60_000
export const pacesContract = (opened: () => Opened): unknown =>
  describe("of a pace that processes share", () => {
    const rate = { perMinute: 6, burst: 2 }
    const ask = (store: Store, at: Instant, subject = "a", patienceMs = 0) =>
      store.turn({ tenant: "local", subject, at, rate, patienceMs })

    it("is one, and another subject has its own", async () => {
      const { store: one, other } = opened()
      expect(await ask(one, began)).toMatchObject({ given: true })
      expect(await ask(other, began)).toMatchObject({ given: true })
      expect(await ask(one, began)).toMatchObject({ given: false, waitMs: 10_000 })
      expect(await ask(other, began, "b")).toMatchObject({ given: true })
      expect(await ask(other, later(10_000))).toMatchObject({ given: true, waitMs: 0 })
    })
    it("keeps a turn for whoever waits for it", async () => {
      const { store: one, other } = opened()
      await ask(one, began)
      await ask(one, began)
      expect(await ask(one, began, "a", MINUTE)).toMatchObject({ given: true, waitMs: 10_000 })
      expect(await ask(other, began, "a", MINUTE)).toMatchObject({ given: true, waitMs: 20_000 })
    })
    it("holds what a service asked for, the longest of it, and no longer than its limit", async () => {
      const { store: one, other } = opened()
      const pause = { tenant: "local", subject: "a" }
      await one.pause({ ...pause, at: began, forMs: 30_000 })
      await other.pause({ ...pause, at: later(1000), forMs: 1_000 })
      expect(await ask(one, later(2000))).toMatchObject({ given: false, waitMs: 28_000, why: "asked" })
      await one.pause({ ...pause, at: later(2000), forMs: Number.MAX_SAFE_INTEGER })
      expect(await ask(one, later(2000))).toMatchObject({ waitMs: hostLimits.paceMs.value })
    })
    it("is not lengthened or shortened by a wall clock that is set", async () => {
      const { store: one } = opened()
      await one.pause({ tenant: "local", subject: "a", at: began, forMs: 30_000 })
      for (const wallMs of [0, 10 ** 13])
        expect(await ask(one, { ...later(10_000), wallMs })).toMatchObject({ given: false, waitMs: 20_000 })
    })
    it("is over after a restart of the machine once the wall clock says so, or cannot tell", async () => {
      const { store: one } = opened()
      await one.pause({ tenant: "local", subject: "a", at: began, forMs: 30_000 })
      const again = { ...later(10_000), boot: "boot-b", upMs: 5 }
      expect(await ask(one, again)).toMatchObject({ given: false, waitMs: 20_000 })
      expect(await ask(one, { ...again, wallMs: 0 })).toMatchObject({ given: true })
    })
  })

const question = (id: string, more: Partial<NewQuestion> = {}): NewQuestion => ({
  tenant: "local",
  id,
  asker: "alice",
  actor: "alice",
  tool: "notes.write@1",
  digest: id,
  text: "{}",
  askedMs: 1,
  expiresMs: 60_000,
  ...more,
})
export const questionsContract = (opened: () => Opened): unknown =>
  describe("of questions to people", () => {
    const bounds = { count: 6, ofOne: 3 }
    const askMany = async (store: Store, actor: string, ids: readonly string[], tenant = "local") => {
      const asked: boolean[] = []
      for (const id of ids)
        asked.push((await store.ask(question(`${actor}-${id}`, { actor, tenant }), bounds)) !== undefined)
      return asked
    }

    it("leave room for those of others, however many one caller asks", async () => {
      const { store, other } = opened()
      expect(await askMany(store, "mallory", ["1", "2", "3", "4", "5", "6", "7"])).toEqual([
        ...[true, true, true],
        ...[false, false, false, false],
      ])
      // The same again is the one that is open.
      expect(await askMany(other, "mallory", ["1"])).toEqual([true])
      expect(await askMany(other, "alice", ["1", "2", "3", "4"])).toEqual([true, true, true, false])
      expect(await askMany(other, "bob", ["1"])).toEqual([false])
      expect(await askMany(other, "bob", ["1"], "globex")).toEqual([true])
    })

    it("leave room for another one once a person answered", async () => {
      const { store } = opened()
      expect(await askMany(store, "mallory", ["1", "2", "3", "4"])).toEqual([true, true, true, false])
      expect(await store.answerAsked("local", "mallory-1", "no", "ana", 2)).toBe(true)
      expect(await askMany(store, "mallory", ["4", "5"])).toEqual([true, false])
    })
  })
