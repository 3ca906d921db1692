import { describe, expect, it } from "vitest"
import { writeSetCases } from "../../corpus/write-set-cases.ts"
import { modes, summary, Workspace } from "./fixtures/workspaces.ts"

describe.each(modes)("the write set of a layer, in %s mode", (mode) => {
  it.each(writeSetCases)("tells of $name", ({ before, run, effects, details, refused }) => {
    using workspace = new Workspace(before)
    const { writes } = workspace.layer({ mode, run })
    expect(summary(writes)).toEqual(effects)
    for (const [path, part] of Object.entries(details ?? {})) {
      expect(writes?.effects.find((effect) => effect.path === path)).toMatchObject(part)
    }
    expect(writes?.effects.filter((effect) => effect.refused !== undefined).map((effect) => effect.path)).toEqual(
      refused ?? [],
    )
  })
})
