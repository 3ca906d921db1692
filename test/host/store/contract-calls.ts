/** Of the store's contract: calls under their keys, and tokens. */
import { describe, expect, it } from "vitest"
import { type CallRecord, type NewCall, type NewToken, singleHost, type Store } from "../../../src/host/store/store.ts"

/** Two connections to one store, opened anew for each test. */
export interface Opened {
  readonly store: Store
  readonly other: Store
}

const keep = { keepMs: 1_000_000, keepKeyedMs: 8_000_000 }
export const newCall = (id: string, more: Partial<NewCall> = {}): NewCall => ({
  tenant: "local",
  epoch: 1,
  id,
  user: "alice",
  actor: "agent",
  workspace: "/w",
  tool: "notes.write",
  beganMs: 1_000,
  ...more,
})
export const keyed = (id: string, digest: string, payload = "p", more: Partial<NewCall> = {}): NewCall =>
  newCall(id, { key: { digest, payload }, ...more })
const settled = (call: NewCall, endedMs: number, said: string): CallRecord => ({
  ...singleHost,
  ...call,
  state: "settled",
  endedMs,
  envelope: { said },
})
const ids = (calls: readonly CallRecord[]): readonly string[] => calls.map(({ id }) => id)

export const callsContract = (opened: () => Opened): unknown =>
  describe("of calls", () => {
    it("tells of a call as it was admitted and as it ended, through every connection", async () => {
      const { store, other } = opened()
      const odd = "ä 😀 ' \" \u0000 \uFFFE \uFFFE0 \u{10FFFF} ?"
      const call = keyed("a", "k", odd, { user: odd, workspace: odd, tool: odd, actor: odd })
      expect(await store.admit(call)).toEqual({ ok: true })
      expect(await other.call("a")).toEqual({ ...singleHost, ...call, state: "running" })
      await other.settleCall(call, { endedMs: 5, envelope: { said: odd } }, keep)
      expect(await store.call("a")).toEqual(settled(call, 5, odd))
      expect(await store.call("b")).toBeUndefined()
    })

    it("lets a key stand for one call, and tells another payload from the same", async () => {
      const { store, other } = opened()
      await store.admit(keyed("a", "k"))
      expect(await other.admit(keyed("b", "k"))).toMatchObject({ ok: false, why: "known", call: { id: "a" } })
      expect(await other.admit(keyed("b", "k", "q"))).toMatchObject({ ok: false, why: "other-payload" })
      expect(await store.call("b")).toBeUndefined()
      expect(await other.admit(keyed("c", "l"))).toEqual({ ok: true })
      await store.settleCall(keyed("a", "k"), { endedMs: 5, envelope: { said: "x" } }, keep)
      expect(await other.admit(keyed("d", "k"))).toMatchObject({
        ok: false,
        why: "known",
        call: settled(keyed("a", "k"), 5, "x"),
      })
    })

    it("of many that bring one key at once admits one", async () => {
      const { store, other } = opened()
      const asked = await Promise.all(
        Array.from({ length: 24 }, (_, n) => (n % 2 === 0 ? store : other).admit(keyed(`c${n}`, "k"))),
      )
      const admitted = asked.flatMap((answer, n) => (answer.ok ? [`c${n}`] : []))
      expect(admitted).toHaveLength(1)
      for (const answer of asked)
        if (!answer.ok) expect(answer).toMatchObject({ why: "known", call: { id: admitted[0] } })
    })

    it("remembers the first answer of a call, also of one that was never admitted", async () => {
      const { store, other } = opened()
      await store.settleCall(newCall("a"), { endedMs: 5, envelope: { said: "first" } }, keep)
      await other.settleCall(newCall("a"), { endedMs: 6, envelope: { said: "second" } }, keep)
      expect(await other.call("a")).toEqual(settled(newCall("a"), 5, "first"))
    })

    it("lists calls by tenant, user and state, the latest first, and what is open of every tenant", async () => {
      const { store, other } = opened()
      for (const [n, id] of ["a", "b", "B", "c"].entries())
        await store.settleCall(newCall(id, { beganMs: n < 3 ? 2 : 1 }), { endedMs: 9, envelope: {} }, keep)
      await store.admit(keyed("d", "d", "p", { user: "bob", beganMs: 9 }))
      await store.admit(keyed("e", "e", "p", { tenant: "another" }))
      expect(ids(await other.calls({ tenant: "local", limit: 9 }))).toEqual(["d", "b", "a", "B", "c"])
      expect(ids(await other.calls({ tenant: "local", user: "alice", limit: 2 }))).toEqual(["b", "a"])
      expect(ids(await other.calls({ tenant: "local", state: "running", limit: 9 }))).toEqual(["d"])
      expect(ids(await other.openCalls())).toEqual(["d", "e"])
    })

    it("forgets calls that ended when their time is over, those with a key later, and none that runs", async () => {
      const { store, other } = opened()
      const ended = { endedMs: 0, envelope: {} }
      await store.admit(keyed("runs", "r"))
      await store.settleCall(newCall("plain"), ended, keep)
      await store.settleCall(keyed("keyed", "k"), ended, keep)
      await store.settleCall(newCall("later"), { endedMs: keep.keepMs, envelope: {} }, keep)
      expect(await other.call("plain")).toBeDefined()
      await store.settleCall(newCall("then"), { endedMs: keep.keepMs + 60_001, envelope: {} }, keep)
      expect([await other.call("plain"), await other.call("keyed")]).toEqual([undefined, expect.anything()])
      await store.settleCall(newCall("last"), { endedMs: keep.keepKeyedMs + 1, envelope: {} }, keep)
      expect(await other.call("keyed")).toBeUndefined()
      expect(await other.admit(keyed("again", "k"))).toEqual({ ok: true })
      expect(await other.call("runs")).toMatchObject({ state: "running" })
    })
  })

const token = (id: string, more: Partial<NewToken> = {}): NewToken => ({
  id,
  tenant: "local",
  hash: `hash-${id}`,
  facts: {
    user: "alice",
    label: "ä\u0000",
    agent: true,
    workspaces: ["/w"],
    roles: ["operator"],
    mayApprove: false,
    by: "op",
  },
  madeMs: 5,
  ...more,
})

export const tokensContract = (opened: () => Opened): unknown =>
  describe("of tokens", () => {
    it("finds a token by its hash, and lists those of a tenant in the order they were made", async () => {
      const { store, other } = opened()
      await store.issueToken(token("b", { expiresMs: 9, madeMs: 6 }))
      await store.issueToken(token("c"))
      await store.issueToken(token("a"))
      await store.issueToken(token("d", { tenant: "another" }))
      expect(await other.token("hash-b")).toEqual(token("b", { expiresMs: 9, madeMs: 6 }))
      expect(await other.token("hash-x")).toBeUndefined()
      expect((await other.tokens("local")).map(({ id }) => id)).toEqual(["a", "c", "b"])
    })
    it("takes no second token of one id or one hash", async () => {
      const { store, other } = opened()
      await store.issueToken(token("a"))
      await expect(other.issueToken(token("a", { hash: "other" }))).rejects.toThrow()
      await expect(other.issueToken(token("b", { hash: "hash-a" }))).rejects.toThrow()
      expect(await store.tokens("local")).toEqual([token("a")])
    })
    it("revokes a token once, and only its own tenant's", async () => {
      const { store, other } = opened()
      await store.issueToken(token("a"))
      expect(await other.revokeToken("another", "a", 7)).toBe(false)
      expect(await other.revokeToken("local", "a", 8)).toBe(true)
      expect(await store.revokeToken("local", "a", 9)).toBe(false)
      expect(await store.token("hash-a")).toMatchObject({ revokedMs: 8 })
    })
  })
