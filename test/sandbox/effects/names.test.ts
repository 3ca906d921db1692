import { isUtf8 } from "node:buffer"
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { displayName, fromBuffer, parseName } from "../../../src/sandbox/effects/names.ts"
import { escapeOf } from "../../../src/sandbox/effects/symlink-target.ts"

describe("a reported name", () => {
  it("leads back to the same bytes, whatever they are", () => {
    const bytes = fc.uint8Array({ minLength: 1, maxLength: 12 }).map((array) => fromBuffer(Buffer.from(array)))
    fc.assert(
      fc.property(bytes, (name) => parseName(displayName(name)) === name),
      { numRuns: 5000 },
    )
  })
  it("is the text itself where that is UTF-8 without backslashes", () => {
    fc.assert(
      fc.property(
        fc.string({ unit: "grapheme" }).filter((text) => !text.includes("\\")),
        (text) => displayName(fromBuffer(Buffer.from(text))) === text,
      ),
    )
  })
  it("of megabytes that are no text is spelled in one pass", { timeout: 20_000 }, () => {
    const bytes = fromBuffer(Buffer.alloc(8 << 20, Buffer.from([0xff, 0xe2, 0x82, 0x5c])))
    const text = displayName(bytes)
    expect(text.length).toBe(4 * bytes.length)
    expect(parseName(text)).toBe(bytes)
  })
  it("escapes exactly what is not UTF-8", () => {
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 1, maxLength: 8 }), (array) => {
        const bytes = Buffer.from(array)
        const plain = isUtf8(bytes) && !bytes.includes(0x5c)
        return plain === !displayName(fromBuffer(bytes)).includes("\\")
      }),
      { numRuns: 5000 },
    )
  })
  it("differs for different bytes", () => {
    const literal = fromBuffer(Buffer.from("a\\xffb"))
    const byte = fromBuffer(Buffer.from([0x61, 0xff, 0x62]))
    expect(displayName(literal)).toBe("a\\x5cxffb")
    expect(displayName(byte)).toBe("a\\xffb")
  })
})

describe("a symlink", () => {
  it.each([
    ["l", "a", false],
    ["d/l", "../a", false],
    ["d/e/l", "../../a/b", false],
    ["d/l", "./../a", false],
    ["l", ".", false],
    ["l", "..", true],
    ["d/l", "../..", true],
    ["l", "/etc/passwd", true],
    ["l", "/workspace/a", true],
    ["l", "a/../../x", true],
    ["l", "a/../b", true],
    ["d/l", "..//../x", true],
  ])("at %s to %s leads outside, or may: %s", (path, target, outside) => {
    expect(escapeOf(path, target) !== undefined).toBe(outside)
  })
})
