import { describe, expect, it } from "vitest"
import type { AuthSpec, HealthCheck } from "../../../src/manifest/types.ts"
import { asDriver, cliFront, errors, load, warnings } from "../from-text.ts"

const front = (auth: string): string =>
  cliFront({ network: "{ egress: [api.test] }", extra: `auth: { state: { env: [X_TOKEN] }, ${auth} }` })
const auth = (text: string): AuthSpec | undefined => asDriver(load("DRIVER.md", front(text))).auth
const failing = (text: string): string[] => errors(load("DRIVER.md", front(text)))
const warned = (text: string): string[] => warnings(load("DRIVER.md", front(text)))

describe("a login", () => {
  it("is typed, with its proofs", () => {
    expect(
      auth(
        "login: { cmd: prog login, url: 'https://api.test/auth', interactive: true, requires_callback_url: true, completes_when: { cmd: prog whoami, exit_code: 3, http: { url: 'https://api.test/me', expect_status: 204 } } }",
      )?.login,
    ).toEqual({
      cmd: "prog login",
      url: "https://api.test/auth",
      interactive: true,
      requiresCallbackUrl: true,
      completesWhen: [
        { by: "cmd", cmd: "prog whoami", exitCode: 3 },
        { by: "http", probe: { method: "GET", url: "https://api.test/me", expectStatus: 204 } },
      ],
    })
  })
  it("has defaults", () => {
    expect(auth("login: { cmd: prog login }")?.login).toEqual({
      cmd: "prog login",
      interactive: false,
      requiresCallbackUrl: false,
      completesWhen: [],
    })
  })
  it.each([
    [
      "that an exit code alone proves",
      "login: { cmd: x, completes_when: { exit_code: 0 } }",
      "missing-field @ auth.login.completes_when.cmd",
    ],
    ["whose page is a script", "login: { cmd: x, url: 'javascript:alert(1)' }", "login-url @ auth.login.url"],
    ["whose page is a file", "login: { cmd: x, url: 'file:///etc/passwd' }", "login-url @ auth.login.url"],
    [
      "whose probe is a file",
      "login: { cmd: x, completes_when: { http: { url: 'file:///etc/passwd' } } }",
      "bad-value @ auth.login.completes_when.http.url",
    ],
    [
      "whose probe goes where the input says",
      'login: { cmd: x, completes_when: { http: { url: "https://${input.host}/me" } } }',
      "bad-value @ auth.login.completes_when.http.url",
    ],
    [
      "whose probe carries a password",
      "login: { cmd: x, completes_when: { http: { url: 'https://a:b@api.test/' } } }",
      "bad-value @ auth.login.completes_when.http.url",
    ],
    ["of a program without a command", "login: { url: 'https://api.test/' }", "missing-field @ auth.login.cmd"],
    ["that is refreshed at another scheme", "refresh: { url: 'ftp://api.test/' }", "bad-value @ auth.refresh.url"],
    ["that is refreshed at no time", "refresh: { cmd: x, every: PTsoon }", "bad-value @ auth.refresh.every"],
    ["that is refreshed every nothing", "refresh: { cmd: x, every: PT0S }", "bad-value @ auth.refresh.every"],
  ])("%s is refused", (_what, text, expected) => {
    expect(failing(text)).toEqual([expected])
  })
  it("whose probe cannot be reached says so", () => {
    expect(warned("login: { cmd: x, completes_when: { http: { url: 'https://elsewhere.test/me' } } }")).toEqual([
      "address-not-in-egress @ auth.login.completes_when.http.url",
    ])
    expect(warned("login: { cmd: x, completes_when: { http: { url: 'https://api.test:8443/me' } } }")).toEqual([
      "address-not-in-egress @ auth.login.completes_when.http.url",
    ])
  })
  it.each([
    ["refresh: { cmd: x, every: PT24H }", { via: "cmd", cmd: "x", everyMs: 86_400_000 }, []],
    ["refresh: { cmd: x, every: P1DT1M }", { via: "cmd", cmd: "x", everyMs: 86_460_000 }, []],
    ["refresh: { url: 'https://api.test/r' }", { via: "url", url: "https://api.test/r" }, []],
    ["refresh: { cmd: x, url: 'https://api.test/r' }", { via: "cmd", cmd: "x" }, ["refresh-twice @ auth.refresh.url"]],
    [
      "refresh: { cmd: x, every: PT1S }",
      { via: "cmd", cmd: "x", everyMs: 60_000 },
      ["every-too-often @ auth.refresh.every"],
    ],
    ["refresh: { every: PT1H }", undefined, ["refresh-empty @ auth.refresh"]],
  ])("is kept fresh by %s", (text, refresh, said) => {
    expect(auth(text)?.refresh).toEqual(refresh)
    expect(warned(text)).toEqual(said)
  })
  it.each([
    ["exit_code:4", { by: "exit_code", code: 4 }],
    ["http_status:401", { by: "http_status", status: 401 }],
    ["exception:AuthError", { by: "exception", name: "AuthError" }],
    ["header:WWW-Authenticate:Bearer", { by: "header", name: "www-authenticate", value: "Bearer" }],
  ])("is found to be gone by %s", (detect, expiry) => {
    expect(auth(`expiry: { detect: "${detect}" }`)?.expiry).toEqual(expiry)
  })
  it.each([
    "exit_code:0",
    "exit_code:256",
    "exit_code:x",
    "http_status:200",
    "http_status:999",
    "exception:a b()",
    "moon:full",
    "header:x",
  ])("is not ended by %s", (detect) => {
    const text = `expiry: { detect: "${detect.replace(" ", "_")}" }`
    expect(auth(text)?.expiry).toBeUndefined()
    expect(warned(text)).toEqual(["expiry-unknown @ auth.expiry.detect"])
  })
})

describe("a health check", () => {
  const health = (text: string): HealthCheck | undefined =>
    asDriver(load("DRIVER.md", cliFront({ network: "{ egress: [api.test] }", extra: `health_check: ${text}` })))
      .healthCheck
  it.each([
    ["{ method: noop }", { method: "noop", timeoutMs: 5000 }],
    ["{ method: ping, every: PT5M }", { method: "ping", timeoutMs: 5000, everyMs: 300_000 }],
    [
      "{ method: exec, cmd: prog ok, expect_exit: 2, timeout_ms: 100 }",
      { method: "exec", cmd: "prog ok", expectExit: 2, timeoutMs: 100 },
    ],
    [
      "{ method: http, http: { method: HEAD, url: 'https://api.test/up' } }",
      { method: "http", probe: { method: "HEAD", url: "https://api.test/up" }, timeoutMs: 5000 },
    ],
    ["{ method: noop, every: PT1S, timeout_ms: 86400000 }", { method: "noop", everyMs: 10_000, timeoutMs: 60_000 }],
  ])("is typed: %s", (written, expected) => {
    expect(health(written)).toEqual(expected)
  })
  it.each([
    "file:///x",
    "gopher://x/",
    "https://a:b@api.test/",
    "//api.test/",
    "https://api.test/#x",
    "https:///",
    "https:///evil.test",
  ])("does not probe %s", (url) => {
    const result = load("DRIVER.md", cliFront({ extra: `health_check: { method: http, http: { url: "${url}" } }` }))
    expect(errors(result)).toEqual(["bad-value @ health_check.http.url"])
  })
})
