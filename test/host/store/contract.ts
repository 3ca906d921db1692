/** What every engine of the store must do. An engine adds itself by calling `storeContract` with how it is opened. */
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { type NewGrant, type NewHeldCall, singleHost, type Store } from "../../../src/host/store/store.ts"
import { callsContract, keyed, tokensContract } from "./contract-calls.ts"
import { loginsContract, offersContract, pacesContract, questionsContract } from "./contract-services.ts"
import { spendingContract } from "./contract-spending.ts"
import { began, later } from "./instants.ts"

export interface Engine extends AsyncDisposable {
  /** one more connection to the same, at first empty, store, which remembers so many settled calls */
  open(settled?: number): Promise<Store>
}

export const roomy = { count: 100, bytes: 1_000_000 }
export const heldCall = (id: string, more: Partial<NewHeldCall> = {}): NewHeldCall => ({
  ...singleHost,
  id,
  workspace: "workspace-1",
  at: began,
  holdMs: 60_000,
  bytes: 100,
  facts: { tool: "notes.write", effects: 2 },
  ...more,
})

export const grantOf = (id: string, more: Partial<NewGrant> = {}): NewGrant => ({
  id,
  tenant: "local",
  user: "alice",
  tool: "notes.write@1",
  workspace: "workspace-1",
  uses: 20,
  made: began,
  expiresMs: began.wallMs + 60_000,
  facts: { by: "ana", roles: ["approver"], reason: "ä \" '", path: "/w" },
  ...more,
})
const some = { count: 100, keepMs: 1_000 }

export const storeContract = (name: string, start: () => Promise<Engine>): unknown =>
  describe(`the store on ${name}`, () => {
    let engine: Engine
    let store: Store
    let other: Store
    beforeEach(async () => {
      engine = await start()
      store = await engine.open()
      other = await engine.open()
    })
    afterEach(async () => {
      await store[Symbol.asyncDispose]()
      await other[Symbol.asyncDispose]()
      await engine[Symbol.asyncDispose]()
    })

    it("gives back what was held, with tenant, workspace, owner and epoch, through every connection", async () => {
      const call = heldCall("a", { facts: { tool: "x", text: "ä 😀 \u0000 ' \"" } })
      expect(await store.hold(call, roomy)).toEqual({ ok: true })
      expect(await other.held("a")).toEqual({ ...call, state: "held" })
      expect(await other.held("b")).toBeUndefined()
    })

    it("remembers across closing and opening", async () => {
      await store.hold(heldCall("a"), roomy)
      await store.claim("a", "approve", "alice", later(1))
      await store[Symbol.asyncDispose]()
      await other[Symbol.asyncDispose]()
      store = await engine.open()
      other = await engine.open()
      expect(await store.held("a")).toMatchObject({ state: "deciding", claim: { number: 1, by: "alice" } })
    })

    it("lists by tenant and state, the oldest first", async () => {
      await store.hold(heldCall("b", { at: later(5) }), roomy)
      await store.hold(heldCall("a", { at: later(9) }), roomy)
      await store.hold(heldCall("c"), roomy)
      await store.hold(heldCall("d", { tenant: "another" }), roomy)
      await store.claim("b", "deny", "alice", later(10))
      const ids = async (...states: ("held" | "deciding" | "settled")[]): Promise<readonly string[]> =>
        (await other.heldList({ tenant: "local", states })).map(({ id }) => id)
      expect(await ids("held")).toEqual(["c", "a"])
      expect(await ids("held", "deciding")).toEqual(["c", "b", "a"])
      expect(await ids("settled")).toEqual([])
    })

    it.each([
      ["count", { count: 2, bytes: 1_000 }],
      ["bytes", { count: 9, bytes: 299 }],
    ])("holds up to the bound of %s and nothing beyond it, for each tenant by itself", async (at, bounds) => {
      expect(await store.hold(heldCall("a"), bounds)).toEqual({ ok: true })
      expect(await store.hold(heldCall("b"), bounds)).toEqual({ ok: true })
      expect(await store.hold(heldCall("c"), bounds)).toEqual({ ok: false, at })
      expect(await store.held("c")).toBeUndefined()
      expect(await store.hold(heldCall("d", { tenant: "another" }), bounds)).toEqual({ ok: true })
      const claimed = await store.claim("a", "deny", "alice", later(1))
      expect(await store.hold(heldCall("c"), bounds)).toEqual({ ok: false, at })
      await store.settle("a", claimed.ok ? claimed.claim.number : 0, { verdict: "approval_denied", committed: false })
      expect(await store.hold(heldCall("c"), bounds)).toEqual({ ok: true })
    })

    it("takes no second call of the same id, and the first stays as it was", async () => {
      await store.hold(heldCall("a"), roomy)
      await expect(store.hold(heldCall("a", { bytes: 7 }), roomy)).rejects.toThrow()
      expect(await store.held("a")).toMatchObject({ bytes: 100 })
    })

    it("gives a call to one decider, however many ask at once", async () => {
      await store.hold(heldCall("a"), roomy)
      const asked = await Promise.all(
        Array.from({ length: 20 }, (_, n) => (n % 2 === 0 ? store : other).claim("a", "approve", `u${n}`, later(1))),
      )
      expect(asked.filter(({ ok }) => ok)).toHaveLength(1)
      expect(asked.filter((answer) => !answer.ok && answer.why === "deciding")).toHaveLength(19)
    })

    it("tells of a call that was held what it answered in the end, and makes nothing of one that is not on record", async () => {
      const keep = { keepMs: 1_000_000, keepKeyedMs: 8_000_000 }
      await store.settleCall(keyed("a", "k"), { endedMs: 5, envelope: { said: "it waits" } }, keep)
      for (const id of ["a", "b"]) {
        await store.hold(heldCall(id), roomy)
        await store.claim(id, "approve", "bob", later(1))
      }
      const ended = { endedMs: 9, envelope: { said: "done" } }
      const outcome = { verdict: "ok", committed: true }
      expect(await store.settle("a", 2, outcome, { endedMs: 7, envelope: { said: "no" } })).toBe(false)
      expect(await store.settle("a", 1, outcome, ended)).toBe(true)
      expect(await store.settle("b", 1, outcome, ended)).toBe(true)
      expect(await other.call("a")).toMatchObject({ state: "settled", ...ended })
      expect(await other.admit(keyed("c", "k"))).toMatchObject({ ok: false, why: "known", call: ended })
      expect(await other.call("b")).toBeUndefined()
    })

    it("lets only the current claim settle or release", async () => {
      await store.hold(heldCall("a"), roomy)
      const outcome = { verdict: "ok", committed: true, receipt: "sha256:x" }
      expect(await store.settle("a", 1, outcome)).toBe(false)
      await store.claim("a", "approve", "alice", later(1))
      expect(await other.release("a", 2)).toBe(false)
      expect(await other.release("a", 1)).toBe(true)
      expect(await store.held("a")).toMatchObject({ state: "held" })
      expect(await store.claim("a", "approve", "bob", later(2))).toMatchObject({ ok: true, claim: { number: 2 } })
      // Whoever was given it first comes back from the dead.
      expect(await store.settle("a", 1, outcome)).toBe(false)
      expect(await store.release("a", 1)).toBe(false)
      expect(await store.settle("a", 2, outcome)).toBe(true)
      expect(await store.settle("a", 2, { ...outcome, committed: false })).toBe(false)
      expect(await other.held("a")).toMatchObject({ state: "settled", outcome, claim: { by: "bob" } })
      expect(await other.claim("a", "approve", "eve", later(3))).toMatchObject({ ok: false, why: "settled" })
    })

    it("knows nothing of a call that was never held", async () => {
      expect(await store.claim("a", "approve", "alice", later(1))).toEqual({ ok: false, why: "absent" })
      expect(await store.settle("a", 1, { verdict: "ok", committed: true })).toBe(false)
      expect(await store.release("a", 1)).toBe(false)
    })

    it.each([
      ["the last moment", later(59_999), true],
      ["the end of its time", later(60_000), false],
      ["the end of its time, with the wall clock set back", { ...later(60_000), wallMs: 0 }, false],
      ["within its time, with the wall clock set forward", { ...later(10), wallMs: 9e12 }, true],
      ["within its time, after a reboot", { wallMs: began.wallMs + 10, boot: "boot-b", upMs: 3 }, true],
      ["the end of its time, after a reboot", { wallMs: began.wallMs + 60_000, boot: "boot-b", upMs: 3 }, false],
      ["a reboot into a time before it was held", { wallMs: began.wallMs - 1, boot: "boot-b", upMs: 3 }, false],
    ])("is decided while its time lasts, and not after: %s", async (_when, at, isOpen) => {
      await store.hold(heldCall("a"), roomy)
      expect(await store.claim("a", "expire", "host", at)).toMatchObject(isOpen ? { why: "waiting" } : { ok: true })
      await store.release("a", 1)
      expect(await store.claim("a", "approve", "alice", at)).toMatchObject(isOpen ? { ok: true } : { why: "expired" })
    })

    it("notes the receipt of a holding", async () => {
      await store.hold(heldCall("a"), roomy)
      await store.receipted("a", "sha256:1")
      expect(await other.held("a")).toMatchObject({ receipt: "sha256:1", state: "held" })
    })

    it("keeps a number of settled calls of each tenant, and every one that is not settled", async () => {
      await using small = await engine.open(3)
      await small.hold(heldCall("first"), roomy)
      await small.hold(heldCall("another", { tenant: "another" }), roomy)
      for (const [n, id] of ["another", "a", "b", "c", "d", "e"].entries()) {
        if (id !== "another") await small.hold(heldCall(id, { at: later(n) }), roomy)
        await small.claim(id, "deny", "alice", later(n))
        await small.settle(id, 1, { verdict: "approval_denied", committed: false })
      }
      const settled = await store.heldList({ tenant: "local", states: ["settled"] })
      expect(settled.map(({ id }) => id)).toEqual(["c", "d", "e"])
      expect(await store.held("first")).toMatchObject({ state: "held" })
      expect(await store.held("another")).toMatchObject({ state: "settled" })
    })

    it("gives a grant's uses to exactly so many, however many ask at once through whichever connection", async () => {
      expect(await store.grant(grantOf("g"), some)).toBe(true)
      const asked = Array.from({ length: 50 }, (_, n) => (n % 2 === 0 ? store : other).useGrant("local", "g", later(1)))
      const given = (await Promise.all(asked)).flatMap((grant) => grant ?? [])
      expect(given.map(({ used }) => used).sort((a, b) => a - b)).toEqual(Array.from({ length: 20 }, (_, n) => n + 1))
      await store[Symbol.asyncDispose]()
      await other[Symbol.asyncDispose]()
      store = await engine.open()
      other = await engine.open()
      expect(await store.useGrant("local", "g", later(2))).toBeUndefined()
      expect(await other.grants({ tenant: "local" })).toEqual([{ ...grantOf("g"), used: 20 }])
    })

    it.each([
      ["just before its end", later(59_999), true],
      ["its end", later(60_000), false],
      ["a wall clock that is set back, when its time has passed", { ...later(60_000), wallMs: began.wallMs }, false],
      ["a wall clock set forward to its end", { ...began, wallMs: began.wallMs + 60_000 }, false],
      ["a reboot into its time", { wallMs: began.wallMs + 1, boot: "boot-b", upMs: 3 }, true],
      ["a reboot into a time before it was made", { wallMs: began.wallMs - 1, boot: "boot-b", upMs: 3 }, false],
    ])("uses a grant while its time lasts, and not after: %s", async (_when, at, isGood) => {
      await store.grant(grantOf("g"), some)
      expect((await store.useGrant("local", "g", at)) !== undefined).toBe(isGood)
    })

    it("uses no grant that was revoked, nor another tenant's, and revokes once", async () => {
      await store.grant(grantOf("g"), some)
      expect(await store.useGrant("another", "g", later(1))).toBeUndefined()
      expect(await store.revokeGrant("another", "g", 5)).toBe(false)
      expect(await store.revokeGrant("local", "g", 5)).toBe(true)
      expect(await other.revokeGrant("local", "g", 6)).toBe(false)
      expect(await other.useGrant("local", "g", later(1))).toBeUndefined()
      expect(await other.grants({ tenant: "local" })).toMatchObject([{ id: "g", used: 0, revokedMs: 5 }])
    })

    it("finds the grants that speak of a call, what ends first before the others, and no others", async () => {
      const { workspace: _any, ...anywhere } = grantOf("any", { expiresMs: began.wallMs + 10_000 })
      await store.grant(grantOf("here"), some)
      await store.grant(anywhere, some)
      await store.grant(grantOf("used", { uses: 1 }), some)
      await store.useGrant("local", "used", later(1))
      for (const [id, more] of Object.entries({
        tenant: { tenant: "another" },
        user: { user: "bob" },
        tool: { tool: "notes.write@2" },
        workspace: { workspace: "workspace-2" },
      }))
        await store.grant(grantOf(id, more), some)
      const covering = { user: "alice", tool: "notes.write@1", workspace: "workspace-1" }
      expect((await other.grants({ tenant: "local", covering })).map(({ id }) => id)).toEqual(["any", "here"])
    })

    it("keeps a number of good grants of each tenant, and forgets those that ended a while ago", async () => {
      const two = { count: 2, keepMs: 1_000 }
      expect(await store.grant(grantOf("a"), two)).toBe(true)
      expect(await store.grant(grantOf("other", { tenant: "another" }), two)).toBe(true)
      expect(await store.grant(grantOf("b"), two)).toBe(true)
      expect(await store.grant(grantOf("c"), two)).toBe(false)
      await store.revokeGrant("local", "a", began.wallMs + 1)
      expect(await store.grant(grantOf("c"), two)).toBe(true)
      expect((await store.grants({ tenant: "local" })).map(({ id }) => id)).toEqual(["a", "b", "c"])
      const late = later(2_000)
      await store.revokeGrant("local", "b", late.wallMs - 1)
      expect(await store.grant(grantOf("d", { made: late }), two)).toBe(true)
      expect((await store.grants({ tenant: "local" })).map(({ id }) => id)).toEqual(["b", "c", "d"])
    })

    it("that several open at once, while there is nothing yet, is made once and is one", async () => {
      await using fresh = await start()
      const opened = await Promise.all(Array.from({ length: 4 }, () => fresh.open()))
      try {
        for (const [n, each] of opened.entries())
          expect(await each.hold(heldCall(`c${n}`), roomy)).toEqual({ ok: true })
        expect(await opened[0]?.heldList({ tenant: "local", states: ["held"] })).toHaveLength(4)
      } finally {
        for (const each of opened) await each[Symbol.asyncDispose]()
      }
    })

    const services = [offersContract, loginsContract, pacesContract, questionsContract, spendingContract]
    for (const part of [callsContract, tokensContract, ...services]) part(() => ({ store, other }))
  })
