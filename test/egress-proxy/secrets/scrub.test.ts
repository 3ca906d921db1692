import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { createScrubber, scrubbed, spellingsOf } from "../../../src/egress-proxy/secrets/scrub.ts"

const value = 'ghp_real/value+0123&"é'
const spellings = spellingsOf(value)
const latin = Buffer.from(value, "latin1")
const utf8 = Buffer.from(value, "utf8")

function pass(bytes: Buffer, sizes: readonly number[]): Buffer {
  const scrubber = createScrubber(spellings)
  const out: Buffer[] = []
  for (let at = 0, turn = 0; at < bytes.length; turn += 1) {
    const size = sizes[turn % sizes.length] as number
    out.push(scrubber.push(bytes.subarray(at, at + size)))
    at += size
  }
  return Buffer.concat([...out, scrubber.end()])
}

describe("a secret in what an upstream sends back", () => {
  const filler = fc.uint8Array({ maxLength: 60 }).map((bytes) => Buffer.from(bytes))
  const cuts = fc.array(fc.integer({ min: 1, max: 12 }), { minLength: 1, maxLength: 12 })
  const plain: Readonly<Record<string, Buffer>> = {
    "as it is": latin,
    "in UTF-8": utf8,
    "percent-encoded": Buffer.from(encodeURIComponent(value)),
    "percent-encoded in every byte": Buffer.from(utf8.toString("hex").replace(/../g, "%$&")),
    "in hex": Buffer.from(utf8.toString("hex").toUpperCase()),
    "in JSON": Buffer.from(JSON.stringify(value).slice(1, -1)),
    "in JSON of PHP": Buffer.from(JSON.stringify(value).slice(1, -1).replaceAll("/", "\\/")),
    "in JSON of ASCII alone": Buffer.from(
      JSON.stringify(value)
        .slice(1, -1)
        .replace(/[^ -~]/g, (sign) => `\\u${sign.charCodeAt(0).toString(16).padStart(4, "0")}`),
    ),
    "in JSON of nothing but escapes": Buffer.from(
      value.replace(/[^]/g, (sign) => `\\u${sign.charCodeAt(0).toString(16).padStart(4, "0")}`),
    ),
    "in UTF-16": Buffer.from(value, "utf16le"),
    "in UTF-16 of the other order": Buffer.from(value, "utf16le").swap16(),
    "in HTML": Buffer.from(value.replace("&", "&amp;").replace('"', "&quot;")),
  }
  it.each(Object.entries(plain))("is overwritten however it is cut, and nothing else: %s", (_, spelled) => {
    fc.assert(
      fc.property(filler, filler, cuts, (before, after, sizes) => {
        const sent = Buffer.concat([before, spelled, after])
        const got = pass(sent, sizes)
        expect(got.length).toBe(sent.length)
        expect(got.includes(spelled)).toBe(false)
        expect(got.subarray(before.length, before.length + spelled.length).every((byte) => byte === 0x2a)).toBe(true)
      }),
      { numRuns: 200 },
    )
  })

  it("is not left in base64, whatever stands before it", () => {
    fc.assert(
      fc.property(filler, filler, cuts, fc.boolean(), (before, after, sizes, url) => {
        const text = Buffer.concat([before, utf8, after]).toString(url ? "base64url" : "base64")
        const got = pass(Buffer.from(text), sizes).toString("latin1")
        expect(got.length).toBe(text.length)
        // The first and last sign may share bits with their neighbours; what is between is gone.
        expect(Buffer.from(got.replaceAll("*", "A"), "base64").includes(utf8.subarray(2, -2))).toBe(false)
      }),
      { numRuns: 300 },
    )
  })

  it("leaves everything else as it is, and holds nothing back from before a newline", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary-ascii", maxLength: 300 }), cuts, (text, sizes) => {
        fc.pre(!text.includes("ghp_real"))
        expect(pass(Buffer.from(text, "latin1"), sizes).toString("latin1")).toBe(text)
      }),
    )
    const scrubber = createScrubber(spellings)
    expect(scrubber.push(Buffer.from("data: one\n\n")).toString()).toBe("data: one\n\n")
    expect(scrubber.push(Buffer.from("data: gh")).toString()).toBe("")
    expect(scrubber.push(Buffer.from("ost\n")).toString()).toBe("data: ghost\n")
    expect(scrubbed(`a ${latin.toString("latin1")} b`, spellings)).toBe(`a ${"*".repeat(latin.length)} b`)
  })

  it("is not told by what is held back: a text that begins like it is held as long as any other", () => {
    const starts = fc.tuple(fc.constantFrom(...spellings), fc.integer({ min: 1, max: 200 }))
    fc.assert(
      fc.property(filler, starts, cuts, (before, [spelling, size], sizes) => {
        const guess = Buffer.concat([before, spelling.subarray(0, size)])
        const other = Buffer.concat([before, Buffer.alloc(guess.length - before.length, "#")])
        const shown = (bytes: Buffer): number[] => {
          const scrubber = createScrubber(spellings)
          return sizes.map((_, at) => scrubber.push(bytes.subarray(at * 12, at * 12 + 12)).length)
        }
        expect(shown(guess)).toEqual(shown(other))
      }),
    )
  })

  it("is not looked for when it is as short as a word", () => {
    expect(spellingsOf("ab").some((bytes) => bytes.length < 6)).toBe(false)
  })
})
