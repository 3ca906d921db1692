import fc from "fast-check"
import { describe, expect, it } from "vitest"
import {
  createPlaceholderScanner,
  type HeaderPair,
  prepareSubstitutions,
  type Substitutions,
} from "../../../src/egress-proxy/secrets/substitute.ts"

const token = "$$SECRET[GITHUB_TOKEN]$$"
const other = "$$SECRET[OTHER_TOKEN]$$"
const value = "ghp_real-value-0123"

function prepared(list: Parameters<typeof prepareSubstitutions>[0]): Substitutions {
  const result = prepareSubstitutions(list)
  if (!result.ok) throw new Error(result.reason)
  return result.substitutions
}
const substitutions = prepared([
  {
    placeholder: token,
    value,
    hosts: ["api.good.test", "git.good.test"],
    headers: ["Authorization", "X-Api-Key", "Cookie", "x"],
  },
  { placeholder: other, value: "other-value", hosts: ["other.good.test"] },
])
const basic = (text: string): string => `Basic ${Buffer.from(text).toString("base64")}`
const apply = (headers: readonly HeaderPair[], more: Partial<Parameters<Substitutions["apply"]>[0]> = {}) =>
  substitutions.apply({ method: "GET", host: "api.good.test", target: "/a?b=c", headers, ...more })

describe("a placeholder in a header value for its host", () => {
  it.each<readonly [string, HeaderPair, HeaderPair]>([
    ["alone", ["X-Api-Key", token], ["X-Api-Key", value]],
    ["after a scheme", ["authorization", `Bearer ${token}`], ["authorization", `Bearer ${value}`]],
    ["twice", ["x", `${token},${token}`], ["x", `${value},${value}`]],
    ["in Basic as the password", ["Authorization", basic(`git:${token}`)], ["Authorization", basic(`git:${value}`)]],
    [
      "in Basic as the user",
      ["AUTHORIZATION", basic(`${token}:x-oauth-basic`)],
      ["AUTHORIZATION", basic(`${value}:x-oauth-basic`)],
    ],
    [
      "in basic of another case",
      ["Authorization", basic(`a:${token}`).replace("Basic", "basic")],
      ["Authorization", basic(`a:${value}`)],
    ],
    ["in a cookie", ["Cookie", `s=${token}; t=1`], ["Cookie", `s=${value}; t=1`]],
  ])("is replaced: %s", (_, sent, expected) => {
    expect(apply([["Accept", "*/*"], sent])).toEqual({
      ok: true,
      headers: [["Accept", "*/*"], expected],
      used: [token],
    })
  })

  it("leaves everything else as it is", () => {
    const headers: HeaderPair[] = [
      ["Authorization", basic("user:password")],
      ["authorization", "Basic ???"],
      ["X", "$$SECRET[NONE]$$"],
      ["X", ""],
    ]
    expect(apply(headers)).toEqual({ ok: true, headers, used: [] })
  })

  it("is not replaced again inside a value", () => {
    const nested = prepared([
      { placeholder: token, value: other, hosts: ["a.test"], headers: ["x"] },
      { placeholder: other, value: "inner", hosts: ["a.test"], headers: ["x"] },
    ])
    const result = nested.apply({ method: "GET", host: "a.test", target: "/", headers: [["X", token]] })
    expect(result).toMatchObject({ ok: true, headers: [["X", other]] })
  })

  it("tells which hosts are bound", () => {
    expect(["api.good.test", "other.good.test", "x.api.good.test"].map((host) => substitutions.boundTo(host))).toEqual([
      true,
      true,
      false,
    ])
  })
})

describe("a placeholder anywhere else is a misuse, and no value is shown", () => {
  const encoded = encodeURIComponent(token)
  const base64 = Buffer.from(`x${token}y`).toString("base64")
  it.each<readonly [string, readonly HeaderPair[], object, string]>([
    ["in the path", [], { target: `/${token}` }, "target"],
    ["in the query", [], { target: `/?t=${token}` }, "target"],
    ["percent-encoded in the query", [], { target: `/?t=${encoded}` }, "target"],
    ["partly percent-encoded", [], { target: `/?t=${token.replace("[", "%5b")}` }, "target"],
    ["percent-encoded twice", [], { target: `/?t=${encodeURIComponent(encoded)}` }, "target"],
    ["percent-encoded at the very end", [], { target: `/?t=${token.slice(0, -1)}%24` }, "target"],
    ["in base64 in the query", [], { target: `/?t=${base64}` }, "target"],
    ["in url-safe base64 in the path", [], { target: `/${Buffer.from(token).toString("base64url")}` }, "target"],
    ["in the method", [], { method: token }, "method"],
    ["in a header's name", [[`x-${token}`, "1"]], {}, "header-name"],
    ["in a header's name in lower case", [[`x-${token.toLowerCase()}`, "1"]], {}, "header-name"],
    ["in Host", [["Host", token]], {}, "header"],
    ["in Content-Type", [["content-type", token]], {}, "header"],
    ["in Connection", [["Connection", token]], {}, "header"],
    ["in a header that it is not bound to", [["X-Reflected", token]], {}, "header"],
    ["in Host's place for a proxy", [["X-Forwarded-Host", token]], {}, "header"],
    ["percent-encoded in a header", [["Referer", `https://x/?${encoded}`]], {}, "header"],
    ["in base64 in another header", [["X-Auth", base64]], {}, "header"],
    ["in base64 within Basic", [["Authorization", basic(`a:${Buffer.from(token).toString("base64")}`)]], {}, "header"],
    ["beside a good one, encoded", [["X", `${token} ${encoded}`]], {}, "header"],
    ["for another host", [["Authorization", `Bearer ${token}`]], { host: "other.good.test" }, "host"],
    ["for a host of nobody", [["Authorization", `Bearer ${token}`]], { host: "evil.test" }, "host"],
    ["of another host's secret", [["X", other]], {}, "host"],
    ["of another host's secret in Basic", [["Authorization", basic(`a:${other}`)]], {}, "host"],
    ["for a subdomain of its host", [["X", token]], { host: "x.api.good.test" }, "host"],
  ])("%s", (_, headers, more, where) => {
    const result = apply([["X-Good", other.slice(0, 5)], ...headers], more)
    expect(result).toMatchObject({ ok: false, reason: "secret_misuse", where })
    expect(JSON.stringify(result)).not.toContain(value)
  })
})

describe("a request that must not carry any secret", () => {
  it("is a misuse with a placeholder anywhere, also for the host that the secret is bound to", () => {
    const request = { method: "GET", target: "/", headers: [["Authorization", basic(`a:${token}`)]] as const }
    expect(substitutions.detect(request)).toMatchObject({ ok: false, where: "host" })
    expect(substitutions.detect({ ...request, headers: [["Accept", "*/*"]] })).toBeUndefined()
  })
})

describe("a set of secrets", () => {
  const one = { placeholder: token, value, hosts: ["a.test"] }
  it.each([
    ["CR", { ...one, value: "a\rb" }],
    ["LF", { ...one, value: "a\nX: y" }],
    ["NUL", { ...one, value: "a\0b" }],
    ["a character beyond Latin-1", { ...one, value: "a\u2028b" }],
    ["nothing", { ...one, value: "" }],
    ["its own placeholder", { ...one, value: `x${token}` }],
  ])("is refused when a value holds %s, without showing it", (_, bad) => {
    const result = prepareSubstitutions([bad])
    expect(result.ok).toBe(false)
    if (!result.ok && bad.value !== "" && !bad.value.includes(token)) expect(result.reason).not.toContain(bad.value)
  })

  it.each([
    ["are equal", [one, one]],
    ["contain one another", [one, { ...one, placeholder: `x${token}` }]],
    ["are short", [{ ...one, placeholder: "$X$" }]],
    ["have spaces", [{ ...one, placeholder: "$$SECRET [X]$$" }]],
  ])("is refused when placeholders %s", (_, list) => {
    expect(prepareSubstitutions(list).ok).toBe(false)
  })

  it("is bound to Authorization alone where it does not say otherwise", () => {
    const plain = prepared([one])
    const send = (header: string) =>
      plain.apply({ method: "GET", host: "a.test", target: "/", headers: [[header, `Bearer ${token}`]] }).ok
    expect([send("authorization"), send("X-Api-Key"), send("Cookie"), send("User-Agent")]).toEqual([
      true,
      false,
      false,
      false,
    ])
  })

  it.each(["Host", "content-length", "Connection", "a b", ""])("is refused when bound to the header %j", (name) => {
    expect(prepareSubstitutions([{ ...one, headers: [name] }])).toMatchObject({ ok: false })
  })

  it("is refused when a host is not canonical", () => {
    expect(prepareSubstitutions([{ ...one, hosts: ["A.test"] }]).ok).toBe(false)
  })
})

describe("a placeholder in a stream", () => {
  const filler = fc
    .uint8Array({ maxLength: 50 })
    .map((bytes) => Buffer.from(bytes).toString("latin1").replaceAll("%", "."))
  const spell: Record<string, (before: string, after: string) => string> = {
    raw: (before, after) => before + token + after,
    "percent-encoded": (before, after) => before + encodeURIComponent(token) + after,
    "percent-encoded in every byte": (before, after) =>
      before + Buffer.from(token).toString("hex").replace(/../g, "%$&") + after,
    base64: (before, after) => Buffer.from(before + token + after, "latin1").toString("base64"),
    "url-safe base64": (before, after) => Buffer.from(before + token + after, "latin1").toString("base64url"),
    "percent-encoded base64": (before, after) =>
      encodeURIComponent(Buffer.from(before + token + after, "latin1").toString("base64")),
  }
  const cuts = fc.array(fc.integer({ min: 1, max: 12 }), { minLength: 1, maxLength: 12 })
  const found = (text: string, sizes: readonly number[]): string | undefined => {
    const scanner = createPlaceholderScanner([other, token])
    const bytes = Buffer.from(text, "latin1")
    for (let at = 0, turn = 0; at < bytes.length; turn += 1) {
      const size = sizes[turn % sizes.length] as number
      const hit = scanner.push(bytes.subarray(at, at + size))
      if (hit !== undefined) return hit
      at += size
    }
    return undefined
  }

  it.each(Object.entries(spell))("is found however it is cut: %s", (_, spelled) => {
    fc.assert(
      fc.property(filler, filler, cuts, (before, after, sizes) => {
        expect(found(spelled(before, after), sizes)).toBe(token)
      }),
      { numRuns: 300 },
    )
  })

  it("is not found where it is not", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary-ascii", maxLength: 300 }), cuts, (text, sizes) => {
        fc.pre(!decodeURIComponentLoose(text).includes("SECRET["))
        expect(found(text, sizes)).toBeUndefined()
      }),
    )
    expect(found(token.slice(0, -1), [1])).toBeUndefined()
    expect(found(`${token.slice(0, 10)} ${token.slice(10)}`, [3])).toBeUndefined()
  })

  const decodeURIComponentLoose = (text: string): string =>
    text.replace(/%[0-9a-f]{2}/gi, (code) => String.fromCharCode(Number.parseInt(code.slice(1), 16)))
})
