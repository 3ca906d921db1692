import { describe, expect, it } from "vitest"
import { aimOf, asksForTokens } from "../../../src/egress-proxy/tokens/endpoint.ts"
import { loginOf, withLogin } from "../../../src/egress-proxy/tokens/held.ts"
import { captureLimits } from "../../../src/egress-proxy/tokens/limits.ts"
import { turnBack } from "../../../src/egress-proxy/tokens/request.ts"
import { tokenEndpoint } from "../../../src/manifest/values/token-endpoint.ts"

const json = "application/json"
const form = "application/x-www-form-urlencoded"
const login = loginOf(
  [
    { kind: "access", value: "at-real/0123" },
    { kind: "refresh", value: "rt-real+0123" },
  ],
  undefined,
  { now: 1, expiresIn: 60 },
)
const [access = "", refresh = ""] = login.tokens.map(({ placeholder }) => placeholder)
const turned = (body: string, type: string) => {
  const back = turnBack(Buffer.from(body), type, [login])
  return back.ok ? back.body.toString() : "misuse"
}

describe("a request to a token endpoint", () => {
  it.each([
    [
      "a refresh",
      form,
      `grant_type=refresh_token&refresh_token=${refresh}`,
      "grant_type=refresh_token&refresh_token=rt-real%2B0123",
    ],
    ["a refresh with a charset", `${form}; charset=UTF-8`, `refresh_token=${refresh}`, "refresh_token=rt-real%2B0123"],
    [
      "a refresh whose field is escaped",
      form,
      `refresh%5Ftoken=${refresh.replaceAll("-", "%2D")}`,
      "refresh%5Ftoken=rt-real%2B0123",
    ],
    [
      "a refresh in JSON",
      json,
      `{"grant_type":"refresh_token","refresh_token":"${refresh}"}`,
      `{"grant_type":"refresh_token","refresh_token":"rt-real+0123"}`,
    ],
    [
      "a revocation",
      form,
      `token=${refresh}&token_type_hint=refresh_token`,
      "token=rt-real%2B0123&token_type_hint=refresh_token",
    ],
    ["a revocation of an access token", form, `token=${access}`, "token=at-real%2F0123"],
    [
      "one without any placeholder",
      form,
      "grant_type=authorization_code&code=x",
      "grant_type=authorization_code&code=x",
    ],
    [
      "one with another's placeholder",
      form,
      `refresh_token=${refresh.slice(0, -1)}?`,
      `refresh_token=${refresh.slice(0, -1)}?`,
    ],
  ])("carries the token of %s", (_what, type, body, expected) => {
    expect(turned(body, type)).toBe(expected)
  })
  it.each([
    ["another field", form, `client_secret=${refresh}`],
    ["an access token as a refresh token", form, `refresh_token=${access}`],
    ["part of a value", form, `refresh_token=x${refresh}`],
    ["a field's name", form, `${refresh}=x`],
    ["a field that stands twice", form, `refresh_token=${refresh}&refresh_token=other`],
    ["a form that can be parted in two ways", form, `state=;&refresh_token=${refresh}`],
    ["JSON that is named twice", json, `{"refresh_token":"${refresh}","refresh_token":"x"}`],
    ["JSON named alike", json, `{"refresh_token":"${refresh}","refreshToken":"${refresh}"}`],
    ["an object within", json, `{"a":{"refresh_token":"${refresh}"}}`],
    ["another type", "text/plain", `refresh_token=${refresh}`],
    ["no type", "", `refresh_token=${refresh}`],
    ["two types", `${form},${json}`, `refresh_token=${refresh}`],
    ["base64", form, `state=${Buffer.from(refresh).toString("base64")}`],
    [
      "multipart",
      "multipart/form-data; boundary=x",
      `--x\r\ncontent-disposition: form-data; name=refresh_token\r\n\r\n${refresh}\r\n--x--`,
    ],
  ])("is a misuse where a placeholder stands in %s", (_what, type, body) => {
    expect(turned(body, type)).toBe("misuse")
  })
})

describe("a login's placeholders", () => {
  it("stand for the newest tokens after each refresh, which may leave the refresh token as it is", () => {
    const next = loginOf([{ kind: "access", value: "at-next-0123" }], login, { now: 2, expiresIn: undefined })
    expect(next.tokens.map(({ placeholder, value }) => [placeholder, value])).toEqual([
      [access, "at-next-0123"],
      [refresh, "rt-real+0123"],
    ])
    const rotated = loginOf(
      [
        { kind: "access", value: "at-third-012" },
        { kind: "refresh", value: "rt-third-012" },
      ],
      next,
      { now: 3, expiresIn: 1 },
    )
    expect(withLogin([next], rotated)).toEqual([rotated])
    expect(rotated.tokens.map(({ placeholder }) => placeholder)).toEqual([access, refresh])
  })
  it(`are forgotten with the oldest of more than ${captureLimits.logins} logins`, () => {
    let logins: readonly ReturnType<typeof loginOf>[] = []
    for (let at = 0; at <= captureLimits.logins; at += 1)
      logins = withLogin(
        logins,
        loginOf([{ kind: "access", value: `at-real-012${at}` }], undefined, { now: at, expiresIn: undefined }),
      )
    expect(logins.map(({ at }) => at)).toEqual([4, 3, 2, 1])
  })
})

describe("a token endpoint", () => {
  const endpoint = { host: "id.test", port: 443, path: "/oauth/token" }
  const aim = (target: string, headers: [string, string][] = [], place = { host: "id.test", port: 443 }) =>
    aimOf([endpoint], place, { target, headers })
  it("is its path, with or without a query", () => {
    expect([aim("/oauth/token"), aim("/oauth/token?x=1"), aim("/oauth/tokens"), aim("/"), aim("/other/token")]).toEqual(
      ["endpoint", "endpoint", "elsewhere", "elsewhere", "elsewhere"],
    )
    expect(aim("/oauth/token", [], { host: "id.test", port: 8443 })).toBe("alias")
    expect(aim("/other", [], { host: "id.test", port: 8443 })).toBe("elsewhere")
    expect(aim("/oauth/token", [], { host: "other.test", port: 443 })).toBe("elsewhere")
  })
  it.each([
    "/oauth/token/",
    "//oauth/token",
    "/oauth//token",
    "/oauth/./token",
    "/x/../oauth/token",
    "/oauth/token/../token",
    "/oauth/x/%2e%2e/token",
    "/oauth/%74oken",
    "/oauth/%2574oken",
    "/oauth%2ftoken",
    "/oauth\\token",
    "/oauth%5ctoken",
    "/OAuth/Token",
    "/oauth/token;x=1",
    "/oauth;v=2/token",
    "/oauth/token%00",
    "/oauth/token%3f",
    "/oauth/token%20",
    "/../oauth/token",
    "/%252525252574",
  ])("is not to be had by another spelling: %s", (target) => {
    expect(aim(target)).toBe("alias")
  })
  it.each(["X-Original-URL", "x-rewrite-url", "X_Original_URL"])(
    "is not to be had by a header that names a path: %s",
    (name) => {
      expect(aim("/", [[name, "/oauth/token"]])).toBe("alias")
    },
  )
  it.each([
    ["grant_type=refresh_token", form, true],
    ["x=1&grant%5Ftype=a", form, true],
    ["x=1;grant_type=a", "text/plain", true],
    [`{"x":{"grantType":"a"}}`, json, true],
    [`{"grant\\u005ftype":"a"}`, "", true],
    [`{"grant_type":1,"grant_type":"a"}`, json, true],
    [`--x\r\nContent-Disposition: form-data; name="grant_type"\r\n\r\na`, "multipart/form-data; boundary=x", true],
    [`{"text":"how does grant_type=code work?"}`, json, false],
    ["client_id=a&scope=b", form, false],
    ["", form, false],
  ])("is what is asked where the body is %s", (body, type, expected) => {
    expect(asksForTokens("/", type, Buffer.from(body))).toBe(expected)
  })
  it("is asked by a query too", () => {
    expect(asksForTokens("/v2?a=1&grant_type=x", "", Buffer.alloc(0))).toBe(true)
  })
  it.each([
    ["https://id.test/oauth/token", { host: "id.test", port: 443, path: "/oauth/token" }],
    ["https://id.test:8443/token", { host: "id.test", port: 8443, path: "/token" }],
    ["http://id.test/token", undefined],
    ["https://ID.test/token", undefined],
    ["https://id.test", undefined],
    ["https://id.test/a/../token", undefined],
    ["https://id.test//token", undefined],
    ["https://id.test/%74oken", undefined],
    ["https://id.test/token?x", undefined],
    ["https://u@id.test/token", undefined],
    ["https://127.0.0.1/token", undefined],
    ["https://id.test:99999/token", undefined],
  ])("is declared in one spelling: %s", (address, expected) => {
    expect(tokenEndpoint(address)).toEqual(expected)
  })
})
