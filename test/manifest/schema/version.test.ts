import fc from "fast-check"
import { describe, expect, it } from "vitest"
import {
  coerceVersion,
  isSemver,
  parseRange,
  parseVersionOutput,
  satisfies,
} from "../../../src/manifest/schema/version.ts"

describe("coerceVersion", () => {
  it.each([
    ["2.43.0", "2.43.0"],
    ["v5.1", "5.1.0"],
    ["1.6", "1.6.0"],
    ["22.04.1", "22.4.1"],
    ["n4.4.2-0ubuntu0.22.04.1", "4.4.2"],
    ["5.1.6-0+deb12u1", "5.1.6"],
    ["6.9.11-60", "6.9.11"],
    ["1.2.3.4", "1.2.3"],
    ["1.7.1rc1", "1.7.1-rc1"],
    ["2.0.0-beta.2", "2.0.0-beta.2"],
  ])("reads %s as %s", (text, expected) => {
    expect(coerceVersion(text)).toBe(expected)
  })
  it.each(["", "x", "release 5", "-1.2.3", "1".repeat(200)])("invents nothing from %j", (text) => {
    expect(coerceVersion(text)).toBeUndefined()
  })
})

describe("parseRange", () => {
  it.each([
    [">=0.40,<1", ">=0.40 <1"],
    ["~=1.4", ">=1.4 <2"],
    ["~=1.4.2", ">=1.4.2 <1.5"],
    ["==1.2.*", "1.2.x"],
    ["== 1.2.3", "=1.2.3"],
  ])("translates the PEP 440 range %s", (text, expected) => {
    expect(parseRange(text)).toEqual({ ok: true, range: expected, translated: true })
  })
  it("leaves npm ranges alone", () => {
    expect(parseRange("^1.2.0 || >=3 <4")).toEqual({ ok: true, range: "^1.2.0 || >=3 <4", translated: false })
  })
  it.each(["", "  ", "1||", "||1", "1 || || 2", "!=1.0", ">=1,!=2", "latest", "x".repeat(257), ">=1,,<2"])(
    "refuses %j",
    (text) => {
      expect(parseRange(text).ok).toBe(false)
    },
  )
})

describe("satisfies", () => {
  it.each([
    ["1.6", ">=1.5", true],
    ["1.4.9", ">=1.5", false],
    ["2.0.0-rc.1", "<2.0.0", false],
    ["2.0.0-rc.1", "^1.0.0", false],
    ["2.0.0-rc.1", ">=2.0.0", false],
    ["2.0.0-rc.1", ">=2.0.0-beta", true],
    ["5.1.6-0+deb12u1", ">=5.1.6 <6", true],
    ["0.41", ">=0.40,<1", true],
    ["2.0", "~=1.4", false],
    ["1.2.3", "1||", false],
    ["nonsense", "*", false],
  ])("%s in %s: %s", (found, range, expected) => {
    expect(satisfies(found, range)).toBe(expected)
  })
  it("never throws, whatever the two texts are", () => {
    fc.assert(
      fc.property(
        fc.string({ maxLength: 400 }),
        fc.string({ maxLength: 400 }),
        (a, b) => typeof satisfies(a, b) === "boolean",
      ),
    )
  })
})

describe("parseVersionOutput", () => {
  it("reads stdout first, then stderr", () => {
    expect(parseVersionOutput("jq-(\\d+\\.\\d+)", "jq-1.7\n", "jq-1.6\n")).toMatchObject({
      ok: true,
      version: "1.7.0",
      raw: "1.7",
    })
    expect(parseVersionOutput("jq-(\\d+\\.\\d+)", "nothing", "jq-1.6\n")).toMatchObject({ ok: true, version: "1.6.0" })
  })
  it("says so when nothing matches", () => {
    expect(parseVersionOutput("jq-(\\d+)", "x", "y")).toMatchObject({
      ok: false,
      message: expect.stringContaining("neither stdout nor stderr") as string,
    })
  })
  it("refuses lookarounds and backreferences instead of running them", () => {
    expect(parseVersionOutput("(?=v)(\\d+)", "v1", "")).toMatchObject({
      ok: false,
      message: expect.stringContaining("lookarounds") as string,
    })
    expect(parseVersionOutput("(\\d)\\1", "11", "")).toMatchObject({ ok: false })
  })
  it("finishes on a pattern that would backtrack for ages, over a flood of output", () => {
    expect(parseVersionOutput("^(a+)+$(b)", `${"a".repeat(5_000_000)}!`, "")).toMatchObject({ ok: false })
  })
})

it("isSemver takes full versions only", () => {
  expect(["1.0.0", "1.0.0-rc.1", "1.0.0+x"].every(isSemver)).toBe(true)
  expect(["1.0", "v1.0.0", "1.0.0 ", "", `1.0.0-${"a".repeat(200)}`].some(isSemver)).toBe(false)
})
