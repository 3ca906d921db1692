/**
 * A group of tests that need something this machine may lack.
 *
 * Guarantees: where it is missing, the group counts as one skipped test that says what is missing and how to get it;
 * neither its hooks nor its tests run.
 */
import { describe, test } from "vitest"

export const describeNeeding = (name: string, missing: string | undefined, body: () => void): void => {
  describe(name, () => {
    if (missing === undefined) body()
    else test("all of it", ({ skip }) => skip(missing))
  })
}
