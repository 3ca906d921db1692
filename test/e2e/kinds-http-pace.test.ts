/** How often a driver of kind http asks its service, through real hosts on one data folder. */
import { mkdirSync, writeFileSync } from "node:fs"
import { createServer, type RequestListener, type Server } from "node:http"
import type { AddressInfo } from "node:net"
import { join } from "node:path"
import { afterEach, beforeEach, expect, it } from "vitest"
import { createHost, processCaller, readReceipts } from "../../src/host/index.ts"
import type { Envelope, Host } from "../../src/host/types.ts"
import { removeFolder } from "../support/remove-folder.ts"
import { openFolder } from "./host-world.ts"

const tool = `---
name: Get
id: item.get
description: d
version: 1.0.0
inputs: { type: object }
outputs: {}
timeout_ms: 60000
---
`
const driver = (id: string, more = ""): string => `---
name: Items
id: ${id}
description: d
version: 1.0.0
kind: http
base_url: http://items.test:8080
default_method: GET
network: { egress: ["items.test:8080"] }
implements: [{ tool: item.get, version: ^1.0.0, metadata: { http: { endpoint: /items } } }]
${more}
---
`
let folder = ""
let server: Server
let asked = 0
let answer: RequestListener = (_, response) => response.end("1")
let hosts: Host[] = []

const openHost = async (): Promise<Host> => {
  const host = await createHost({
    data: join(folder, "data"),
    config: join(folder, "caisson.yaml"),
  })
  hosts.push(host)
  return host
}
const call = (host: Host, id: string, user = "alice", signal?: AbortSignal): Promise<Envelope> =>
  host.call(
    { tool: "item.get", input: {}, workspace: join(folder, "work"), driver: id },
    { caller: processCaller(user), ...(signal === undefined ? {} : { signal }) },
  )

beforeEach(async () => {
  folder = openFolder()
  const put = (name: string, file: string, text: string): void => {
    mkdirSync(join(folder, "m", name), { recursive: true })
    writeFileSync(join(folder, "m", name, file), text)
  }
  put("tool", "TOOL.md", tool)
  put("slow", "DRIVER.md", driver("slow-http", "rate_limit: { requests_per_minute: 1, burst: 2 }"))
  put("fast", "DRIVER.md", driver("fast-http", "rate_limit: { requests_per_minute: 600 }"))
  put("plain", "DRIVER.md", driver("plain-http"))
  put(
    "own",
    "DRIVER.md",
    driver("own-http", "rate_limit: { requests_per_minute: 1 }\nauth: { state: { env: [ITEMS_KEY] } }"),
  )
  answer = (_, response) => response.end("1")
  asked = 0
  server = createServer((request, response) => {
    asked += 1
    answer(request, response)
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  const { port } = server.address() as AddressInfo
  writeFileSync(
    join(folder, "caisson.yaml"),
    `manifests: ["${join(folder, "m")}"]\negress: { services: { items.test: "127.0.0.1:${port}" } }\n`,
    {
      mode: 0o600,
    },
  )
  mkdirSync(join(folder, "work"))
})
afterEach(async () => {
  for (const host of hosts) await host.close()
  hosts = []
  server.closeAllConnections()
  await new Promise((resolve) => server.close(resolve))
  removeFolder(folder)
})

it("asks no more often than its driver says, whichever host asks, and says when it may", async () => {
  const [one, other] = [await openHost(), await openHost()]
  expect(await call(one, "slow-http")).toMatchObject({ ok: true })
  expect(await call(other, "slow-http", "bob")).toMatchObject({ ok: true })
  for (const host of [one, other]) {
    const late = await call(host, "slow-http")
    expect(late).toMatchObject({
      ok: false,
      error: { code: "rate_limited", retryable: true, details: { reason: "rate_limit", sent: false } },
    })
    const wait = !late.ok && late.error.details["retry_after_ms"]
    expect(wait).toBeGreaterThan(0)
    expect(wait).toBeLessThanOrEqual(60_000)
  }
  expect(asked).toBe(2)
  expect(await call(one, "plain-http")).toMatchObject({ ok: true })
})

it("waits for a turn that is near, and the receipt says so", async () => {
  const host = await openHost()
  const all = await Promise.all([1, 2, 3].map(() => call(host, "fast-http")))
  expect(all.map(({ ok }) => ok)).toEqual([true, true, true])
  const receipts = all.flatMap((envelope) => readReceipts(join(folder, "data"), { call: envelope.call }))
  expect(JSON.stringify(receipts)).toContain('"paced_ms"')
  expect(asked).toBe(3)
})

it("does not ask a service that asked to be left alone, in a later call or by another host", async () => {
  answer = (_, response) => response.writeHead(429, { "retry-after": "3600" }).end()
  const [one, other] = [await openHost(), await openHost()]
  expect(await call(one, "plain-http")).toMatchObject({
    ok: false,
    error: { code: "rate_limited", retryable: true, details: { retry_after_ms: 3_600_000, status: 429 } },
  })
  expect(asked).toBe(1)
  for (const host of [one, other])
    expect(await call(host, "plain-http")).toMatchObject({
      ok: false,
      error: { code: "rate_limited", details: { reason: "retry_after" } },
    })
  expect(asked).toBe(1)
  answer = (_, response) => response.end("1")
  expect(await call(one, "slow-http")).toMatchObject({ ok: true })
})

it("leaves a service alone for a moment where it asks for that, within one call", async () => {
  writeFileSync(
    join(folder, "m", "tool", "TOOL.md"),
    tool.replace("timeout_ms", "retry: { max_attempts: 2, backoff: fixed, initial_ms: 1 }\ntimeout_ms"),
  )
  answer = (_, response) => (asked === 1 ? response.writeHead(429, { "retry-after": "1" }).end() : response.end("2"))
  expect(await call(await openHost(), "plain-http")).toMatchObject({ ok: true, value: 2 })
  expect(asked).toBe(2)
})

it("keeps the turns of users with logins of their own apart", async () => {
  const host = await openHost()
  for (const user of ["alice", "bob"]) await host.secrets.set("items-key", `key-of-${user}`, { user })
  expect(await call(host, "own-http", "alice")).toMatchObject({ ok: true })
  expect(await call(host, "own-http", "alice")).toMatchObject({ ok: false, error: { code: "rate_limited" } })
  expect(await call(host, "own-http", "bob")).toMatchObject({ ok: true })
})

it("gives a turn up at once where the call is cancelled", async () => {
  const host = await openHost()
  answer = (_, response) => response.writeHead(429, { "retry-after": "4" }).end()
  await call(host, "plain-http")
  const cancel = new AbortController()
  const waiting = call(host, "plain-http", "alice", cancel.signal)
  cancel.abort()
  expect(await waiting).toMatchObject({ ok: false, error: { code: "cancelled" } })
  expect(asked).toBe(1)
})
