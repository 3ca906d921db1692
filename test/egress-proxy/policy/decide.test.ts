/** The name verdict and the address table, pure. */
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { classify, contains, parseCidr, parseIp, reservedRanges } from "../../../src/egress-proxy/policy/address.ts"
import { parseAuthority } from "../../../src/egress-proxy/policy/authority.ts"
import { decide } from "../../../src/egress-proxy/policy/decide.ts"
import { vetAnswer } from "../../../src/egress-proxy/dial/connector.ts"
import { type PolicyInput, policyFrom } from "../../../src/egress-proxy/policy/options.ts"
import { compilePolicy, type WhoseAddress } from "../../../src/egress-proxy/policy/compile.ts"
import { hostLike, seeded } from "../arbitraries.ts"

const compile = (input: PolicyInput, whose: WhoseAddress = () => undefined) =>
  compilePolicy(policyFrom(input), { ownNames: ["buildbox"], whose })
const verdict = (input: PolicyInput, target: string, whose?: WhoseAddress) => {
  const authority = parseAuthority(target)
  if (!authority.ok) return authority.code
  const decided = decide(compile(input, whose), authority.value)
  return decided.allow ? decided.grant.rule : decided.code
}
const ip = (text: string) => {
  const parsed = parseIp(text)
  if (parsed === undefined) throw new Error(`${text} is no address`)
  return parsed
}

describe("decide", () => {
  it("never turns an allow into a deny when an entry is added", () => {
    const entry = fc.constantFrom(
      "api.good.test",
      "api.good.test:443",
      "*.good.test",
      "*.good.test:8443",
      "tcp://api.good.test:443",
      "tcp://db.good.test:5432",
      "93.184.216.34:443",
      "good.test:80",
      "*.cdn.good.test",
    )
    const target = fc.tuple(
      fc.constantFrom("api.good.test", "x.good.test", "good.test", "a.cdn.good.test", "93.184.216.34", "evil.test"),
      fc.constantFrom(80, 443, 5432, 8443),
    )
    fc.assert(
      fc.property(fc.array(entry, { maxLength: 5 }), entry, target, (entries, more, [host, port]) => {
        const authority = parseAuthority(`${host}:${port}`)
        if (!authority.ok) throw new Error("bad target")
        const before = decide(compile({ egress: entries }), authority.value)
        const after = decide(compile({ egress: [...entries, more] }), authority.value)
        if (before.allow) expect(after.allow).toBe(true)
        if (before.allow && before.grant.protocol === "tcp") expect(after.allow && after.grant.protocol).toBe("tcp")
      }),
      seeded,
    )
  })

  it("allows only what an entry names, for any host that parses", () => {
    const policy = compile({ egress: ["api.good.test:443", "*.cdn.good.test:443"] })
    fc.assert(
      fc.property(hostLike, (host) => {
        const authority = parseAuthority(`${host}:443`)
        if (!authority.ok || !decide(policy, authority.value).allow) return
        const { hostText } = authority.value
        expect(hostText === "api.good.test" || (hostText.endsWith(".cdn.good.test") && hostText.length > 14)).toBe(true)
      }),
      seeded,
    )
  })

  it("names the entry that allowed the request", () => {
    expect(verdict({ egress: ["*.good.test", "api.good.test:443"] }, "api.good.test:443")).toBe("api.good.test:443")
    expect(verdict({ egress: ["*.good.test"] }, "api.good.test:80")).toBe("*.good.test")
  })

  it("lets a listed public literal through, and a listed loopback literal never", () => {
    expect(verdict({ egress: ["93.184.216.34:443"] }, "93.184.216.34:443")).toBe("93.184.216.34:443")
    expect(verdict({ egress: ["127.0.0.1:443"] }, "127.0.0.1:443")).toBe("loopback")
    expect(verdict({ egress: ["169.254.169.254:80"] }, "169.254.169.254:80")).toBe("metadata")
    expect(verdict({ egress: ["10.0.0.1:443"] }, "10.0.0.1:443")).toBe("private")
  })

  it("lets a private literal through only where it is listed and granted", () => {
    expect(verdict({ egress: ["10.0.0.1:443"], private: ["10.0.0.0/24"] }, "10.0.0.1:443")).toBe("10.0.0.1:443")
    expect(verdict({ egress: ["10.0.1.1:443"], private: ["10.0.0.0/24"] }, "10.0.1.1:443")).toBe("private")
    expect(verdict({ egress: ["a.test"], private: ["10.0.0.0/24"] }, "10.0.0.1:443")).toBe("host_not_allowed")
  })

  it("sends a declared name with a service to the operator's address, and an undeclared one nowhere", () => {
    const services = { "db.test": "127.0.0.1:5432" }
    const authority = parseAuthority("db.test:5432")
    if (!authority.ok) throw new Error("bad target")
    expect(decide(compile({ egress: ["tcp://db.test:5432"], services }), authority.value)).toMatchObject({
      allow: true,
      route: { kind: "service", ip: { text: "127.0.0.1" }, port: 5432 },
    })
    expect(verdict({ egress: ["other.test"], services }, "db.test:5432")).toBe("host_not_allowed")
  })

  it("opens a reserved name only by a service, and a metadata name never", () => {
    const services = { "db.internal": "10.0.0.5:5432", "metadata.google.internal": "10.0.0.5:80" }
    expect(verdict({ egress: ["tcp://db.internal:5432"] }, "db.internal:5432")).toBe("reserved_name")
    expect(verdict({ egress: ["tcp://db.internal:5432"], services }, "db.internal:5432")).toBe("tcp://db.internal:5432")
    expect(verdict({ egress: ["metadata.google.internal"], services }, "metadata.google.internal:80")).toBe("metadata")
    expect(verdict({ egress: ["buildbox:443"] }, "buildbox:443")).toBe("reserved_name")
  })

  it("never dials this machine or the proxy, not even through a grant or a service to the proxy's own port", () => {
    const whose: WhoseAddress = (address, port) =>
      address.text === "10.0.0.5" ? (port === 3128 ? "listener" : "machine") : undefined
    expect(verdict({ egress: ["10.0.0.5:443"], private: ["10.0.0.0/8"] }, "10.0.0.5:443", whose)).toBe("self")
    expect(
      verdict({ egress: ["loop.test:443"], services: { "loop.test": "10.0.0.5:3128" } }, "loop.test:443", whose),
    ).toBe("self")
    expect(
      verdict({ egress: ["mine.test:443"], services: { "mine.test": "10.0.0.5:8080" } }, "mine.test:443", whose),
    ).toBe("mine.test:443")
  })

  it("vets every address of an answer, grants included", () => {
    const policy = compile({ egress: ["a.test"], private: ["10.0.0.0/8"] })
    expect(vetAnswer(policy, [ip("10.0.0.1"), ip("93.184.216.34")], 443).ok).toBe(true)
    expect(vetAnswer(policy, [ip("10.0.0.1"), ip("192.168.0.1")], 443)).toEqual({ ok: false, code: "mixed_answer" })
    expect(vetAnswer(policy, [ip("192.168.0.1"), ip("127.0.0.1")], 443)).toEqual({
      ok: false,
      code: "resolved_private",
    })
  })
})

describe("the address table", () => {
  it("holds at both edges of every range, and not one address beyond", () => {
    for (const { cidr, class: name } of reservedRanges) {
      const [first, last] = edges(cidr.network.groups, cidr.bits)
      expect(contains(cidr, address(first)), cidr.text).toBe(true)
      expect(contains(cidr, address(last)), cidr.text).toBe(true)
      // An earlier row may name a part of the range more closely.
      expect(classify(address(last)), `${cidr.text} ${name}`).not.toBe("public")
      for (const outside of [step(first, -1), step(last, 1)])
        if (outside !== undefined) expect(contains(cidr, address(outside)), cidr.text).toBe(false)
    }
  })

  it("calls nothing outside 2000::/3 public", () => {
    fc.assert(
      fc.property(fc.ipV6(), (text) => {
        const parsed = parseIp(text)
        if (parsed === undefined || classify(parsed) !== "public") return
        expect((parsed.groups[0] ?? 0) >> 13).toBe(1)
      }),
      seeded,
    )
  })

  it("spells every IPv6 address as URL parsers do, and back", () => {
    fc.assert(
      fc.property(fc.ipV6(), (text) => {
        const parsed = parseIp(text)
        if (parsed === undefined) return
        expect(`[${parsed.text}]`).toBe(URL.parse(`http://[${text}]/`)?.hostname)
        expect(parseIp(parsed.text)?.groups).toEqual(parsed.groups)
      }),
      seeded,
    )
  })

  it("takes canonical CIDRs only", () => {
    expect(parseCidr("10.0.0.0/8")?.text).toBe("10.0.0.0/8")
    for (const text of [
      "10.0.0.1/8",
      "10.0.0.0/33",
      "10.0.0.0/08",
      "10.0.0.0",
      "10/8",
      "fc00::1/7",
      "::/129",
      "10.0.0.0/8 ",
    ])
      expect(parseCidr(text), text).toBeUndefined()
  })
})

const address = (groups: readonly number[]) =>
  ip(
    groups.length === 2
      ? groups.flatMap((group) => [group >> 8, group & 255]).join(".")
      : groups.map((group) => group.toString(16)).join(":"),
  )

function edges(network: readonly number[], bits: number): readonly [readonly number[], readonly number[]] {
  const last = network.map((group, index) => group | (0xffff >> Math.min(16, Math.max(0, bits - index * 16))))
  return [network, last]
}

function step(groups: readonly number[], by: 1 | -1): readonly number[] | undefined {
  const width = BigInt(groups.length * 16)
  const value = groups.reduce((sum, group) => (sum << 16n) | BigInt(group), 0n) + BigInt(by)
  if (value < 0n || value >= 1n << width) return undefined
  return groups.map((_, index) => Number((value >> (width - 16n * BigInt(index + 1))) & 0xffffn))
}
