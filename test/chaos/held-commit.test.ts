import { describe, expect, it } from "vitest"
import { listTree } from "../sandbox/effects/fixtures/tree.ts"
import { modes } from "../sandbox/effects/fixtures/workspaces.ts"
import { heldWith } from "../sandbox/layers/held-layers.ts"

const before = "mkdir a gone; echo one > a/one; echo x > gone/x; echo keep > keep"
const run = "echo ONE > a/one; rm -r gone; mkdir made; echo in > made/in; chmod 600 keep"

/** An emulated machine, where each kill takes a quarter of a minute, shows a sample of them. */
const sample = Number(process.env["CAISSON_TEST_PATIENCE"] ?? 1) > 1 ? 7 : 1

describe.each(modes)("the commit of a held layer, killed at any step, in %s mode", (mode) => {
  it("leaves the workspace as before or as after, and after recovery a note exactly where it stands", {
    timeout: 1_800_000,
  }, () => {
    using whole = heldWith(before, run, mode)
    const was = listTree(whole.dir)
    const { result, steps = 0 } = whole.commit()
    expect(result).toEqual({ ok: true })
    const is = listTree(whole.dir)
    expect(steps).toBeGreaterThan(15)
    const seen = { before: 0, after: 0 }
    for (let killAt = 0; killAt < steps; killAt += sample) {
      using workspace = heldWith(before, run, mode)
      expect(workspace.commit(killAt).result, `step ${killAt}`).toBeUndefined()
      workspace.recover(mode)
      const now = listTree(workspace.dir)
      expect([was, is], `step ${killAt}`).toContainEqual(now)
      const stands = JSON.stringify(now) === JSON.stringify(is)
      expect(workspace.stands, `step ${killAt}`).toBe(stands)
      expect(workspace.leftovers().filter((name) => name !== "undone-01HELD")).toEqual(
        stands ? ["finished-01HELD"] : [],
      )
      seen[stands ? "after" : "before"]++
      // What did not come about can be done again, as it was held.
      if (!stands && killAt % 5 === 0) {
        expect(workspace.commit().result).toEqual({ ok: true })
        expect(listTree(workspace.dir)).toEqual(is)
      }
    }
    expect(seen.before).toBeGreaterThan(0)
    expect(seen.after).toBeGreaterThan(0)
  })
})
