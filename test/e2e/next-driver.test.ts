/** Several drivers of one tool: which serves where one fails, and how they are told. */
import { writeFileSync } from "node:fs"
import { createServer, type Server } from "node:http"
import type { AddressInfo } from "node:net"
import { join } from "node:path"
import pc from "picocolors"
import { afterAll, beforeAll, beforeEach, expect, it, vi } from "vitest"
import { run } from "../../src/cli/commands/tools.ts"
import type { Terminal } from "../../src/cli/terminal.ts"
import { readReceipts } from "../../src/host/index.ts"
import { openWorld, type World } from "./host-world.ts"

const manifests = [join(import.meta.dirname, "../../fixtures/next-driver")]
let world: World
let server: Server
let asked = 0
let status = 200
const services = (): string =>
  `egress: { services: { facts.test: "127.0.0.1:${(server.address() as AddressInfo).port}" } }\n`

beforeAll(async () => {
  server = createServer((request, response) => {
    asked += 1
    request.resume()
    response.writeHead(status).end(JSON.stringify({ by: "service" }))
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  world = await openWorld(services(), { manifests })
})
afterAll(async () => {
  await world[Symbol.asyncDispose]()
  server.closeAllConnections()
  await new Promise((resolve) => server.close(resolve))
})
beforeEach(() => {
  asked = 0
})

it("a driver whose service fails is tried again as the contract says, and then the next one serves the call", async () => {
  status = 503
  const envelope = await world.call("next.fact", {})
  expect(envelope).toMatchObject({ ok: true, value: { by: "module" }, driver: "fact-module@1" })
  expect(asked).toBe(2)
  const [receipt] = readReceipts(world.data, { call: envelope.call })
  expect(JSON.stringify(receipt)).toContain(
    '"passed_over":[{"attempts":2,"code":"upstream_error","driver":"fact-service@1"}]',
  )
})
it("one whose service says no by the input is not passed over, nor one that the caller pinned", async () => {
  status = 404
  expect(await world.call("next.fact", {})).toMatchObject({ ok: false, driver: "fact-service@1" })
  status = 503
  expect(await world.call("next.fact", {}, { driver: "fact-service" })).toMatchObject({ ok: false })
})
it("one that answers serves, and the others are not asked", async () => {
  status = 200
  expect(await world.call("next.fact", {})).toMatchObject({ ok: true, value: { by: "service" } })
  expect(asked).toBe(1)
})
it("`tools` reads as AIP-14 draws it: how many drivers, and how many of them want a login", async () => {
  const { data } = world
  writeFileSync(join(data, "caisson.yaml"), services(), { mode: 0o600 })
  vi.stubEnv("CAISSON_DATA", data)
  const lines: string[] = []
  const plain = pc.createColors(false)
  const terminal: Terminal = {
    isInteractive: true,
    paint: plain,
    paintResult: plain,
    width: 200,
    result: (text) => void lines.push(text),
    say: () => undefined,
    canAsk: false,
    confirm: async () => false,
    during: (work) => work,
  }
  try {
    expect(await run(undefined, { manifests }, terminal)).toBe(0)
  } finally {
    vi.unstubAllEnvs()
  }
  expect(lines.join("\n")).toContain("next.fact (3 drivers, 1 unauthed)")
})
