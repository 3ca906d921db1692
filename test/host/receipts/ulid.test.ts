import { expect, it } from "vitest"
import { createUlids } from "../../../src/host/data/ulid.ts"

it("makes 26 characters of Crockford base 32 that carry the time", () => {
  const next = createUlids(
    () => 1_469_918_176_385,
    () => new Uint8Array(10),
  )
  expect(next()).toBe("01ARYZ6S410000000000000000")
})

it("goes up within one millisecond, when the clock steps back and when the random part overflows", () => {
  const times = [5, 5, 4, 5, 6, 6]
  const full = new Uint8Array(10).fill(255)
  const next = createUlids(
    () => times.shift() as number,
    () => full,
  )
  const ids = Array.from({ length: 6 }, () => next())
  expect(ids.toSorted()).toEqual(ids)
  expect(new Set(ids).size).toBe(6)
})
