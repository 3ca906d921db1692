import { describe, expect, it } from "vitest"
import { listTree } from "../sandbox/effects/fixtures/tree.ts"
import { modes, Workspace } from "../sandbox/effects/fixtures/workspaces.ts"
import { patience } from "../support/patience.ts"
import { before, run } from "./mutations.ts"

const places = [
  { place: "the data folder", far: false },
  { place: "the workspace, its journal on another file system", far: true },
] as const

/** An emulated machine, where each kill takes a quarter of a minute, shows a sample of them. */
const sample = patience > 1 ? 11 : 1

describe.each(modes)("a commit killed at any step, in %s mode", (mode) => {
  describe.each(places)("with its content staged in $place", ({ far }) => {
    const where = (workspace: Workspace) => ({ dataDir: far ? workspace.farDataDir : workspace.dataDir })
    const whole = (): { was: string[]; is: string[]; steps: number } => {
      using workspace = new Workspace(before)
      const was = listTree(workspace.dir)
      const { result, steps } = workspace.layer({ mode, run, commit: where(workspace) })
      expect(result).toEqual({ ok: true })
      return { was, is: listTree(workspace.dir), steps: steps ?? 0 }
    }

    it("leaves the workspace as before or as after, and recovery leaves nothing else", { timeout: 1_800_000 }, () => {
      const { was, is, steps } = whole()
      expect(was).not.toEqual(is)
      expect(steps).toBeGreaterThan(30)
      const stride = (far ? 2 : 1) * sample
      const seen = { before: 0, after: 0 }
      for (let killAt = 0; killAt < steps; killAt += stride) {
        using workspace = new Workspace(before)
        expect(workspace.layer({ mode, run, commit: { ...where(workspace), killAt } }).killed, `step ${killAt}`).toBe(
          true,
        )
        workspace.recover(mode, where(workspace))
        const now = listTree(workspace.dir)
        expect([was, is], `step ${killAt}`).toContainEqual(now)
        expect(workspace.leftovers()).toEqual([])
        seen[now.length === was.length && now.every((line, index) => line === was[index]) ? "before" : "after"]++
      }
      expect(seen.before).toBeGreaterThan(0)
      if (stride === 1) expect(seen.after).toBeGreaterThan(0)
    })
  })

  it("is undone even if recovery itself is killed again and again", { timeout: 1_800_000 }, () => {
    using workspace = new Workspace(before)
    const was = listTree(workspace.dir)
    // The last step before the mark of completion: everything is applied.
    const killAt = "synced"
    expect(workspace.layer({ mode, run, commit: { dataDir: workspace.dataDir, killAt } }).killed).toBe(true)
    expect(listTree(workspace.dir)).not.toEqual(was)
    let rounds = 0
    while (workspace.recover(mode, { killAt: 2 + rounds * 3 }) === "killed") rounds++
    expect(rounds).toBeGreaterThan(3)
    expect(listTree(workspace.dir)).toEqual(was)
    expect(workspace.leftovers()).toEqual([])
  })
})
