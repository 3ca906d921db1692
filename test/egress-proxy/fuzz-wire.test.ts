/** Corpus cases cut into single bytes, and bent out of shape: whatever arrives, only declared names are ever resolved. */
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { egressCases, type EgressCase } from "../corpus/egress-cases.ts"
import { faultsOnWire, judgePure, runOnWire } from "../corpus/egress-runner.ts"
import { runs, seeded } from "./arbitraries.ts"

const short = egressCases.filter((one) => one.send.length + (one.inside?.length ?? 0) < 400)
const declared = /^((api|plain|db)\.good\.test|([a-z0-9_-]+\.)+cdn\.good\.test)$/

/** A case with some bytes of what is sent replaced, inserted, dropped, or taken from another case. */
const bent = fc
  .record({
    one: fc.constantFrom(...short),
    other: fc.constantFrom(...short),
    edits: fc.array(
      fc.record({
        at: fc.double({ min: 0, max: 1, noNaN: true }),
        kind: fc.constantFrom("replace", "insert", "drop", "splice"),
        byte: fc.oneof(
          fc.integer({ min: 0, max: 255 }),
          fc.constantFrom(0, 9, 10, 13, 32, 35, 37, 46, 47, 58, 64, 91, 92, 93, 127),
        ),
      }),
      { minLength: 1, maxLength: 4 },
    ),
  })
  .map(({ one, other, edits }): EgressCase => {
    let text = one.send
    for (const { at, kind, byte } of edits) {
      const index = Math.floor(at * text.length)
      const char = String.fromCharCode(byte)
      if (kind === "replace") text = text.slice(0, index) + char + text.slice(index + 1)
      if (kind === "insert") text = text.slice(0, index) + char + text.slice(index)
      if (kind === "drop") text = text.slice(0, index) + text.slice(index + 1)
      if (kind === "splice") text = text.slice(0, index) + other.send.slice(Math.floor(at * other.send.length))
    }
    return { ...one, send: text }
  })

describe("bytes in pieces", () => {
  it("come to the same verdict one byte at a time", async () => {
    for (const one of short) expect(faultsOnWire(one, await runOnWire(one, { segment: 1 })), one.name).toEqual([])
  })
})

describe("bent bytes", () => {
  it("never crash the pure core", () => {
    fc.assert(
      fc.property(bent, (one) => {
        expect(judgePure(one)).toBeTypeOf("string")
      }),
      seeded,
    )
  })

  it("on the wire lead to no undeclared name, no internal error, and nothing left over", async () => {
    await fc.assert(
      fc.asyncProperty(bent, async (one) => {
        const seen = await runOnWire({ ...one, upstreamHas: [], clientHas: [] }, { patience: 40 })
        for (const name of seen.resolved) expect(name).toMatch(declared)
        expect(seen.verdicts.map(({ reason }) => reason)).not.toContain("internal")
        expect(seen.leftOver).toBe(0)
      }),
      { ...seeded, numRuns: Math.max(100, Math.floor(runs / 20)) },
    )
  })
})
