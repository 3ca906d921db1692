import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { lineAndColumn, whereJsonBreaks } from "../../src/cli/json-position.ts"

const isJson = (text: string): boolean => {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

describe("where JSON breaks", () => {
  test.each([
    ["", 0],
    ["  ", 2],
    ["{", 1],
    ["{a: 1}", 1],
    ['{"a" 1}', 5],
    ['{"a": 1,}', 8],
    ['{"a": }', 6],
    ["[1, 2", 5],
    ["[1 2]", 3],
    ["[1,]", 3],
    ["[1}", 2],
    ["01", 1],
    ["1 2", 2],
    ["tru", 0],
    ['"abc', 4],
    ['"a\nb"', 2],
    ['"a\\x"', 2],
    ["{} x", 3],
    ["'a'", 0],
    ["}", 0],
  ])("finds the first wrong character of %j", (text, offset) => {
    expect(isJson(text)).toBe(false)
    expect(whereJsonBreaks(text)).toBe(offset)
  })

  test("lies within the text for every text that is no JSON", () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string(),
          fc.json().chain((text) => fc.nat(text.length).map((cut) => `${text.slice(0, cut)}?${text.slice(cut)}`)),
        ),
        (text) => {
          if (isJson(text)) return
          const offset = whereJsonBreaks(text)
          expect(offset).toBeGreaterThanOrEqual(0)
          expect(offset).toBeLessThanOrEqual(text.length)
        },
      ),
    )
  })

  test("never lies behind a character that was put into a document where none belongs", () => {
    fc.assert(
      fc.property(fc.json(), fc.nat(), (text, at) => {
        const cut = at % (text.length + 1)
        const broken = `${text.slice(0, cut)}\u0001${text.slice(cut)}`
        expect(whereJsonBreaks(broken)).toBeLessThanOrEqual(cut)
      }),
    )
  })

  test("runs through a document nested deeper than any stack", () => {
    expect(whereJsonBreaks("[".repeat(500_000))).toBe(500_000)
  })
})

test("lines and columns count from one", () => {
  expect(lineAndColumn("ab\ncd", 0)).toEqual({ line: 1, column: 1 })
  expect(lineAndColumn("ab\ncd", 4)).toEqual({ line: 2, column: 2 })
})
