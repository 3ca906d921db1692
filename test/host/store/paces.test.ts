/** When a request's turn is. What a store makes of it is in its contract. */
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { nextTurn } from "../../../src/host/store/paces.ts"

const MINUTE = 60_000

describe("a turn", () => {
  const rate = { perMinute: 60, burst: 3 }
  // biome-ignore format: a table reads by rows
  it.each([
    ["is now where nothing was asked yet", { dueMs: 0, pauseMs: 0 }, rate, 0, { given: true, waitMs: 0, dueMs: 1000 }],
    ["is now within the burst", { dueMs: 2000, pauseMs: 0 }, rate, 0, { given: true, waitMs: 0, dueMs: 3000 }],
    ["is waited for after the burst", { dueMs: 3000, pauseMs: 0 }, rate, 1000, { given: true, waitMs: 1000, dueMs: 4000 }],
    ["is not waited for longer than one wants to", { dueMs: 3000, pauseMs: 0 }, rate, 999, { given: false, waitMs: 1000, dueMs: 3000, why: "rate" }],
    ["is after what the service asked for", { dueMs: 0, pauseMs: 700 }, rate, 1000, { given: true, waitMs: 700, dueMs: 1700, why: "asked" }],
    ["of no rate is after what the service asked for", { dueMs: 9000, pauseMs: 700 }, undefined, 0, { given: false, waitMs: 700, why: "asked" }],
    ["of no rate is now", { dueMs: 9000, pauseMs: 0 }, undefined, 0, { given: true, waitMs: 0 }],
  ])("%s", (_what, pace, rule, patienceMs, expected) => {
    expect(nextTurn(pace, { patienceMs, ...(rule === undefined ? {} : { rate: rule }) })).toMatchObject(expected)
  })
  it("is never given to more than the burst and the rate of any stretch of time together", () => {
    const asked = fc.array(fc.integer({ min: 0, max: 5_000 }), { maxLength: 60 })
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 600 }),
        fc.integer({ min: 1, max: 10 }),
        asked,
        (perMinute, burst, gaps) => {
          let dueMs = 0
          let now = 0
          const sent: number[] = []
          for (const gap of gaps) {
            now += gap
            dueMs = Math.max(0, dueMs - gap)
            const turn = nextTurn({ dueMs, pauseMs: 0 }, { rate: { perMinute, burst }, patienceMs: 3_000 })
            if (turn.given) sent.push(now + turn.waitMs)
            dueMs = turn.dueMs
          }
          // A turn may be told a millisecond late, never early.
          for (const [i, from] of sent.entries())
            for (const [j, to] of sent.entries())
              if (j > i) expect(j - i + 1).toBeLessThanOrEqual(burst + ((to - from + 1) * perMinute) / MINUTE)
        },
      ),
    )
  })
})
