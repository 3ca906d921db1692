import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { digestOf, jcs } from "../../../src/manifest/values/digest.ts"

describe("jcs", () => {
  it("reproduces the example of RFC 8785, section 3.2", () => {
    const value = {
      numbers: [333333333.33333329, 1e30, 4.5, 2e-3, 0.000000000000000000000000001],
      string: "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\u002f",
      literals: [null, true, false],
    }
    expect(jcs(value)).toBe(
      '{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],' +
        '"string":"€$\\u000f\\nA\'B\\"\\\\\\\\\\"/"}',
    )
  })

  it.each([
    [0, "0"],
    [-0, "0"],
    [5e-324, "5e-324"],
    [1.7976931348623157e308, "1.7976931348623157e+308"],
    [9007199254740992, "9007199254740992"],
    [295147905179352830000, "295147905179352830000"],
    [1e21, "1e+21"],
    [1e-7, "1e-7"],
    [0.000001, "0.000001"],
  ])("writes the number %d as %s", (number, expected) => {
    expect(jcs(number)).toBe(expected)
  })

  it("orders keys by UTF-16 code units, not by code points or locale", () => {
    const value = { "\u20ac": 1, "\r": 2, "\ufb33": 3, "1": 4, "\ud83d\ude00": 5, "\u0080": 6, "\u00f6": 7 }
    expect(Object.values(JSON.parse(jcs(value), (_, v: unknown) => v) as object)).toHaveLength(7)
    expect([...jcs(value).matchAll(/:(\d)/g)].map((m) => m[1])).toEqual(["2", "4", "6", "7", "1", "5", "3"])
  })

  it("leaves out members that are undefined", () => {
    expect(jcs({ a: undefined, b: 1 })).toBe('{"b":1}')
  })

  it.each([
    ["NaN", Number.NaN],
    ["infinity", Number.POSITIVE_INFINITY],
    ["a bigint", 1n],
    ["a function", () => 1],
    ["undefined in an array", [undefined]],
    ["a lone surrogate", "\ud800"],
    ["a lone surrogate in a key", { "\udc00": 1 }],
    ["a date", new Date(0)],
    ["a map", new Map()],
  ])("refuses %s", (_name, value) => {
    expect(() => jcs(value)).toThrow(TypeError)
  })

  it("refuses a cycle instead of running out of stack", () => {
    const cycle: Record<string, unknown> = {}
    cycle["self"] = cycle
    expect(() => jcs(cycle)).toThrow(/cycle/)
  })

  it("does not depend on the order of keys, and round-trips through JSON", () => {
    const json = fc.jsonValue({ maxDepth: 5 }).filter((v) => JSON.stringify(v).isWellFormed())
    fc.assert(
      fc.property(json, (value) => {
        const reordered: unknown = JSON.parse(JSON.stringify(value), (_key, v: unknown) =>
          v !== null && typeof v === "object" && !Array.isArray(v)
            ? Object.fromEntries(Object.entries(v).reverse())
            : v,
        )
        expect(jcs(reordered)).toBe(jcs(value))
        expect(jcs(JSON.parse(jcs(value)))).toBe(jcs(value))
      }),
    )
  })
})

describe("digestOf", () => {
  it("is the SHA-256 of the canonical text", () => {
    expect(digestOf({})).toBe("sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a")
    expect(digestOf({ b: 1, a: 2 })).toBe(digestOf({ a: 2, b: 1 }))
    expect(digestOf({ a: 1 })).not.toBe(digestOf({ a: "1" }))
  })
})
