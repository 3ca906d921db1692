import { describe, expect, it } from "vitest"
import type { OAuthSettings } from "../../../src/host/config/oauth-types.ts"
import type { TokenEndpoint } from "../../../src/manifest/values/token-endpoint.ts"
import { settingsIn, tokenEndpointsOf, writtenFor } from "../../../src/host/login/oauth/settings.ts"
import type { AuthProvider, AuthSpec } from "../../../src/manifest/types.ts"
import { driverWith } from "./desk.ts"

const provider: AuthProvider = {
  kind: "auth",
  id: "acme",
  description: "d",
  apiBase: "https://api.test",
  audience: "api",
  flow: "device-code",
  clientId: "acme-cli",
  scopes: ["read"],
  endpoints: { token: "https://ID.test:8443/oauth/token" },
  source: { file: "/a/AUTH.md", mode: "compat", digest: "sha256:0", leniencies: [] },
}
const auth = (more: Partial<AuthSpec> = {}): AuthSpec => ({ state: { paths: [], env: [] }, provider, ...more })
const written = (more: Partial<OAuthSettings> = {}): OAuthSettings => ({
  flow: "program",
  endpoints: { token: "https://operator.test/token" },
  clientId: "",
  scopes: [],
  ...more,
})

describe("where a driver's tokens come from", () => {
  const places = (spec: AuthSpec, logins: Record<string, OAuthSettings> = {}) =>
    tokenEndpointsOf(driverWith(spec), logins)
  it("is what its AUTH.md says, as a certificate and a request name it", () =>
    expect(places(auth())).toEqual([{ host: "id.test", port: 8443, path: "/oauth/token" }]))
  it("is what the operator wrote, by the driver's id or its major, and then nothing of the manifest's", () => {
    const operators: readonly TokenEndpoint[] = [{ host: "operator.test", port: 443, path: "/token" }]
    expect(places(auth(), { gh: written() })).toEqual(operators)
    expect(places(auth(), { "gh@1": written(), gh: written({ endpoints: {} }) })).toEqual(operators)
    expect(places(auth(), { "gh@2": written() })).toEqual([{ host: "id.test", port: 8443, path: "/oauth/token" }])
  })
  it("is its `refresh.url` too, each place once", () => {
    const refresh = { via: "url", url: "http://[::1]:8080/refresh?x=1" } as const
    expect(places(auth({ refresh })).slice(1)).toEqual([{ host: "::1", port: 8080, path: "/refresh" }])
    const same = { via: "url", url: "https://id.test:8443/oauth/token" } as const
    expect(places(auth({ refresh: same }))).toHaveLength(1)
  })
  it("is nowhere where nobody says so, or what is said is no web address", () => {
    expect(tokenEndpointsOf(driverWith({ state: { paths: [], env: [] } }), {})).toEqual([])
    expect(places(auth(), { gh: written({ endpoints: { token: "ftp://x.test/" } }) })).toEqual([])
  })
})

describe("settings of a login", () => {
  it("are those of the AUTH.md, found by what its service publishes, with TLS but under names that the operator maps", () =>
    expect(settingsIn(provider, ["lab.test"])).toEqual({
      flow: "device-code",
      clientId: "acme-cli",
      scopes: ["read"],
      endpoints: provider.endpoints,
      server: "https://api.test",
      plainHosts: ["lab.test"],
      audience: "api",
    }))
  it("name the issuer where it does", () => {
    const { server, issuer } = settingsIn({ ...provider, issuer: "https://id.test" }, []) ?? {}
    expect([server, issuer]).toEqual([undefined, "https://id.test"])
  })
  it("send a person to the driver's own page where the AUTH.md names none", () => {
    const login = {
      url: "https://api.test/authorize?x=1",
      interactive: true,
      requiresCallbackUrl: true,
      completesWhen: [],
    }
    expect(settingsIn({ ...provider, flow: "authorization-code" }, [], { login })?.endpoints.authorization).toBe(
      login.url,
    )
    expect(settingsIn(provider, [], { login })?.endpoints.authorization).toBeUndefined()
  })
  it("are none for a key that a person types, and none without an AUTH.md", () => {
    expect(settingsIn({ ...provider, flow: "pat" }, [])).toBeUndefined()
    expect(settingsIn(undefined, [])).toBeUndefined()
  })
  it("are of no other driver, whatever it is called", () => {
    expect(writtenFor(driverWith(auth()), { constructor: written() } as never)).toBeUndefined()
  })
})
