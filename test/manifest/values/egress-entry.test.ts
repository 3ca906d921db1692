import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { coversName, intersectEgress, parseEgressEntry } from "../../../src/manifest/values/egress-entry.ts"
import type { EgressEntry } from "../../../src/manifest/values/egress-entry.ts"

const entry = (text: string): EgressEntry => {
  const parsed = parseEgressEntry(text)
  if (!parsed.ok) throw new Error(`${text}: ${parsed.message}`)
  return parsed.entry
}
const refusal = (text: unknown): { message: string; fix?: string } => {
  const parsed = parseEgressEntry(text)
  if (parsed.ok) throw new Error(`${String(text)} was accepted`)
  return parsed
}

describe("parseEgressEntry", () => {
  it.each([
    ["api.good.test", { host: "api.good.test", wildcard: false, ports: [443, 80], protocol: "web" }],
    ["api.good.test:443", { host: "api.good.test", wildcard: false, ports: [443], protocol: "web" }],
    ["*.cdn.good.test", { host: "cdn.good.test", wildcard: true, ports: [443, 80], protocol: "web" }],
    ["*.cdn.good.test:8443", { host: "cdn.good.test", wildcard: true, ports: [8443], protocol: "web" }],
    ["tcp://db.good.test:5432", { host: "db.good.test", wildcard: false, ports: [5432], protocol: "tcp" }],
    ["_x.cdn.good.test", { host: "_x.cdn.good.test" }],
    ["xn--bcher-kva.test", { host: "xn--bcher-kva.test" }],
    ["93.184.216.34:443", { host: "93.184.216.34", ports: [443] }],
    ["[2001:db8::1]:443", { host: "2001:db8::1", ports: [443], text: "[2001:db8::1]:443" }],
    ["tcp://[2001:db8::1]:22", { host: "2001:db8::1", protocol: "tcp" }],
  ])("reads %s", (text, expected) => {
    expect(entry(text)).toMatchObject(expected)
  })

  it.each([
    ["API.Good.TEST", "lower case", "api.good.test"],
    ["api.good.test.", "trailing dot", "api.good.test"],
    ["*.CDN.good.test.:443", "trailing dot", "*.cdn.good.test:443"],
    ["*good.test", "whole label", "*.good.test"],
    ["*.*.good.test", "any depth", "*.good.test"],
    ["**.good.test", "any depth", "*.good.test"],
    ["https://api.good.test/v1", "not a URL", "api.good.test"],
    ["HTTP://api.good.test:8080/", "not a URL", "api.good.test:8080"],
    ["api.good.test/v1", "no path", "api.good.test"],
    ["me@api.good.test", "user names", "api.good.test"],
    ["api.good.test:0443", "leading zeros", "api.good.test:443"],
    ["api.good.test:", "missing", "api.good.test"],
    ["api.good.test:*", "not a port", "api.good.test"],
    ["api.good.test:https", "not a port number", "api.good.test:443"],
    ["api.good.test:8000-8010", "port ranges", "api.good.test:8000"],
    [" api.good.test", "blanks", "api.good.test"],
    ["api..good.test", "empty label", "api.good.test"],
    ["bücher.test", "ASCII", "xn--bcher-kva.test"],
    ["127.1:80", "four decimal numbers", "127.0.0.1:80"],
    ["2130706433", "four decimal numbers", "127.0.0.1:443"],
    ["0x7f.1", "four decimal numbers", "127.0.0.1:443"],
    ["0177.0.0.1", "four decimal numbers", "127.0.0.1:443"],
    ["127.0.0.01:443", "four decimal numbers", "127.0.0.1:443"],
    ["1.2.3.4", "needs a port", "1.2.3.4:443"],
    ["::1", "brackets", "[::1]:443"],
    ["[2001:DB8::1]:443", "canonical", "[2001:db8::1]:443"],
    ["[2001:db8:0:0::1]:443", "canonical", "[2001:db8::1]:443"],
    ["[::ffff:10.0.0.1]:443", "IPv4-mapped", "10.0.0.1:443"],
    ["TCP://db.good.test:5432", "scheme", "tcp://db.good.test:5432"],
    ["tcp://*.good.test:5432", "no wildcard", "tcp://good.test:5432"],
  ])("refuses %s and gives the corrected spelling", (text, message, fix) => {
    const refused = refusal(text)
    expect(refused.message).toContain(message)
    expect(refused.fix).toBe(fix)
  })

  it.each([
    ["*", "every host"],
    ["*.", "no domain"],
    ["*.com", "top-level domain"],
    ["api.*.test", "in the middle"],
    ["kube-apiserver.*", "right edge"],
    ["10.0.0.*", "not for IP addresses"],
    ["*.1.2.3", "not for IP addresses"],
    ["10.0.0.0/8", "CIDR"],
    ["fd00::/8", "CIDR"],
    ["", "empty"],
    ["a b.test", "blanks"],
    ["a.test\u0000.good.test", "control characters"],
    ["^api\\.good$", "patterns"],
    ["-a.test", "not a valid label"],
    [`${"a".repeat(64)}.test`, "63 characters"],
    [`${"a.".repeat(130)}test`, "253 characters"],
    ["a".repeat(301), "longer than 300"],
    ["localhost", "never reachable"],
    ["x.localhost:80", "never reachable"],
    ["api.good.test:0", "outside 1–65535"],
    ["api.good.test:65536", "outside 1–65535"],
    ["tcp://db.good.test", "needs a port"],
    ["[fe80::1%eth0]:443", "zone"],
    ["[nonsense]:443", "not an IPv6"],
    ["udp://a.test:53", "not known"],
    [443, "is a string"],
    [null, "is a string"],
  ])("refuses %j with a message of its own", (text, message) => {
    expect(refusal(text).message).toContain(message)
  })

  const alphabet = fc.constantFrom(
    ..."abAB01.-_*:/[]@%xX\u0000 é。０tcp".split(""),
    "tcp://",
    ":443",
    "*.",
    "test",
    "xn--",
    "0x7f",
    "::",
    "127.0.0.1",
  )
  const spelling = fc.array(alphabet, { maxLength: 14 }).map((parts) => parts.join(""))

  it("is canonical: an accepted text is its own canonical text", () => {
    fc.assert(
      fc.property(
        fc.oneof(
          spelling,
          fc.string({ unit: "binary" }),
          fc.domain(),
          fc.ipV4(),
          fc.ipV6().map((ip) => `[${ip}]:1`),
        ),
        (text) => {
          const parsed = parseEgressEntry(text)
          if (!parsed.ok) return
          expect(parsed.entry.text).toBe(text)
          expect(parsed.entry.host).toMatch(/^[a-z0-9._:-]+$/)
          expect(parsed.entry.ports.every((p) => Number.isInteger(p) && p > 0 && p < 65_536)).toBe(true)
        },
      ),
      { numRuns: 3000 },
    )
  })

  it("offers only fixes that it accepts itself", () => {
    fc.assert(
      fc.property(spelling, (text) => {
        const parsed = parseEgressEntry(text)
        if (!parsed.ok && parsed.fix !== undefined)
          expect(parseEgressEntry(parsed.fix)).toMatchObject({ ok: true, entry: { text: parsed.fix } })
      }),
      { numRuns: 3000 },
    )
  })

  it("agrees with the URL parser on every host it accepts", () => {
    fc.assert(
      fc.property(spelling, (text) => {
        const parsed = parseEgressEntry(text)
        if (!parsed.ok || parsed.entry.host.includes(":")) return
        expect(URL.parse(`http://${parsed.entry.host}/`)?.hostname).toBe(parsed.entry.host)
      }),
      { numRuns: 3000 },
    )
  })
})

describe("coversName", () => {
  it("lets a wildcard cover one or more labels, never the apex and never half a label", () => {
    const rule = entry("*.cdn.good.test")
    expect(["x.cdn.good.test", "a.b.cdn.good.test"].every((name) => coversName(rule, name))).toBe(true)
    expect(
      ["cdn.good.test", "evilcdn.good.test", "x.cdn.good.test.evil.test"].some((name) => coversName(rule, name)),
    ).toBe(false)
  })
})

describe("intersectEgress", () => {
  const both = (a: string[], b: string[]): string[] => intersectEgress(a.map(entry), b.map(entry)).map((e) => e.text)
  it.each([
    [["a.test"], ["a.test"], ["a.test"]],
    [["a.test"], ["a.test:443"], ["a.test:443"]],
    [["a.test:80"], ["a.test:443"], []],
    [["*.x.test"], ["a.x.test"], ["a.x.test"]],
    [["*.x.test"], ["x.test"], []],
    [["*.x.test:443"], ["*.a.x.test"], ["*.a.x.test:443"]],
    [["*.x.test"], ["*.y.test"], []],
    [["tcp://a.test:443"], ["a.test"], ["a.test:443"]],
    [["tcp://a.test:5432"], ["tcp://a.test:5432"], ["tcp://a.test:5432"]],
    [["a.test", "b.test"], [], []],
    [["1.2.3.4:443"], ["1.2.3.4:443"], ["1.2.3.4:443"]],
    [["a.x.test", "*.x.test"], ["*.x.test"], ["*.x.test", "a.x.test"]],
  ])("%j ∩ %j = %j", (a, b, expected) => {
    expect(both(a, b)).toEqual(expected)
    expect(both(b, a)).toEqual(expected)
  })

  it("allows a name and port exactly if both lists do", () => {
    const pool = [
      "x.test",
      "*.x.test",
      "a.x.test:443",
      "*.a.x.test",
      "tcp://x.test:80",
      "b.a.x.test:8080",
      "*.x.test:8080",
    ].map(entry)
    const names = ["x.test", "a.x.test", "b.a.x.test", "c.b.a.x.test", "y.test"]
    const allows = (list: readonly EgressEntry[], name: string, port: number): boolean =>
      list.some((e) => coversName(e, name) && e.ports.includes(port))
    fc.assert(
      fc.property(
        fc.subarray(pool),
        fc.subarray(pool),
        fc.constantFrom(...names),
        fc.constantFrom(443, 80, 8080),
        (a, b, name, port) => {
          expect(allows(intersectEgress(a, b), name, port)).toBe(allows(a, name, port) && allows(b, name, port))
        },
      ),
    )
  })
})
