/** Where a request goes: policy, TLS and redirects. */
import { getCACertificates, setDefaultCACertificates } from "node:tls"
import { afterEach, describe, expect, it } from "vitest"
import { createCallAuthority } from "../../../../src/egress-proxy/tls/authority.ts"
import { httpKind } from "../../../../src/host/drivers/http/kind.ts"
import { ask, callOf, json, serve } from "./world.ts"

const GET = "endpoint: /x, method: GET"
const KEY = "s3cret-value-1234"
const keyed = 'headers: { Authorization: "Bearer ${secrets.KEY}", X-Own: yes }'
const roots = getCACertificates("default")
afterEach(() => setDefaultCACertificates(roots))

const authority = createCallAuthority({ names: ["api.test", "other.test"] })
const tlsFor = (name: string) => {
  const { key, cert } = authority.leafFor(name)
  return { key: String(key), cert: String(cert) }
}
const trust = (): void => setDefaultCACertificates([...roots, authority.caPem])
const secure = { base: "https://api.test" } as const

describe("TLS", () => {
  it("is spoken to the host that was asked for, and proven", async () => {
    await using service = await serve(json({ ok: 1 }), tlsFor("api.test"))
    trust()
    expect((await ask({ port: service.port, http: GET, ...secure })).outcome).toMatchObject({
      ok: true,
      value: { ok: 1 },
    })
    expect(service.requests[0]?.headers.host).toBe("api.test")
  })

  it("that nobody vouches for, or that proves another name, carries no request", async () => {
    await using unknown = await serve(json(1), tlsFor("api.test"))
    const asked = { port: unknown.port, http: `${GET}, ${keyed}`, secrets: { KEY }, ...secure }
    expect((await ask(asked)).outcome).toMatchObject({ ok: false, code: "upstream_error", details: { sent: false } })
    trust()
    await using other = await serve(json(1), tlsFor("other.test"))
    const { outcome } = await ask({ ...asked, port: other.port })
    expect(outcome).toMatchObject({ ok: false, details: { reason: "ERR_TLS_CERT_ALTNAME_INVALID", sent: false } })
    expect([unknown.requests, other.requests]).toEqual([[], []])
  })

  it("is not given up for a service that speaks none", async () => {
    await using plain = await serve(json(1))
    expect((await ask({ port: plain.port, http: GET, ...secure })).outcome).toMatchObject({
      ok: false,
      details: { sent: false },
    })
    expect(plain.requests).toEqual([])
  })
})

describe("the policy", () => {
  it("stops a request to a host that the driver does not declare, before anything is sent", async () => {
    const more = 'network: { egress: ["elsewhere.test:443"] }'
    const { outcome, denied } = await ask({ port: 1, http: GET, more })
    expect(outcome).toMatchObject({ ok: false, code: "egress_denied", details: { reason: "host_not_allowed" } })
    expect(denied).toEqual(["host_not_allowed api.test:80"])
    const { call } = callOf({ port: 1, http: GET, more })
    expect(await httpKind.available(call.driver.contract, undefined as never, undefined as never)).toMatchObject({
      available: false,
      code: "tool_unavailable",
    })
  })

  it("stops a request that does more than read where it says so, and else reports it", async () => {
    await using service = await serve(json(1))
    const refused = await ask({ port: service.port, http: "endpoint: /x", proxy: { readOnlyHttp: "enforce" } })
    expect(refused.outcome).toMatchObject({ code: "egress_denied", details: { reason: "read_only" } })
    expect(service.requests).toEqual([])
    const told = await ask({ port: service.port, http: "endpoint: /x", proxy: { readOnlyHttp: "report" } })
    expect(told.outcome).toMatchObject({ ok: true, notes: [expect.stringContaining("POST was sent")] })
    const read = await ask({ port: service.port, http: GET, proxy: { readOnlyHttp: "enforce" } })
    expect(read.outcome).toMatchObject({ ok: true, notes: [] })
  })

  it("lets a service that is down be told from one that is not allowed", async () => {
    const { outcome, denied } = await ask({ port: 1, http: GET })
    expect(outcome).toMatchObject({ code: "upstream_error", retryable: true, details: { reason: "connect_failed" } })
    expect(denied).toEqual([])
  })
})

describe("a redirect", () => {
  const to = (location: string, status = 302) =>
    serve((request, response) => {
      if (request.url === "/x") response.writeHead(status, { location }).end()
      else json({ method: request.method, at: request.url })(request, response)
    })

  it("on the same origin is followed, with what the driver sends", async () => {
    await using service = await to("/y?z=1")
    const { outcome, facts } = await ask({ port: service.port, http: `${GET}, ${keyed}`, secrets: { KEY } })
    expect(outcome).toMatchObject({ value: { method: "GET", at: "/y?z=1" } })
    expect(service.requests[1]?.headers).toMatchObject({ authorization: `Bearer ${KEY}`, "x-own": "yes" })
    expect(facts).toMatchObject({ redirects: 1 })
  })

  it("to another origin that is declared is followed without anything of the driver's", async () => {
    await using other = await serve(json("there"))
    await using service = await to("http://other.test:8080/z")
    const { outcome } = await ask({
      port: service.port,
      http: `${GET}, ${keyed}`,
      secrets: { KEY },
      more: 'network: { egress: ["api.test:80", "other.test:8080"] }',
      proxy: {
        services: {
          "api.test": { address: "127.0.0.1", port: service.port },
          "other.test": { address: "127.0.0.1", port: other.port },
        },
      },
    })
    expect(outcome).toMatchObject({ value: "there" })
    const { headers } = other.requests[0] ?? { headers: {} }
    expect(Object.keys(headers).sort()).toEqual(["accept", "accept-encoding", "connection", "host", "user-agent"])
  })

  it("to another origin carries the host's own words in headers that the driver wrote in their place", async () => {
    await using other = await serve(json("there"))
    await using service = await to("http://other.test:8080/z")
    const { outcome } = await ask({
      port: service.port,
      http: `${GET}, headers: { User-Agent: "me \${secrets.KEY}", Accept: "\${input.note}", Accept-Encoding: "\${input.note}" }`,
      input: { note: "the caller's" },
      secrets: { KEY },
      more: 'network: { egress: ["api.test:80", "other.test:8080"] }',
      proxy: {
        services: {
          "api.test": { address: "127.0.0.1", port: service.port },
          "other.test": { address: "127.0.0.1", port: other.port },
        },
      },
    })
    expect(outcome).toMatchObject({ value: "there" })
    expect(service.requests[0]?.headers).toMatchObject({ "user-agent": `me ${KEY}`, accept: "the caller's" })
    expect(other.requests[0]?.headers).toMatchObject({
      "user-agent": "caisson",
      accept: "application/json",
      "accept-encoding": "gzip, deflate, br",
    })
  })

  it.each([
    ["https://evil.test/", "host_not_allowed evil.test:443"],
    ["http://127.0.0.1:9/", "loopback 127.0.0.1:9"],
    ["http://169.254.169.254/latest/meta-data", "metadata 169.254.169.254:80"],
    ["http://[::1]:9/", "loopback ::1:9"],
    ["http://2130706433/", "loopback 127.0.0.1:80"],
    ["//api.test:9/", "port_not_allowed api.test:9"],
  ])("to %s is judged as any request, and denied", async (location, denial) => {
    await using service = await to(location)
    const { outcome, denied } = await ask({ port: service.port, http: GET })
    expect(outcome).toMatchObject({ ok: false, code: "egress_denied" })
    expect(denied).toEqual([denial])
  })

  it.each([
    ["file:///etc/passwd"],
    ["http://user:pass@api.test/"],
    ["http://"],
    [`https://${KEY}.evil.test/`],
    [`https://evil.test/?k=${encodeURIComponent(KEY)}`],
  ])("to %s is not followed, and nothing is dialled", async (location) => {
    await using service = await to(location)
    const { outcome, denied } = await ask({ port: service.port, http: `${GET}, ${keyed}`, secrets: { KEY } })
    expect(outcome).toMatchObject({ ok: false, code: "upstream_error", details: { reason: "redirect" } })
    expect([denied, JSON.stringify(outcome).includes(KEY)]).toEqual([[], false])
  })

  it("never leaves TLS", async () => {
    await using service = await serve(
      (_, response) => response.writeHead(302, { location: "http://api.test/" }).end(),
      tlsFor("api.test"),
    )
    trust()
    expect((await ask({ port: service.port, http: GET, ...secure })).outcome).toMatchObject({
      details: { reason: "redirect" },
    })
    expect(service.requests).toHaveLength(1)
  })

  it("of a request that may change something is followed only where that is safe", async () => {
    const post = "endpoint: /x, method: POST, body_template: { a: 1 }"
    await using see = await to("/y", 303)
    expect((await ask({ port: see.port, http: post })).outcome).toMatchObject({ value: { method: "GET" } })
    expect(see.bodies).toEqual(['{"a":1}', ""])
    await using again = await to("/y", 307)
    expect((await ask({ port: again.port, http: post })).outcome).toMatchObject({ value: { method: "POST" } })
    expect(again.bodies).toEqual(['{"a":1}', '{"a":1}'])
    await using moved = await to("/y", 301)
    expect((await ask({ port: moved.port, http: post })).outcome).toMatchObject({ details: { reason: "redirect" } })
    await using away = await to("https://other.test/", 308)
    expect((await ask({ port: away.port, http: post })).outcome).toMatchObject({ details: { reason: "redirect" } })
  })

  it("in a circle ends", async () => {
    await using service = await serve((_, response) => response.writeHead(302, { location: "/x" }).end())
    const { outcome } = await ask({ port: service.port, http: GET })
    expect(outcome).toMatchObject({ ok: false, details: { reason: "redirect" } })
    expect(service.requests).toHaveLength(6)
  })
})
