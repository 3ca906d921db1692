import { setImmediate as turn } from "node:timers/promises"
import { describe, expect, it } from "vitest"
import { PlainLayers } from "./fixtures/plain-layer.ts"

/** Enough for a commit to need many turns, on any machine. */
const FILES = 1500

describe("a commit of many entries", () => {
  it.each([
    ["new files", true, (index: number) => `f${index}`],
    ["files of new folders", false, (index: number) => `new/d${index % 50}/f${index}`],
  ])("lets other work of the process have its turn: %s", async (_what, single, nameOf) => {
    using layers = new PlainLayers({ kept: "kept" })
    const commit = layers.begin(Object.fromEntries(Array.from({ length: FILES }, (_, index) => [nameOf(index), "x"])))
    let turns = 0
    let done = false
    const others = (async () => {
      while (!done) {
        await turn()
        turns += 1
      }
    })()
    // Counted apart from the waits for the disk, which others have to themselves.
    const had = { begin: 0, staged: 0, journal: 0, applied: 0 }
    const result = await commit({
      failpoint: (name) => {
        if (name in had) had[name as keyof typeof had] = turns
      },
    })
    done = true
    await others
    expect(result).toEqual({ ok: true })
    expect(had.staged - had.begin).toBeGreaterThan(5)
    if (single) expect(had.applied - had.journal).toBeGreaterThan(0)
  })
})
