import { getHeapSpaceStatistics } from "node:v8"
import { expect, it } from "vitest"
import { Rest } from "../../src/daemon/ops/rest.ts"

const MiB = 1024 * 1024
const newSpace = (): number =>
  getHeapSpaceStatistics().find(({ space_name }) => space_name === "new_space")?.space_size ?? 0
/** Work of which much is still wanted whenever V8 looks. */
const work = (): void => {
  for (let round = 0; newSpace() < 8 * MiB && round < 200; round += 1)
    expect(Array.from({ length: 100_000 }, (_, n) => ({ n })).length).toBe(100_000)
}

it("gives memory back when nothing was to do for a while, not while a call is under way, and again after more work", async () => {
  let [count, looks] = [1, 0]
  using rest = new Rest(() => {
    looks += 1
    return count
  }, 10)
  work()
  await expect.poll(() => looks).toBeGreaterThan(2)
  expect(newSpace()).toBeGreaterThanOrEqual(8 * MiB)
  count = 0
  await expect.poll(newSpace).toBeLessThan(4 * MiB)
  const before = looks
  work()
  expect(newSpace()).toBeGreaterThanOrEqual(8 * MiB)
  expect(looks).toBe(before)
  rest.worked()
  await expect.poll(newSpace).toBeLessThan(4 * MiB)
})
