/** Drivers of kind http through a real host: no sandbox is made, and everything else is as for a program. */
import { copyFileSync, mkdirSync, writeFileSync } from "node:fs"
import { createServer, type IncomingMessage, type RequestListener, type Server } from "node:http"
import { createServer as createSecureServer } from "node:https"
import type { AddressInfo } from "node:net"
import { join } from "node:path"
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest"
import { createCallAuthority } from "../../src/egress-proxy/tls/authority.ts"
import { createHost, processCaller, readReceipts } from "../../src/host/index.ts"
import type { CallEvent } from "../../src/host/index.ts"
import type { CallOptions, Envelope, Host } from "../../src/host/types.ts"
import { createNamespaceBackend } from "../../src/sandbox/namespace/backend.ts"
import type { SandboxBackend } from "../../src/sandbox/backend.ts"
import { caisson } from "../cli/run-caisson.ts"
import { removeFolder } from "../support/remove-folder.ts"
import { openFolder } from "./host-world.ts"

const tool = (id: string, more = ""): string => `---
name: ${id}
id: ${id}
description: d
version: 1.0.0
inputs: { type: object, properties: { id: { type: string }, note: { type: string } }, additionalProperties: false }
outputs: {}
timeout_ms: 20000
${more}
---
`
const driver = `---
name: Items
id: items-http
description: d
version: 1.0.0
kind: http
base_url: http://items.test:8080/v1
default_method: GET
network: { egress: ["items.test:8080"] }
implements:
  - { tool: item.get, version: ^1.0.0, metadata: { http: { endpoint: "/items/\${input.id}", headers: { X-Note: "\${input.note}" }, response_extract: $.item } } }
  - { tool: item.put, version: ^1.0.0, metadata: { http: { endpoint: /items, method: POST, idempotency_key_header: Idempotency-Key } } }
  - { tool: item.sneak, version: ^1.0.0, metadata: { http: { endpoint: /items, method: POST } } }
  - { tool: item.watch, version: ^1.0.0, metadata: { http: { endpoint: /watch, streaming: { transport: ndjson } } } }
---
`

const keyed = `---
name: Keyed
id: keyed-http
description: d
version: 1.0.0
kind: http
base_url: http://items.test:8080
default_method: GET
default_headers: { Authorization: "Bearer \${secrets.ITEMS_KEY}" }
network: { egress: ["items.test:8080"] }
auth: { state: { env: [ITEMS_KEY] }, expiry: { detect: "http_status:418" } }
implements:
  - { tool: item.keyed, version: ^1.0.0, metadata: { http: { endpoint: "/keyed/\${input.id}", query_template: { k: "\${secrets.ITEMS_KEY}" }, streaming: { transport: ndjson } } } }
---
`

let folder: string
let host: Host
let server: Server
let backend: SandboxBackend | undefined
let prepared = 0
let requests: IncomingMessage[] = []
let answer: RequestListener = (_, response) => response.end("{}")

beforeAll(async () => {
  folder = openFolder()
  const put = (name: string, text: string): void => {
    mkdirSync(join(folder, "m", name), { recursive: true })
    writeFileSync(join(folder, "m", name, text.includes("kind: http") ? "DRIVER.md" : "TOOL.md"), text)
  }
  put("get", tool("item.get", "retry: { max_attempts: 3, backoff: fixed, initial_ms: 1 }"))
  put(
    "put",
    tool(
      "item.put",
      "mutates: ['network:items.test']\napproval: on-mutate\nretry: { max_attempts: 2, backoff: fixed, initial_ms: 1 }",
    ),
  )
  put("sneak", tool("item.sneak"))
  put("watch", tool("item.watch").replace("outputs: {}", "outputs: { type: array }"))
  put("items", driver)
  put("keyed", tool("item.keyed"))
  put("keyed-http", keyed)
  server = createServer((request, response) => {
    requests.push(request)
    response.on("error", () => undefined)
    request.resume().on("end", () => answer(request, response))
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  const { port } = server.address() as AddressInfo
  const config = join(folder, "caisson.yaml")
  writeFileSync(config, `read_only_http: enforce\negress:\n  services:\n    items.test: 127.0.0.1:${port}\n`, {
    mode: 0o600,
  })
  mkdirSync(join(folder, "work"))
  mkdirSync(join(folder, "data"), { mode: 0o700 })
  const real = createNamespaceBackend({ data: join(folder, "data") })
  const counting: SandboxBackend = {
    name: real.name,
    prepare: (...words) => {
      prepared += 1
      return real.prepare(...words)
    },
    recover: (...words) => {
      prepared += 1
      return real.recover(...words)
    },
    commitHeld: (held) => real.commitHeld(held),
    examine: () => real.examine(),
    [Symbol.asyncDispose]: () => real[Symbol.asyncDispose](),
  }
  backend = counting
  host = await createHost({ data: join(folder, "data"), manifests: [join(folder, "m")], config, backend: counting })
})
afterAll(async () => {
  await host?.close()
  await backend?.[Symbol.asyncDispose]()
  server.closeAllConnections()
  await new Promise((resolve) => server.close(resolve))
  removeFolder(folder)
})
beforeEach(() => {
  requests = []
})

const call = (name: string, input: object, options: Partial<CallOptions> = {}): Promise<Envelope> =>
  host.call(
    { tool: name, input: input as never, workspace: join(folder, "work") },
    { caller: processCaller("alice"), approved: true, ...options },
  )
const receipt = () => readReceipts(join(folder, "data")).at(-1)?.metadata ?? {}

describe("an http driver", () => {
  it("is listed as available, and `why` says what would be sent and that no program runs", async () => {
    const listed = await host.tools()
    expect(listed.find(({ contract }) => contract.id === "item.get")?.availability).toMatchObject({ available: true })
    const why = await host.why({ tool: "item.get", input: { id: "a b" }, workspace: join(folder, "work") })
    expect(why).toMatchObject({
      selected: "items-http@1",
      argv: ["GET", "http://items.test:8080/v1/items/a%20b"],
      egress: ["items.test:8080"],
    })
    expect(why.error).toBeUndefined()
    expect(why.profile?.executables).toBeUndefined()
    const open = await host.why({ tool: "item.get", workspace: join(folder, "work") })
    expect(open.argv).toEqual(["GET", "http://items.test:8080/v1/items/${input.id}"])
    expect(requests).toEqual([])
    // The listing may have looked at other drivers' programs.
    prepared = 0
  })

  it("answers without a sandbox, and its receipt says what was asked, of whom, and that nothing was started", async () => {
    answer = (_, response) => response.end('{"item":{"name":"bolt"}}')
    const envelope = await call("item.get", { id: "7", note: "private words" })
    expect(envelope).toMatchObject({ ok: true, value: { name: "bolt" }, effects: [], denied: [] })
    const facts = receipt()
    expect(facts).toMatchObject({
      backend: "none",
      program: { started: false },
      ending: "answer",
      reached: [{ target: "items.test:8080", count: 1 }],
      url_template: "GET http://items.test:8080/v1/items/${input.id}",
      header_keys: ["x-note"],
      response_status: 200,
      effects_committed: false,
    })
    expect(JSON.stringify(facts)).not.toMatch(/private words|bolt/)
    expect(prepared).toBe(0)
  })

  it("changes what its contract declares, once a person has said yes, with one key in all attempts", async () => {
    let tries = 0
    answer = (_, response) => {
      tries += 1
      if (tries === 1) return void response.destroy()
      return void response.writeHead(201).end('"made"')
    }
    expect(await call("item.put", { id: "1" }, { approved: false })).toMatchObject({
      error: { code: "approval_required" },
    })
    expect(requests).toEqual([])
    expect(await call("item.put", { id: "1" })).toMatchObject({ ok: true, value: "made" })
    const keys = requests.map(({ headers }) => headers["idempotency-key"])
    expect([keys.length, new Set(keys).size]).toEqual([2, 1])
    expect(receipt()).toMatchObject({ attempts: 2, ok: true })
  })

  it("may not change what its contract does not declare, where the operator says so", async () => {
    const envelope = await call("item.sneak", { id: "1" })
    expect(envelope).toMatchObject({ ok: false, error: { code: "egress_denied", details: { reason: "read_only" } } })
    expect(envelope.denied).toMatchObject([{ layer: "egress", reason: "read_only", target: "items.test:8080" }])
    expect(requests).toEqual([])
  })

  it("is not led elsewhere: a redirect to what is not declared is denied, and on record", async () => {
    answer = (_, response) => response.writeHead(302, { location: "http://evil.test/" }).end()
    const envelope = await call("item.get", { id: "1" })
    expect(envelope).toMatchObject({ ok: false, error: { code: "egress_denied" } })
    expect(envelope.denied).toMatchObject([{ reason: "host_not_allowed", target: "evil.test:80" }])
    expect(receipt()).toMatchObject({ denied: [{ target: "evil.test:80" }] })
  })

  it("sends nothing for an input that would write a header of its own", async () => {
    const envelope = await call("item.get", { id: "1", note: "x\r\nX-Admin: yes" })
    expect(envelope).toMatchObject({ ok: false, error: { code: "input_invalid" } })
    expect(requests).toEqual([])
  })

  it("is over when it is cancelled, and the service sees its connection go", async () => {
    const cancel = new AbortController()
    const gone = new Promise<void>((resolve) => {
      answer = (request) => {
        request.socket.on("close", () => resolve())
        cancel.abort()
      }
    })
    const envelope = await call("item.get", { id: "1" }, { signal: cancel.signal })
    expect(envelope).toMatchObject({ ok: false, error: { code: "cancelled", details: { commit: "unknown" } } })
    await gone
  })

  it("tries again after a crash of the service as its contract says, and then tells of it", async () => {
    answer = (request) => request.socket.destroy()
    const envelope = await call("item.get", { id: "1" })
    expect(envelope).toMatchObject({ ok: false, error: { code: "upstream_error", retryable: true } })
    expect([requests.length, receipt()["attempts"]]).toEqual([3, 3])
  })

  it("tells of a stream's parts while they come", async () => {
    const events: CallEvent[] = []
    answer = (_, response) => {
      response.write('{"n":1}\n')
      setImmediate(() => response.end('{"n":2}\n'))
    }
    expect(await call("item.watch", {}, { onEvent: (event) => events.push(event) })).toMatchObject({
      value: [{ n: 1 }, { n: 2 }],
    })
    const told = events.filter((event) => event.type === "progress").map(({ value }) => value)
    expect(told).toEqual([{ n: 1 }, { n: 2 }])
  })

  it("asks for its secret where there is none", async () => {
    expect(await call("item.keyed", { id: "1" })).toMatchObject({ ok: false, error: { code: "auth_required" } })
    expect(requests).toEqual([])
  })

  it("sends its secret from the vault, and nothing that is told or kept holds it, whatever the service sends back", async () => {
    const value = "k3y-of-items/+value"
    const set = await host.secrets.set("items-key", value, { driver: "keyed-http@1", shared: true })
    expect(set).toMatchObject({ ok: true })
    const events: CallEvent[] = []
    const reflect =
      (status: number): RequestListener =>
      (request, response) => {
        const back = { header: request.headers.authorization, url: request.url }
        response.writeHead(status, { "x-back": String(request.headers.authorization) }).end(JSON.stringify(back))
      }
    answer = reflect(200)
    const good = await call("item.keyed", { id: "1" }, { onEvent: (event) => events.push(event) })
    expect(good).toMatchObject({ ok: true, value: { header: expect.stringMatching(/^Bearer \*+$/) } })
    expect(requests[0]?.headers.authorization).toBe(`Bearer ${value}`)
    answer = reflect(500)
    const bad = await call("item.keyed", { id: "1" })
    expect(bad).toMatchObject({ ok: false, error: { code: "upstream_error", details: { status: 500 } } })
    answer = reflect(418)
    const expired = await call("item.keyed", { id: "1" })
    expect(expired).toMatchObject({ ok: false, error: { code: "auth_required" } })
    const why = await host.why({ tool: "item.keyed", input: { id: "1" }, workspace: join(folder, "work") })
    const told = JSON.stringify([good, bad, expired, why, events, readReceipts(join(folder, "data"))])
    expect(told).not.toContain(value)
    expect(told).not.toContain(encodeURIComponent(value))
  })

  it("is served by the command line too", async () => {
    const env = { CAISSON_DATA: join(folder, "cli-data") }
    mkdirSync(env.CAISSON_DATA, { mode: 0o700 })
    copyFileSync(join(folder, "caisson.yaml"), join(env.CAISSON_DATA, "caisson.yaml"))
    const words = ["--manifests", join(folder, "m"), "--json"]
    const cli = (...args: readonly string[]) => caisson([...args, ...words], { env, cwd: join(folder, "work") })
    answer = (_, response) => response.end('{"item":[1,2]}')
    const drivers = await cli("drivers", "items-http")
    expect(JSON.parse(drivers.stdout)).toMatchObject([{ availability: { available: true } }])
    const why = await cli("why", "item.get", "-i", '{"id":"9"}')
    expect(JSON.parse(why.stdout)).toMatchObject({
      selected: "items-http@1",
      argv: ["GET", "http://items.test:8080/v1/items/9"],
    })
    const called = await cli("call", "item.get", "-i", '{"id":"9"}')
    expect([called.code, JSON.parse(called.stdout)]).toMatchObject([0, { ok: true, value: [1, 2] }])
    answer = (_, response) => response.writeHead(429, { "retry-after": "3600" }).end()
    expect((await cli("call", "item.get", "-i", '{"id":"9"}')).code).toBe(3)
  })

  it("trusts an authority of the operator's own, and no other", async () => {
    const authority = createCallAuthority({ names: ["api.osv.dev"] })
    const ca = join(folder, "ca.pem")
    writeFileSync(ca, authority.caPem)
    const secure = createSecureServer(authority.leafFor("api.osv.dev"), (_, response) => response.end('{"id":"CVE-1"}'))
    await new Promise<void>((resolve) => secure.listen(0, "127.0.0.1", resolve))
    const data = join(folder, "tls-data")
    mkdirSync(data, { mode: 0o700 })
    const { port } = secure.address() as AddressInfo
    writeFileSync(join(data, "caisson.yaml"), `egress: { services: { api.osv.dev: "127.0.0.1:${port}" } }\n`, {
      mode: 0o600,
    })
    const show = (env: Readonly<Record<string, string>>) =>
      caisson(["call", "vulnerability.show", "-i", '{"id":"CVE-1"}', "--json"], {
        env: { CAISSON_DATA: data, ...env },
        cwd: join(folder, "work"),
      })
    try {
      expect(JSON.parse((await show({ NODE_EXTRA_CA_CERTS: ca })).stdout)).toMatchObject({ value: { id: "CVE-1" } })
      expect(JSON.parse((await show({})).stdout)).toMatchObject({
        error: { code: "upstream_error", message: expect.stringContaining("does not prove that it is api.osv.dev") },
      })
    } finally {
      await new Promise((resolve) => secure.close(resolve))
    }
  })

  it("made no sandbox in all of this", () => {
    expect(prepared).toBe(0)
  })
})
