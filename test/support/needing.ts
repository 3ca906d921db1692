/**
 * Tests that need something this machine may lack.
 *
 * Guarantees: where it is missing, the group counts as one skipped test that says what is missing and how to get it;
 * neither its hooks nor its tests run. A single test is skipped with the same words.
 */
import { describe, test } from "vitest"

export const describeNeeding = (name: string, missing: string | undefined, body: () => void): void => {
  describe(name, () => {
    if (missing === undefined) body()
    else test("all of it", ({ skip }) => skip(missing))
  })
}

/** For what only root can do. */
export const noRoot = process.getuid?.() === 0 ? undefined : "only root can do this: run the suite as root too"

export const testNeeding = (name: string, missing: string | undefined, body: () => void | Promise<void>): void =>
  test(name, async ({ skip }) => {
    if (missing !== undefined) skip(missing)
    await body()
  })
