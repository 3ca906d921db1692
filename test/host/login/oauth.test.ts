import { connect } from "node:net"
import { once } from "node:events"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import type { LoginDesk, LoginFlow } from "../../../src/host/login/flow.ts"
import type { PageToOpen } from "../../../src/host/person.ts"
import { oauthMethod, type OAuthOptions } from "../../../src/host/login/oauth/method.ts"
import type { OAuthSettings } from "../../../src/host/config/oauth-types.ts"
import type { RefusedCallback } from "../../../src/host/login/callback/page.ts"
import type { RegisteredDriver } from "../../../src/host/registry/types.ts"
import { Secret } from "../../../src/host/secrets/secret.ts"
import { browse, BrowsingPerson, type OidcServer, startOidc } from "../../support/servers/oidc.ts"

const driver = {
  key: "desk@1",
  contract: { auth: { state: { paths: [], env: ["DESK_TOKEN"] } } },
} as unknown as RegisteredDriver
const key = { tenant: "local", driver: "desk@1 x", workspace: "w_1", user: "alice" }
const clientSecret = "of-the-service-5b1f0c2e9d"

let server: OidcServer
let vault: Map<string, Secret>
let refused: RefusedCallback[]
beforeEach(async () => {
  server = await startOidc()
  vault = new Map()
  refused = []
})
afterEach(async () => await server[Symbol.asyncDispose]())

const settings = (more: Partial<OAuthSettings> = {}): OAuthSettings => ({
  flow: "authorization-code",
  issuer: server.issuer,
  endpoints: {},
  clientId: "caisson",
  scopes: ["openid", "offline_access", "read"],
  ...more,
})
const methodWith = (given: OAuthSettings, options: Partial<OAuthOptions> = {}) =>
  oauthMethod({
    settingsOf: () => given,
    clientSecret: async () => new Secret(clientSecret),
    refused: (_desk, why) => refused.push(why),
    ...options,
  })
/** A desk whose dials are judged by a list of ports, as the real one's are by declared hosts. */
const deskWith = (open?: (page: PageToOpen) => void, more: Partial<LoginDesk> = {}): LoginDesk => ({
  driver,
  key,
  signal: new AbortController().signal,
  deadlineMs: Date.now() + 60_000,
  person: open === undefined ? {} : { open },
  tell: () => undefined,
  lacks: [],
  scopes: { before: [], wanted: [] },
  runOwn: () => Promise.reject(new Error("an OAuth login runs no function")),
  ask: () => Promise.reject(new Error("an OAuth login asks by itself")),
  run: () => Promise.reject(new Error("an OAuth login runs no program")),
  connect: async ({ host, port, signal }) => {
    if (port !== server.port) return { ok: false, verdict: { decision: "denied", reason: "host_not_allowed" } as never }
    const connection = connect({ host, port, ...(signal === undefined ? {} : { signal }) })
    await once(connection, "connect")
    return { ok: true, connection, address: host }
  },
  kept: {
    hold: () => {
      throw new Error("an OAuth login keeps what it is given")
    },
    get: async (slug) => ({ ok: true, value: vault.get(slug) }),
    set: async (slug, value) => {
      vault.set(slug, value)
      return { ok: true, value: undefined }
    },
    delete: async (slug) => ({ ok: true, value: vault.delete(slug) }),
  },
  ...more,
})
const flowOf = (given: OAuthSettings, options?: Partial<OAuthOptions>): LoginFlow => {
  const flow = methodWith(given, options).loginOf(driver)
  if (flow === undefined) throw new Error("no flow")
  return flow
}
const tokens = () => JSON.parse(vault.get("desk-token-login")?.reveal() ?? "null") as Record<string, unknown>
const signIn = (page: PageToOpen): void => void new BrowsingPerson().visit(page.direct ?? page.url)

describe("a page with a callback", () => {
  it("brings tokens into the vault, tells whose they are and when they end", async () => {
    const before = Date.now()
    const done = await flowOf(settings()).run(deskWith(signIn))
    expect(done).toMatchObject({ ok: true, account: "alice", expiresMs: expect.any(Number) as number })
    expect(tokens()).toMatchObject({ accessToken: expect.any(String), refreshToken: expect.any(String) })
    // The program is given the access token and nothing else.
    expect(vault.get("desk-token")?.reveal()).toBe(tokens()["accessToken"])
    expect(tokens()["expiresAt"]).toBeGreaterThanOrEqual(before + 3_500_000)
    expect(refused).toEqual([])
  })

  it("takes no answer that another page sends, that has no state of its own, or that comes twice", async () => {
    const callback = Promise.withResolvers<string>()
    const attacked = async (page: PageToOpen): Promise<void> => {
      const url = new URL(page.url)
      const back = url.searchParams.get("redirect_uri") ?? ""
      const state = url.searchParams.get("state") ?? ""
      const attempts: [string, Parameters<typeof browse>[1]][] = [
        [`${back}?code=stolen`, {}],
        [`${back}?code=stolen&state=`, {}],
        [`${back}?code=stolen&state=${state.slice(0, -2)}AA`, {}],
        [`${back}?code=stolen&state=${state}&state=${state}`, {}],
        [`${back}/../other?code=stolen&state=${state}`, {}],
        [`${back}?code=stolen&state=${state}`, { method: "POST" }],
        [`${back}?code=stolen&state=${state}`, { headers: { origin: "https://evil.test" } }],
        [`${back}?code=stolen&state=${state}`, { headers: { "sec-fetch-mode": "no-cors", "sec-fetch-dest": "image" } }],
        [`${back.replace("127.0.0.1", "localhost")}?code=stolen&state=${state}`, {}],
      ]
      for (const [address, init] of attempts) {
        const answer = await browse(address, init)
        expect(answer.status, address).toBeGreaterThanOrEqual(400)
        expect(answer.text).not.toContain("stolen")
      }
      callback.resolve(`${back}?state=${state}`)
      await new BrowsingPerson().visit(page.url)
    }
    let attack: Promise<void> | undefined
    const done = await flowOf(settings()).run(
      deskWith((page) => {
        attack = attacked(page)
      }),
    )
    await attack
    expect(done).toMatchObject({ ok: true, account: "alice" })
    expect(refused).toEqual([
      "malformed",
      "malformed",
      "foreign",
      "malformed",
      "wrong-path",
      "wrong-method",
      "wrong-origin",
      "wrong-origin",
      "wrong-host",
    ])
    // It is closed with the login.
    await expect(fetch(await callback.promise)).rejects.toThrow()
  })

  it("that a person says no to is a refusal, and nothing is kept", async () => {
    const deny = async (page: PageToOpen): Promise<void> => {
      const url = new URL(page.url)
      const back = url.searchParams.get("redirect_uri") ?? ""
      await browse(`${back}?error=access_denied&iss=${server.issuer}&state=${url.searchParams.get("state") ?? ""}`)
    }
    expect(await flowOf(settings()).run(deskWith((page) => void deny(page)))).toMatchObject({
      ok: false,
      why: "refused",
    })
    expect(vault.size).toBe(0)
  })

  it("that comes back from another issuer than the one that was asked counts for nothing", async () => {
    const mixUp = async (page: PageToOpen): Promise<void> => {
      const url = new URL(page.url)
      const back = url.searchParams.get("redirect_uri") ?? ""
      await browse(`${back}?code=x&iss=https://evil.test&state=${url.searchParams.get("state") ?? ""}`)
    }
    expect(await flowOf(settings()).run(deskWith((page) => void mixUp(page)))).toMatchObject({
      ok: false,
      why: "broken",
    })
    expect(server.grants).toEqual([])
  })

  it("ends with its cancel, and with its time", async () => {
    const stop = new AbortController()
    const cancelled = flowOf(settings()).run(deskWith(() => stop.abort(), { signal: stop.signal }))
    expect(await cancelled).toMatchObject({ ok: false, why: "cancelled" })
    const late = new AbortController()
    const timed = flowOf(settings()).run(deskWith(() => late.abort(), { signal: late.signal, deadlineMs: Date.now() }))
    expect(await timed).toMatchObject({ ok: false, why: "timed-out" })
  })

  it("wants a person", async () => {
    expect(await flowOf(settings()).run(deskWith())).toMatchObject({ ok: false, why: "needs-person" })
  })
})

describe("a provider that a manifest names", () => {
  const credentials = {
    flow: "client-credentials",
    clientId: "service",
    clientSecret: "service-key",
    scopes: [],
  } as const
  const loginWith = (more: Partial<OAuthSettings>) =>
    methodWith(settings({ ...credentials, ...more }))
      .loginOf(driver)
      ?.run(deskWith())
  it("is asked for tokens without TLS under a name alone that the operator maps to an address", async () => {
    expect(await loginWith({ plainHosts: ["id.test"] })).toMatchObject({
      ok: false,
      why: "broken",
      message: expect.stringContaining("without TLS") as string,
      fix: expect.stringContaining("egress.services") as string,
    })
    expect(server.grants).toEqual([])
    expect(vault.size).toBe(0)
    expect(await loginWith({ plainHosts: ["127.0.0.1"] })).toMatchObject({ ok: true })
  })
})

describe("a device code", () => {
  it("is entered elsewhere, while the provider is asked no more often than it allows", async () => {
    const shown: PageToOpen[] = []
    const done = await flowOf(settings({ flow: "device-code" })).run(
      deskWith((page) => {
        shown.push(page)
        signIn(page)
      }),
    )
    expect(done).toMatchObject({ ok: true, account: "alice" })
    expect(shown).toEqual([
      {
        url: `${server.issuer}/device`,
        code: expect.stringMatching(/^[A-Z]{4}-[A-Z]{4}$/),
        direct: expect.any(String),
        from: "host",
      },
    ])
    expect(tokens()).toMatchObject({ refreshToken: expect.any(String) })
  })
})

describe("this host's own credentials", () => {
  const own = (more: Partial<OAuthSettings> = {}) =>
    settings({
      flow: "client-credentials",
      clientId: "service",
      clientSecret: "service-secret",
      scopes: ["read"],
      ...more,
    })
  it("bring a token without anybody", async () => {
    expect(await flowOf(own()).run(deskWith())).toMatchObject({ ok: true })
    expect(tokens()).not.toHaveProperty("refreshToken")
    expect(await methodWith(own()).refreshOf(driver)?.run(deskWith())).toMatchObject({ ok: true })
    expect(server.grants).toHaveLength(2)
  })
  it("that are wrong, or not in the vault, are told as whose fault that is, without a value", async () => {
    const wrong = await flowOf(own(), { clientSecret: async () => new Secret("wrong-canary") }).run(deskWith())
    expect(wrong).toMatchObject({
      ok: false,
      why: "broken",
      message: expect.stringContaining("invalid_client") as string,
    })
    expect(JSON.stringify(wrong)).not.toContain("canary")
    const absent = await flowOf(own(), { clientSecret: async () => undefined }).run(deskWith())
    expect(absent).toMatchObject({
      ok: false,
      fix: expect.stringContaining("caisson secrets set service-secret") as string,
    })
  })
})

describe("a refresh", () => {
  const refresh = (desk = deskWith()) => methodWith(settings()).refreshOf(driver)?.run(desk)
  beforeEach(async () => {
    await flowOf(settings()).run(deskWith(signIn))
  })
  it("keeps the rotated token before it answers, and the next one is made with that", async () => {
    const first = tokens()
    expect(await refresh()).toMatchObject({ ok: true, refreshMs: expect.any(Number) as number })
    const second = tokens()
    expect(second["refreshToken"]).not.toBe(first["refreshToken"])
    expect(await refresh()).toMatchObject({ ok: true })
    expect(server.grants.map(({ status }) => status)).toEqual([200, 200, 200])
  })
  it("with a token that was used before is a refusal", async () => {
    const first = vault.get("desk-token-login")
    await refresh()
    vault.set("desk-token-login", first as Secret)
    expect(await refresh()).toMatchObject({
      ok: false,
      why: "refused",
      message: expect.stringContaining("invalid_grant") as string,
    })
  })
  it("that the provider cannot serve, or that cannot be sent, says nothing of the login", async () => {
    const before = tokens()
    server.status = 503
    expect(await refresh()).toMatchObject({ ok: false, why: "unreachable" })
    server.status = undefined
    const cut = deskWith(undefined, {
      connect: async () => ({ ok: false, verdict: { decision: "infrastructure", reason: "dial_failed" } as never }),
    })
    expect(await refresh(cut)).toMatchObject({ ok: false, why: "unreachable" })
    expect(tokens()).toEqual(before)
    expect(await refresh()).toMatchObject({ ok: true })
  })
  it("whose answer cannot be kept is told, with what to do", async () => {
    const full = deskWith()
    const desk = {
      ...full,
      kept: {
        ...full.kept,
        set: async () => ({
          ok: false as const,
          code: "internal" as const,
          message: "the disk is full",
          hint: "free it",
          details: {},
        }),
      },
    }
    expect(await refresh(desk)).toMatchObject({
      ok: false,
      why: "broken",
      fix: expect.stringContaining("log in again") as string,
    })
  })
  it("to a host that the driver does not declare is not sent", async () => {
    const elsewhere = methodWith(settings({ issuer: "http://127.0.0.1:1" })).refreshOf(driver)
    expect(await elsewhere?.run(deskWith())).toMatchObject({ ok: false, why: "broken" })
  })
})

it("what is revoked is of no use afterwards", async () => {
  await flowOf(settings()).run(deskWith(signIn))
  const kept = vault.get("desk-token-login")
  expect(await flowOf(settings()).revoke?.(deskWith())).toMatchObject({ ok: true })
  vault.set("desk-token-login", kept as Secret)
  expect(await methodWith(settings()).refreshOf(driver)?.run(deskWith())).toMatchObject({ ok: false, why: "refused" })
})
