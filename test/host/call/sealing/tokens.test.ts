import { describe, expect, it } from "vitest"
import { sealTokens } from "../../../../src/host/call/sealing/tokens.ts"
import type { OAuthSettings } from "../../../../src/host/config/oauth-types.ts"
import type { RegisteredDriver } from "../../../../src/host/registry/types.ts"
import type { AuthProvider, AuthSpec, DriverContract } from "../../../../src/manifest/types.ts"
import { driverOf, egress } from "../values.ts"

const provider = (more: Partial<AuthProvider> = {}): AuthProvider => ({
  kind: "auth",
  id: "acme",
  description: "d",
  apiBase: "https://api.test",
  flow: "device-code",
  clientId: "acme-cli",
  scopes: [],
  endpoints: {},
  issuer: "https://id.test",
  source: { file: "/a/AUTH.md", mode: "compat", digest: "sha256:0", leniencies: [] },
  ...more,
})
const login = { cmd: "scribe login", interactive: false, requiresCallbackUrl: false, completesWhen: [] } as const
const auth = (more: Partial<AuthSpec> = {}): AuthSpec => ({
  state: { paths: [], env: [] },
  provider: provider(),
  ...more,
})
const hosts = egress("id.test", "api.test")
const sealed = (
  contract: Partial<DriverContract>,
  logins: Record<string, OAuthSettings> = {},
  { entries = hosts, logsIn = false } = {},
) => {
  const driver = { key: "scribe@2", contract: driverOf(contract) } as unknown as RegisteredDriver
  return sealTokens({ logins }, driver, entries, { logsIn })
}
const place = { host: "id.test", port: 443, path: "/token" }
const captures = { ok: true, value: { capture: { endpoints: [place] } } }
const nothing = { ok: true, value: { env: {} } }

describe("a program that logs in by itself, at an issuer whose token endpoint nobody names,", () => {
  const refused = {
    ok: false,
    code: "tool_unavailable",
    message: expect.stringContaining("https://id.test") as string,
    hint: expect.stringContaining("endpoints: { token:") as string,
  }
  it("is not run: its tokens could not be kept out of its sandbox", () => {
    expect(sealed({ auth: auth({ login }) })).toMatchObject(refused)
    const refresh = { via: "cmd", cmd: "scribe refresh" } as const
    expect(sealed({ auth: auth({ refresh }) })).toMatchObject(refused)
  })
  it("is not run as a function of its driver's own either", () => {
    expect(sealed({ auth: auth() }, {}, { logsIn: true })).toMatchObject(refused)
  })
  it("is run once its AUTH.md, its driver or the operator names it, which is captured", () => {
    const named = { token: "https://id.test/token" }
    expect(sealed({ auth: auth({ login, provider: provider({ endpoints: named }) }) })).toMatchObject(captures)
    const tokenCapture = { endpoints: [place], hosts: [], idToken: "replace" } as const
    expect(sealed({ auth: auth({ login }), tokenCapture })).toMatchObject(captures)
    const scribe: OAuthSettings = { flow: "program", clientId: "", scopes: [], endpoints: named }
    expect(sealed({ auth: auth({ login }) }, { scribe })).toMatchObject(captures)
  })
  it("is run where it reaches nobody", () => {
    expect(sealed({ auth: auth({ login }) }, {}, { entries: [] })).toEqual(nothing)
  })
})

it("a program that the host logs in for gets no tokens of its own, wherever they come from", () => {
  expect(sealed({ auth: auth() })).toEqual(nothing)
  const scribe: OAuthSettings = {
    flow: "device-code",
    issuer: "https://o.test",
    clientId: "c",
    scopes: [],
    endpoints: {},
  }
  expect(sealed({ auth: auth({ login }) }, { scribe })).toEqual(nothing)
})

it("a program that logs in by itself where no issuer is named keeps what it gets", () => {
  const { issuer: _issuer, ...silent } = provider()
  expect(sealed({ auth: auth({ login, provider: silent }) })).toEqual(nothing)
})
