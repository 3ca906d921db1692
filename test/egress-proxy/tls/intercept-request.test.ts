import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { prepareSubstitutions } from "../../../src/egress-proxy/secrets/substitute.ts"
import { judgeHead, type RequestHead } from "../../../src/egress-proxy/tls/intercept-request.ts"

const name = "api.good.test"
const token = "$$SECRET[GITHUB_TOKEN]$$"
const value = "ghp_real-value-0123"
const prepared = prepareSubstitutions([{ placeholder: token, value, hosts: [name] }])
if (!prepared.ok) throw new Error(prepared.reason)
const rules = { name, port: 443, substitutions: prepared.substitutions, readOnlyHttp: "off" } as const

const head = (parts: Partial<RequestHead>): RequestHead => ({
  method: "GET",
  url: "/",
  httpVersion: "1.1",
  rawHeaders: ["Host", name],
  upgrade: false,
  ...parts,
})

describe("a judged head", () => {
  it("keeps order, spelling and repetition of what it keeps", () => {
    const rawHeaders = ["X-b", "1", "HOST", "API.good.test:443", "x-A", "2", "X-b", "3", "Connection", "x-a, close"]
    const verdict = judgeHead(head({ rawHeaders }), rules)
    const headers = [
      ["Host", name],
      ["X-b", "1"],
      ["X-b", "3"],
      ["Accept-Encoding", "identity"],
    ]
    expect(verdict).toMatchObject({ ok: true, headers, body: { kind: "none" }, used: [] })
  })

  it("names another port than 443 upstream", () => {
    const verdict = judgeHead(head({ rawHeaders: ["Host", `${name}:8443`] }), { ...rules, port: 8443 })
    expect(verdict).toMatchObject({
      ok: true,
      headers: [
        ["Host", `${name}:8443`],
        ["Accept-Encoding", "identity"],
      ],
    })
    expect(judgeHead(head({}), { ...rules, port: 8443 })).toMatchObject({ refusal: { code: "authority_mismatch" } })
  })

  it.each(["5,5", "+5", "0x5", "-1", "5 ", "", "9007199254740993"])("has no length %j", (length) => {
    const verdict = judgeHead(head({ method: "POST", rawHeaders: ["Host", name, "Content-Length", length] }), rules)
    expect(verdict).toMatchObject({ ok: false, refusal: { code: "bad_framing" } })
  })

  it("is a safe method or is reported, as asked", () => {
    const judged = (method: string, upgrade = false) => {
      const rawHeaders = ["Host", name, ...(upgrade ? ["Connection", "Upgrade", "Upgrade", "websocket"] : [])]
      const verdict = judgeHead(head({ method, upgrade, rawHeaders }), { ...rules, readOnlyHttp: "report" })
      return verdict.ok && verdict.reported
    }
    expect(["GET", "HEAD", "OPTIONS", "POST", "DELETE", "PROPFIND"].map((method) => judged(method))).toEqual([
      false,
      false,
      false,
      true,
      true,
      true,
    ])
    expect(judged("GET", true)).toBe(true)
  })

  it("is no safe method when a header or the query overrides it", () => {
    const judged = (extra: readonly string[], url = "/") =>
      judgeHead(head({ url, rawHeaders: ["Host", name, ...extra] }), { ...rules, readOnlyHttp: "enforce" }).ok
    expect(judged([])).toBe(true)
    expect(judged(["X-HTTP-Method-Override", "GET"])).toBe(true)
    expect(judged(["X-HTTP-Method-Override", "DELETE"])).toBe(false)
    expect(judged(["x_method_override", "put"])).toBe(false)
    expect(judged([], "/a?b=c&_method=DELETE")).toBe(false)
  })

  it("never lets a foreign authority, a hop-by-hop or control header, or a value into the wrong place", () => {
    const key = fc.constantFrom(
      "Host",
      "host",
      "Connection",
      "TE",
      "X-Caisson-Denied",
      "Proxy-X",
      "Upgrade",
      "X-Any",
      "Authorization",
      "Content-Length",
      "Transfer-Encoding",
      "Keep-Alive",
    )
    const text = fc.constantFrom(
      name,
      "evil.test",
      token,
      `Bearer ${token}`,
      "chunked",
      "5",
      "x-any",
      "close",
      "websocket",
      encodeURIComponent(token),
      "",
    )
    const rawHeaders = fc.array(fc.tuple(key, text), { maxLength: 8 }).map((pairs) => pairs.flat())
    const url = fc.constantFrom("/", "/a?b", "*", `https://${name}/`, `/?${token}`, "/#x", "")
    const method = fc.constantFrom("GET", "POST", "TRACE", "CONNECT", token)
    fc.assert(
      fc.property(
        rawHeaders,
        url,
        method,
        fc.constantFrom("1.1", "1.0", "0.9", "2.0"),
        fc.boolean(),
        (raw, target, verb, httpVersion, upgrade) => {
          const hosted = ["Host", name, ...raw]
          for (const rawHeaders of [raw, hosted]) {
            const verdict = judgeHead({ method: verb, url: target, httpVersion, rawHeaders, upgrade }, rules)
            if (!verdict.ok) {
              expect(JSON.stringify(verdict)).not.toContain(value)
              continue
            }
            const names = verdict.headers.map(([header]) => header.toLowerCase())
            expect(names.filter((header) => header === "host")).toHaveLength(1)
            expect(verdict.headers[0]).toEqual(["Host", name])
            const never = [
              "connection",
              "te",
              "x-caisson-denied",
              "proxy-x",
              "upgrade",
              "keep-alive",
              "transfer-encoding",
              "content-length",
            ]
            expect(names.filter((header) => never.includes(header))).toEqual([])
            expect(JSON.stringify(verdict.headers)).not.toContain("SECRET[")
            expect(target.startsWith("/")).toBe(true)
          }
        },
      ),
      { numRuns: Number(process.env["CAISSON_FUZZ_RUNS"] ?? 3000) },
    )
  })
})
