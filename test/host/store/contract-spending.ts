/** What every engine of the store must do about accounts that calls are debited to. */
import { describe, expect, it } from "vitest"
import type { Spending, Store } from "../../../src/host/store/store.ts"

type Opened = () => { readonly store: Store; readonly other: Store }

const spending = (more: Partial<Spending> = {}): Spending => ({
  tenant: "local",
  units: 0,
  accounts: [{ subject: "a", sinceMs: 1_000, most: { calls: 3 } }],
  forgetMs: 0,
  ...more,
})

export const spendingContract = (opened: Opened): unknown =>
  describe("of accounts", () => {
    it("debits exactly as many calls as an account has room for, however many ask at once", async () => {
      const { store, other } = opened()
      const spent = await Promise.all(
        Array.from({ length: 8 }, (_, n) => (n % 2 === 0 ? store : other).spend(spending())),
      )
      expect(spent.filter(({ ok }) => ok)).toHaveLength(3)
      expect(await store.spend(spending())).toEqual({ ok: false, index: 0, used: { calls: 3, units: 0 } })
      expect(await store.spend(spending({ tenant: "another" }))).toEqual({ ok: true })
      const later = [{ subject: "a", sinceMs: 2_000, most: { calls: 3 } }]
      expect(await store.spend(spending({ accounts: later }))).toEqual({ ok: true })
    })
    it("debits every account of a call or none, and counts parts of units", async () => {
      const { store, other } = opened()
      const two = (units: number): Spending =>
        spending({
          units,
          accounts: [
            { subject: "wide", sinceMs: 0 },
            { subject: "narrow", sinceMs: 0, most: { units: 1 } },
          ],
        })
      expect(await store.spend(two(0.75))).toEqual({ ok: true })
      expect(await other.spend(two(0.5))).toEqual({ ok: false, index: 1, used: { calls: 1, units: 0.75 } })
      const seen = spending({ accounts: [{ subject: "wide", sinceMs: 0, most: { calls: 0 } }] })
      expect(await store.spend(seen)).toEqual({ ok: false, index: 0, used: { calls: 1, units: 0.75 } })
    })
    it("tells whether there is room, and debits nothing by telling", async () => {
      const { store, other } = opened()
      const one = [{ subject: "looked", sinceMs: 1_000, most: { calls: 1 } }]
      for (const each of [store, other, store])
        expect(await each.spend(spending({ accounts: one, look: true }))).toEqual({ ok: true })
      expect(await store.spend(spending({ accounts: one }))).toEqual({ ok: true })
      expect(await other.spend(spending({ accounts: one, look: true }))).toEqual({
        ok: false,
        index: 0,
        used: { calls: 1, units: 0 },
      })
    })
    it("forgets stretches of time that are long gone", async () => {
      const { store, other } = opened()
      await store.spend(spending())
      await store.spend(spending({ accounts: [{ subject: "b", sinceMs: 9_000 }], forgetMs: 5_000 }))
      const seen = spending({ accounts: [{ subject: "a", sinceMs: 1_000, most: { calls: 0 } }] })
      expect(await other.spend(seen)).toMatchObject({ used: { calls: 0 } })
    })
  })
