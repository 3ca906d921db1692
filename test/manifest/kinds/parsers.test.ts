import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { readAddress } from "../../../src/manifest/values/address.ts"
import { parseDuration, parseRetention } from "../../../src/manifest/values/duration.ts"
import { parseExtract } from "../../../src/manifest/templates/extract.ts"
import { type PackageMethod, parsePackage } from "../../../src/manifest/values/package-name.ts"

const runs = { numRuns: Number(process.env["CAISSON_FUZZ_RUNS"] ?? 2000) }
const bits = (...parts: string[]) => fc.array(fc.constantFrom(...parts), { maxLength: 12 }).map((all) => all.join(""))

describe("an extraction path", () => {
  it.each([
    ["$", []],
    [
      "$.a.b-c",
      [
        { take: "property", name: "a" },
        { take: "property", name: "b-c" },
      ],
    ],
    ["$[0][*]", [{ take: "item", index: 0 }, { take: "all" }]],
    [
      "$[?(@.k=='v')].x",
      [
        { take: "where", key: "k", value: "v" },
        { take: "property", name: "x" },
      ],
    ],
    ['$[?(@.k == "a b")]', [{ take: "where", key: "k", value: "a b" }]],
    ["$[?(@.k==-1.5)]", [{ take: "where", key: "k", value: -1.5 }]],
  ])("reads %s", (text, steps) => {
    expect(parseExtract(text)).toEqual(steps)
  })
  it.each([
    "",
    "a",
    ".a",
    "$a",
    "$.",
    "$..a",
    "$[-1]",
    "$[0:2]",
    "$['a']",
    "$[(1)]",
    "$[?(@.a>1)]",
    "$[?(@.a=='b]",
    "$.a b",
    "$.a\n",
    "$[1e3]",
    `$${".a".repeat(33)}`,
    `$.${"a".repeat(600)}`,
  ])("refuses %j", (text) => {
    expect(parseExtract(text)).toBeUndefined()
  })
  it("is made of what it was written of, whatever comes", () => {
    fc.assert(
      fc.property(bits("$", ".a", "[0]", "[*]", "[?(@.k=='v')]", "..", "[", "]", "'", "(", "\\"), (text) => {
        const steps = parseExtract(text)
        if (steps === undefined) return
        const again = steps
          .map((step) =>
            step.take === "property"
              ? `.${step.name}`
              : step.take === "item"
                ? `[${step.index}]`
                : step.take === "all"
                  ? "[*]"
                  : `[?(@.${step.key}=='${String(step.value)}')]`,
          )
          .join("")
        expect(`$${again}`).toBe(text)
      }),
      runs,
    )
  })
})

describe("a duration", () => {
  it.each([
    ["PT24H", 86_400_000],
    ["P1Y", 31_536_000_000],
    ["P1M", 2_592_000_000],
    ["PT1M", 60_000],
    ["PT0.5S", 500],
    ["P1W2DT3H4M5S", 788_645_000],
  ])("reads %s", (text, ms) => expect(parseDuration(text)).toBe(ms))
  it.each([
    "",
    "P",
    "PT",
    "PT0S",
    "P0D",
    "24h",
    "PT-1H",
    "P1H",
    "PT1D",
    "PT1H ",
    "pt1h",
    "PT1H\n",
    "P99999999Y",
    "PT1e3S",
  ])("refuses %j", (text) => {
    expect(parseDuration(text)).toBeUndefined()
  })
  it("is a whole number of milliseconds that can be waited for, or none", () => {
    fc.assert(
      fc.property(
        fc.oneof(fc.string(), bits("P", "T", "1", "9", "Y", "M", "W", "D", "H", "S", ".", "y", "d")),
        (text) => {
          for (const ms of [parseDuration(text), parseRetention(text)])
            if (ms !== undefined) expect(Number.isSafeInteger(ms) && ms > 0).toBe(true)
        },
      ),
      runs,
    )
  })
})

describe("an address", () => {
  it.each([
    "https://a.test",
    "http://a.test:8080/x?y=z",
    "https://a.test/${input.x}",
    "https://[2001:db8::1]/",
    "HTTPS://A.test/",
  ])("reads %s", (text) => {
    expect(readAddress(text).ok).toBe(true)
  })
  it.each([
    "",
    "a.test",
    "//a.test",
    "ftp://a.test",
    "javascript:alert(1)",
    "https://",
    "https://a.test\\@b.test",
    "https://u@a.test",
    "https://${input.x}",
    "https://a.${input.x}.test/",
    "https://a.test:x/",
    "https://a.test/ b",
    "https://a.test/\n",
    "https://a.test/#f",
    "https://a.test…/",
    "https:a.test",
    "https:///${input.x}/",
    "https:/a.test",
  ])("refuses %j", (text) => {
    expect(readAddress(text).ok).toBe(false)
  })
  it("goes where its text says, whatever comes", () => {
    fc.assert(
      fc.property(
        bits(
          "https://",
          "http://",
          "a.test",
          "b.test",
          "@",
          ":",
          "/",
          "\\",
          "?",
          "#",
          "${input.x}",
          "%2f",
          "..",
          " ",
          "\t",
          "[",
          "]",
        ),
        (text) => {
          const address = readAddress(text)
          if (!address.ok) return
          expect(address.url.username + address.url.password).toBe("")
          expect(
            text
              .toLowerCase()
              .replace(/^https?:\/\//, "")
              .startsWith(address.url.hostname),
          ).toBe(true)
        },
      ),
      runs,
    )
  })
})

describe("a package's name", () => {
  const methods: readonly PackageMethod[] = [
    "brew",
    "apt",
    "dnf",
    "pacman",
    "choco",
    "scoop",
    "cargo",
    "go",
    "npm",
    "pip",
  ]
  it("is never an option, an address or a way out, whatever comes", () => {
    fc.assert(
      fc.property(
        fc.constantFrom(...methods),
        fc.oneof(
          fc.string(),
          bits("a", "@", "/", "..", ".", "-", "--", ":", "https://", "git+", "=", ">", "1", "x.test", " ", ";", "\n"),
        ),
        (method, text) => {
          const found = parsePackage(method, text)
          if (found === undefined) return
          expect(found.name).not.toMatch(/^-|:\/\/|\s|;|(?:^|\/)\.\.?(?:\/|$)/)
          expect(found.version ?? "").not.toMatch(/\/|\s|;|^-/)
        },
      ),
      runs,
    )
  })
})
