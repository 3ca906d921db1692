import { describe, expect, it } from "vitest"
import { readConfig } from "../../../src/host/config/read.ts"
import { defaultServe } from "../../../src/host/config/serve-settings.ts"

const read = (source: string) => readConfig(source, "/etc/caisson/caisson.yaml", "/etc/caisson")
const serve = (source: string) => {
  const result = read(source)
  if (!result.ok) throw new Error(JSON.stringify(result.diagnostics))
  return result.config.serve
}
const faults = (source: string) => {
  const result = read(source)
  return result.ok ? [] : result.diagnostics.map(({ path, fix }) => ({ path, fix }))
}

describe("serve of caisson.yaml", () => {
  it("is what it is by default where nothing is written", () => {
    expect(serve("serve: {}")).toEqual(defaultServe)
  })

  it("takes paths from the file's own folder, and names in lower case", () => {
    expect(
      serve(
        'serve: { listen: "[::1]:80", tls: { cert: c.pem, key: /k.pem }, hosts: [Ops.Example], log: log/calls.log }',
      ),
    ).toMatchObject({
      listen: "[::1]:80",
      tls: { cert: "/etc/caisson/c.pem", key: "/k.pem" },
      hosts: ["ops.example"],
      log: "/etc/caisson/log/calls.log",
    })
  })

  it("gives no user more than its tenant, and no tenant more than there is", () => {
    expect(serve("serve: { limits: { calls: 10, calls_per_user: 50 } }").limits).toMatchObject({
      calls: 10,
      callsPerTenant: 10,
      callsPerUser: 10,
    })
    expect(serve("serve: { limits: { calls: 10, calls_per_tenant: 4 } }").limits).toMatchObject({ callsPerUser: 4 })
    expect(serve("serve: { limits: { streams: 10 } }").limits).toMatchObject({ streams: 10, streamsPerUser: 8 })
  })

  it.each([
    ["serve: { listen: none, socket: false }", "serve.listen"],
    ["serve: { listen: 7433 }", "serve.listen"],
    ["serve: { listen: 'example.com' }", "serve.listen"],
    ["serve: { tls: { cert: a.pem } }", "serve.tls"],
    ["serve: { hosts: ['a:80'] }", "serve.hosts[0]"],
    ["serve: { origins: ['https://a.example/path'] }", "serve.origins[0]"],
    ["serve: { metrics: closed }", "serve.metrics"],
    ["serve: { limits: { calls: 0 } }", "serve.limits.calls"],
    ["serve: { port: 1 }", "serve.port"],
  ])("refuses %s, with its place and what to write", (source, path) => {
    expect(faults(source)).toEqual([{ path: expect.stringContaining(path), fix: expect.stringMatching(/\w/) }])
  })
})
