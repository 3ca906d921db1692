/** A service that names its own authorization server, and lies: nobody is sent anywhere, and nothing undeclared is dialled. */
import { once } from "node:events"
import { createServer } from "node:https"
import { connect, type AddressInfo } from "node:net"
import { getCACertificates, setDefaultCACertificates } from "node:tls"
import { afterAll, beforeAll, beforeEach, expect, it } from "vitest"
import { createCallAuthority } from "../../../src/egress-proxy/tls/authority.ts"
import type { RegisteredDriver } from "../../../src/host/registry/types.ts"
import type { LoginDesk } from "../../../src/host/login/flow.ts"
import { resourceMethod } from "../../../src/host/login/oauth/resource-method.ts"
import { parseEgressEntry } from "../../../src/manifest/values/egress-entry.ts"
import { deskWith, driverWith } from "./desk.ts"

const hosts = ["mcp.test", "id.test"]
const authority = createCallAuthority({ names: [...hosts, "evil.test"] })
const before = getCACertificates("default")
const { key, cert } = authority.leafFor("mcp.test")
/** host and path → what is published there */
let pages: Record<string, unknown> = {}
const server = createServer({ key, cert }, (request, response) => {
  request.resume()
  const page = pages[`${request.headers.host}${request.url}`]
  response.writeHead(page === undefined ? 404 : 200, { "content-type": "application/json" }).end(JSON.stringify(page))
})
beforeAll(async () => {
  setDefaultCACertificates([...before, authority.caPem])
  for (const name of ["id.test", "evil.test"]) server.addContext(name, authority.leafFor(name))
  server.listen(0, "127.0.0.1")
  await once(server, "listening")
})
afterAll(() => {
  server.close()
  setDefaultCACertificates(before)
})

const RESOURCE = "mcp.test/.well-known/oauth-protected-resource/mcp"
const SERVER = "id.test/.well-known/oauth-authorization-server"
const good = (): typeof pages => ({
  [RESOURCE]: { resource: "https://mcp.test/mcp", authorization_servers: ["https://id.test"] },
  [SERVER]: {
    issuer: "https://id.test",
    authorization_endpoint: "https://id.test/authorize",
    token_endpoint: "https://id.test/token",
    registration_endpoint: "https://id.test/register",
    code_challenge_methods_supported: ["S256"],
  },
  "id.test/register": { client_id: "given" },
})
beforeEach(() => {
  pages = good()
})

const base = driverWith({ state: { paths: [], env: ["MCP_TOKEN"] } })
const egress = hosts.flatMap((host) => {
  const parsed = parseEgressEntry(`${host}:443`)
  return parsed.ok ? [parsed.entry] : []
})
const login = { url: "https://mcp.test/mcp", interactive: false, requiresCallbackUrl: false, completesWhen: [] }
const driver: RegisteredDriver = {
  ...base,
  contract: { ...base.contract, egress, auth: { state: { paths: [], env: ["MCP_TOKEN"] }, login } },
}

/** One login: how it ended, which pages a person was shown, and what was dialled. */
const logIn = async (challenge: { metadata?: string } = {}, register = true) => {
  const opened: string[] = []
  const dialled: string[] = []
  const stop = new AbortController()
  const { port } = server.address() as AddressInfo
  const desk: LoginDesk = {
    ...deskWith(() => {
      throw new Error("nothing is run")
    }).desk,
    driver,
    signal: stop.signal,
    person: {
      open: ({ url }) => {
        opened.push(url)
        stop.abort()
      },
    },
    connect: async ({ host }) => {
      dialled.push(host)
      const connection = connect(port, "127.0.0.1")
      await once(connection, "connect")
      return { ok: true, connection, address: "127.0.0.1" }
    },
  }
  const method = resourceMethod({
    settingsOf: () => undefined,
    clientSecret: async () => undefined,
    refused: () => undefined,
    logins: { register },
    resourceOf: () => ({
      url: "https://mcp.test/mcp",
      ask: async () => ({ ok: true, value: { status: 401, ...challenge } }),
    }),
  })
  const end = await method.loginOf(driver)?.run(desk)
  return { end, opened, dialled: [...new Set(dialled)] }
}

it("a person is sent to the page of the server that the service names, for tokens of this service alone", async () => {
  const { opened } = await logIn()
  const [page = ""] = opened
  expect(page).toMatch(/^https:\/\/id\.test\/authorize\?/)
  const asked = new URL(page).searchParams
  expect(Object.fromEntries(asked)).toMatchObject({
    resource: "https://mcp.test/mcp",
    client_id: "given",
    code_challenge_method: "S256",
  })
})

const set = (page: string, more: object): (() => void) => {
  return () => {
    pages[page] = { ...(pages[page] as object), ...more }
  }
}
it.each<[string, () => void, RegExp]>([
  [
    "an authorization server that its driver does not declare",
    set(RESOURCE, { authorization_servers: ["https://evil.test"] }),
    /evil\.test:443, which its driver does not declare/,
  ],
  [
    "an address of the machine itself",
    set(RESOURCE, { authorization_servers: ["https://127.0.0.1"] }),
    /127\.0\.0\.1:443, which its driver does not declare/,
  ],
  [
    "a server without TLS",
    set(RESOURCE, { authorization_servers: ["http://id.test"] }),
    /names no authorization server/,
  ],
  ["another resource", set(RESOURCE, { resource: "https://evil.test/mcp" }), /tokens are for `https:\/\/evil\.test/],
  ["a resource beside its own", set(RESOURCE, { resource: "https://mcp.test/mc" }), /tokens are for/],
  ["another issuer", set(SERVER, { issuer: "https://evil.test" }), /names another issuer/],
  [
    "a page elsewhere",
    set(SERVER, { authorization_endpoint: "https://evil.test/authorize" }),
    /evil\.test:443, which its driver does not declare/,
  ],
  [
    "a token endpoint elsewhere",
    set(SERVER, { token_endpoint: "https://evil.test/token" }),
    /evil\.test:443, which its driver does not declare/,
  ],
  ["a page without TLS", set(SERVER, { authorization_endpoint: "http://id.test/authorize" }), /without TLS/],
  ["a page without PKCE", set(SERVER, { code_challenge_methods_supported: ["plain"] }), /PKCE/],
])("a service that names %s ends the login before anybody is sent there", async (_what, lie, message) => {
  lie()
  const { end, opened, dialled } = await logIn()
  expect(end).toMatchObject({ ok: false, why: "broken", message: expect.stringMatching(message) as unknown })
  expect(opened).toEqual([])
  expect(dialled.filter((host) => !hosts.includes(host))).toEqual([])
})

it("a host that may not register itself says what the operator can write", async () => {
  const { end, opened } = await logIn({}, false)
  expect(end).toMatchObject({ ok: false, fix: expect.stringContaining("mcp_logins") as unknown })
  expect(opened).toEqual([])
})
