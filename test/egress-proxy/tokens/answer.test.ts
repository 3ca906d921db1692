import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { readAnswer } from "../../../src/egress-proxy/tokens/answer.ts"
import { loginOf } from "../../../src/egress-proxy/tokens/held.ts"
import { captureLimits } from "../../../src/egress-proxy/tokens/limits.ts"

const json = "application/json"
const form = "application/x-www-form-urlencoded"
const times = { now: 0, expiresIn: undefined }

const read = (
  body: string | Buffer,
  more: { status?: number; contentType?: string; asked?: boolean; passId?: boolean } = {},
) => {
  const { status = 200, contentType = json, asked = true, passId = false } = more
  return readAnswer({ status, contentType, asked, body: Buffer.from(body as string) }, passId)
}
/** the tokens by kind, and what the sandbox gets with words in the place of random ids */
const passed = (body: string | Buffer, more = {}) => {
  const answer = read(body, more)
  if (!answer.ok) return answer.reason
  const login = loginOf(answer.tokens, undefined, times)
  return {
    tokens: answer.tokens.map(({ kind, value }) => `${kind} ${value}`),
    text: answer.with(login).toString().replaceAll(login.id, "ID"),
    expiresIn: answer.expiresIn,
  }
}

describe("the answer of a token endpoint", () => {
  it("gives placeholders for its tokens and leaves every other sign as it was", () => {
    const body = `{"access_token":"at-real-0123", "token_type" : "Bearer","expires_in":3600,"id":12345678901234567890,"refresh_token":"rt-real-0123"}`
    expect(passed(body)).toEqual({
      tokens: ["access at-real-0123", "refresh rt-real-0123"],
      text: `{"access_token":"caisson-access-1-ID", "token_type" : "Bearer","expires_in":3600,"id":12345678901234567890,"refresh_token":"caisson-refresh-1-ID"}`,
      expiresIn: 3600,
    })
  })
  it.each([
    ["a form", "access_token=at%2Dreal-0123&scope=repo%2Cuser&refresh_token=rt-real-0123", form],
    [
      "a form that is called text",
      "access_token=at%2Dreal-0123&scope=repo%2Cuser&refresh_token=rt-real-0123",
      "text/plain",
    ],
    ["other cases and marks", `{"AccessToken":"at-real-0123","refreshToken":"rt-real-0123"}`, json],
    ["names that are escaped", `{"\\u0061ccess_token":"at-\\u0072eal-0123","refresh_token":"rt-real-0123"}`, json],
    [
      "objects in objects",
      `{"ok":true,"user":{"deep":[{"access_token":"at-real-0123","refresh_token":"rt-real-0123"}]}}`,
      json,
    ],
    ["lists", `{"access_tokens":["at-real-0123"],"refresh_token":["rt-real-0123"]}`, json],
    ["no type at all", `{"access_token":"at-real-0123","refresh_token":"rt-real-0123"}`, ""],
    ["a wrong type", `{"access_token":"at-real-0123","refresh_token":"rt-real-0123"}`, "text/html"],
  ])("is read as %s", (_what, body, contentType) => {
    const result = passed(body, { contentType })
    expect(result).toMatchObject({ tokens: ["access at-real-0123", "refresh rt-real-0123"] })
    expect((result as { text: string }).text).not.toContain("real-0123")
  })
  it("gives an id token only where the driver needs it", () => {
    const body = `{"access_token":"at-real-0123","id_token":"id-real-0123"}`
    expect(passed(body)).toMatchObject({ tokens: ["access at-real-0123", "id id-real-0123"] })
    expect(passed(body, { passId: true })).toMatchObject({
      tokens: ["access at-real-0123"],
      text: expect.stringContaining("id-real-0123") as string,
    })
  })
  it.each([
    ["a name twice", `{"access_token":"at-real-0123","access_token":"at-other-0123"}`],
    ["a name twice, once escaped", `{"access_token":"at-real-0123","access\\u005ftoken":"at-other-0123"}`],
    ["a name twice, deep inside", `{"access_token":"at-real-0123","a":[{"b":1,"b":2}]}`],
    ["JSON with more behind it", `{"access_token":"at-real-0123"}{"refresh_token":"rt-real-0123"}`],
    ["JSON with a mark before it", `\ufeff{"access_token":"at-real-0123"}`],
    ["JSON that is cut off", `{"access_token":"at-real-0123"`],
    ["JSON in words of its own", `{'access_token':'at-real-0123'}`],
    ["a guard before JSON", `)]}',\n{"access_token":"at-real-0123"}`],
    ["a token that is a number", `{"access_token":12345678901234}`],
    ["a token in another shape", `{"access_token":{"value":"at-real-0123"}}`],
    ["a token packed into a text", `{"access_token":"at-real-0123","raw":"{\\"refresh_token\\":\\"rt-real\\"}"}`],
    ["a short token", `{"access_token":"short"}`],
    ["a token with a newline", `{"access_token":"at-real\\n0123"}`],
    ["a token beyond ASCII", `{"access_token":"at-reäl-0123"}`],
    ["a token that is too long", `{"access_token":"${"a".repeat(captureLimits.tokenChars + 1)}"}`],
    ["too many tokens", `{"tokens":[${Array.from({ length: 9 }, (_, n) => `"at-real-012${n}"`).join()}]}`],
    ["no token", `{"ok":true}`],
    ["nothing", ""],
    ["a page", "<html>access_token: at-real-0123</html>"],
    ["bytes that are not UTF-8", Buffer.from([0x7b, 0xff, 0x7d])],
    ["UTF-16", Buffer.from(`{"access_token":"at-real-0123"}`, "utf16le")],
    ["nesting without end", `${"[".repeat(40)}"x"${"]".repeat(40)}`],
  ])("is refused where it is %s", (_what, body) => {
    expect(passed(body)).toEqual(expect.any(String))
  })
  it.each([
    ["a field twice", "access_token=at-real-0123&access_token=at-other-0123"],
    ["fields parted in two ways", "scope=x;access_token=at-real-0123&access_token=at-other-0123"],
  ])("is refused where its form has %s", (_what, body) => {
    expect(passed(body, { contentType: form })).toEqual(expect.any(String))
  })
  it("is refused in another charset, as a part, and where it leads elsewhere", () => {
    const body = `{"access_token":"at-real-0123"}`
    for (const more of [
      { contentType: `${json}; charset=utf-7` },
      { status: 206 },
      { status: 302 },
      { status: 307 },
      { status: 304 },
    ])
      expect(passed(body, more)).toEqual(expect.any(String))
    expect(passed(body, { contentType: `${json}; charset=UTF-8` })).toMatchObject({ tokens: ["access at-real-0123"] })
  })
  it("passes errors, and empties what they should not hold", () => {
    const error = `{"error":"authorization_pending","error_description":"the token: not yet"}`
    expect(passed(error, { status: 400 })).toMatchObject({ tokens: [], text: error })
    expect(passed("<html>Bad Gateway</html>", { status: 502, contentType: "text/html" })).toMatchObject({ tokens: [] })
    expect(passed("", { status: 401 })).toMatchObject({ tokens: [] })
    expect(passed(`{"error":"x","access_token":"at-real-0123"}`, { status: 400 })).toMatchObject({
      tokens: ["access at-real-0123"],
    })
    expect(passed("access_token: at-real-0123", { status: 500, contentType: "text/plain" })).toEqual(expect.any(String))
  })
  it("may be without tokens where none were asked for", () => {
    expect(passed("", { asked: false })).toMatchObject({ tokens: [] })
    expect(passed(`{"active":false}`, { asked: false })).toMatchObject({ tokens: [] })
    expect(passed("OK", { asked: false, contentType: "text/plain" })).toMatchObject({ tokens: [], text: "OK" })
  })
  it.each([
    ["3600", 3600],
    [`"3600"`, 3600],
    ["-1", undefined],
    ["1e999", undefined],
    [`"soon"`, undefined],
    ["null", undefined],
    ["1e15", captureLimits.lifeSeconds],
  ])("tells when they end: %s", (written, seconds) => {
    expect(passed(`{"access_token":"at-real-0123","expires_in":${written}}`)).toMatchObject({ expiresIn: seconds })
  })

  const runs = Number(process.env["CAISSON_FUZZ_RUNS"] ?? 2_000)
  const secret = fc.stringMatching(/^real-[A-Za-z0-9._~+/=-]{12,40}$/)
  const name = fc.constantFrom("access_token", "refresh_token", "refreshToken", "id_token", "Access-Token", "bot_token")
  it("passes no token, whatever stands around it: it is read, or refused", () => {
    const noise = fc.dictionary(fc.string({ maxLength: 6 }), fc.jsonValue({ maxDepth: 3 }), { maxKeys: 4 })
    fc.assert(
      fc.property(
        noise,
        fc.dictionary(name, secret, { minKeys: 1 }),
        fc.integer({ min: 0, max: 3 }),
        fc.boolean(),
        (around, tokens, depth, pretty) => {
          let value: unknown = { ...around, ...tokens }
          for (let level = 0; level < depth; level += 1)
            value = level % 2 === 0 ? { ...around, inner: value } : [value, around]
          const answer = read(JSON.stringify(value, null, pretty ? 2 : 0))
          if (!answer.ok) return
          const text = answer.with(loginOf(answer.tokens, undefined, times)).toString()
          for (const token of Object.values(tokens)) expect(text).not.toContain(token)
          expect(() => JSON.parse(text) as unknown).not.toThrow()
        },
      ),
      { numRuns: runs },
    )
  })
  it("survives any bytes, and what it passes of them holds no value of a member that is named like a token", () => {
    const cut = fc.tuple(
      fc.constantFrom(`{"access_token":"real-abcdefgh0123","x":1}`, "access_token=real-abcdefgh0123&x=1"),
      fc.nat(44),
      fc.nat(44),
      fc.string({ maxLength: 5 }),
    )
    fc.assert(
      fc.property(
        cut,
        fc.constantFrom(json, form, "text/plain", ""),
        fc.constantFrom(200, 400, 500),
        ([whole, from, to, more], contentType, status) => {
          const body = whole.slice(0, Math.min(from, to)) + more + whole.slice(Math.max(from, to))
          const answer = read(body, { contentType, status })
          if (!answer.ok) return
          const text = answer.with(loginOf(answer.tokens, undefined, times)).toString()
          let value: unknown
          try {
            value = JSON.parse(text)
          } catch {
            value = Object.fromEntries(new URLSearchParams(text))
          }
          const token = (value as Record<string, unknown> | null)?.["access_token"]
          if (typeof token === "string" && token !== "") expect(token.trim()).toMatch(/^caisson-access-1-[0-9a-f]{32}$/)
        },
      ),
      { numRuns: runs },
    )
  })
})
