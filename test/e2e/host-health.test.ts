/** Routes that follow what health checks find, with real services and a real sandbox. */
import { once } from "node:events"
import { mkdirSync, writeFileSync } from "node:fs"
import { createServer, type IncomingMessage, type Server } from "node:http"
import type { AddressInfo } from "node:net"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { removeFolder } from "../support/remove-folder.ts"
import { openFolder, openWorld } from "./host-world.ts"

const tool = `---
name: Greet
id: health.greet
description: Says hello.
version: 1.0.0
inputs: { type: object, additionalProperties: false }
outputs: { type: string }
mutates: []
approval: auto
---
`
interface Greeter {
  readonly id: string
  readonly cost: number
  readonly egress?: string
  readonly health: string
}
const driver = ({ id, cost, egress = "", health }: Greeter): string => `---
name: ${id}
id: ${id}
description: Says hello by itself.
version: 1.0.0
kind: cli
bin: echo
install: [{ method: apt, package: coreutils }]
version_check: { cmd: echo --version, parse: '(\\d+\\.\\d+)', range: '>=1' }
cost_override: { cost_units_per_call: ${cost} }
sandbox:
  network: { egress: [${egress}], ingress: [] }
  fs: { read: [], write: [], deny: [] }
  exec: { allow: true, spawn: [] }
  env: { pass: [] }
output: { default_format: text }
health_check: ${health}
implements:
  - tool: ../TOOL.md
    version: ^1.0.0
    metadata: { cli: { argv: ["${id}"] } }
---
`

let folder = ""
let server: Server
let port = 0
let status = 200
beforeAll(async () => {
  folder = openFolder()
  server = createServer((_request, response) => void response.writeHead(status).end()).listen(0, "127.0.0.1")
  await once(server, "listening")
  port = (server.address() as AddressInfo).port
})
afterAll(() => {
  server.close()
  removeFolder(folder)
})

const manifestsOf = (name: string, greeters: readonly Greeter[]): string => {
  const at = join(folder, name)
  for (const each of greeters) {
    mkdirSync(join(at, each.id), { recursive: true })
    writeFileSync(join(at, each.id, "DRIVER.md"), driver(each))
  }
  writeFileSync(join(at, "TOOL.md"), tool)
  return at
}
const service = (): string => `egress: { services: { svc.test: '127.0.0.1:${port}' } }\n`
const asked = (more = ""): string => `{ method: http, http: { method: GET, url: 'http://svc.test:${port}/up' }${more} }`

describe("a driver whose health check fails", () => {
  it("serves while its service answers, and not while it does not; the one behind it does", async () => {
    const greeters: readonly Greeter[] = [
      { id: "cheap", cost: 1, egress: `'svc.test:${port}'`, health: asked() },
      { id: "dear", cost: 5, health: "{ method: noop }" },
    ]
    const manifests = [manifestsOf("served", greeters)]
    status = 200
    await using well = await openWorld(service(), { manifests })
    expect(await well.call("health.greet", {})).toMatchObject({ ok: true, driver: "cheap@1" })
    status = 503
    await using ill = await openWorld(service(), { manifests })
    expect(await ill.call("health.greet", {})).toMatchObject({ ok: true, driver: "dear@1", value: "dear\n" })
    const told = await ill.host.why({ tool: "health.greet", input: {}, workspace: ill.workspace })
    expect(told.rows.find((row) => row.driver === "cheap@1")).toMatchObject({
      phase: "capability",
      code: "health_check_failed_recently",
      reason: expect.stringContaining("answered 503"),
    })
  })
  it("is checked in the sandbox where its check is a program", async () => {
    const greeters: readonly Greeter[] = [
      { id: "fails", cost: 1, health: "{ method: exec, cmd: 'sh -c \"exit 3\"' }" },
      { id: "passes", cost: 5, health: "{ method: exec, cmd: 'sh -c \"exit 3\"', expect_exit: 3 }" },
    ]
    await using world = await openWorld("", { manifests: [manifestsOf("programs", greeters)] })
    expect(await world.call("health.greet", {})).toMatchObject({ ok: true, driver: "passes@1" })
  })
  it("is not asked about where its service is not among its declared hosts", async () => {
    const greeters: readonly Greeter[] = [
      { id: "outside", cost: 1, egress: "'other.test'", health: asked() },
      { id: "dear", cost: 5, health: "{ method: noop }" },
    ]
    let heard = 0
    server.on("request", () => (heard += 1))
    await using world = await openWorld(service(), { manifests: [manifestsOf("outside", greeters)] })
    expect(await world.call("health.greet", {})).toMatchObject({ ok: true, driver: "dear@1" })
    expect(heard).toBe(0)
  })
})

describe("a driver of a folder that nobody vouches for", () => {
  const greeters: readonly Greeter[] = [
    {
      id: "stranger",
      cost: 1,
      egress: `'svc.test'`,
      health: "{ method: http, http: { method: POST, url: 'http://svc.test/deploy' } }",
    },
    { id: "dear", cost: 5, health: "{ method: noop }" },
  ]
  const heardBy = async (act: () => Promise<unknown>): Promise<readonly string[]> => {
    const heard: string[] = []
    const hear = ({ method = "", url = "" }: IncomingMessage): void => void heard.push(`${method} ${url}`)
    server.on("request", hear)
    await act()
    server.off("request", hear)
    return heard
  }
  it("is not asked about by who only looks: a listing, or why", async () => {
    status = 200
    await using world = await openWorld(service(), { manifests: [manifestsOf("listed", greeters)] })
    const { host, workspace } = world
    expect(
      await heardBy(async () => {
        await host.tools()
        await host.drivers()
        await host.why({ tool: "health.greet", input: {}, workspace })
      }),
    ).toEqual([])
    expect(await heardBy(() => world.call("health.greet", {}))).toEqual(["POST /deploy"])
  })
  it("is not asked about for a call that it could not serve", async () => {
    await using world = await openWorld(service(), { manifests: [manifestsOf("pinned", greeters)] })
    expect(await heardBy(() => world.call("health.greet", {}, { driver: "dear" }))).toEqual([])
  })
  it("sends nothing but what reads where the operator enforces that", async () => {
    const config = `read_only_http: enforce\n${service()}`
    await using world = await openWorld(config, { manifests: [manifestsOf("enforced", greeters)] })
    expect(
      await heardBy(async () => expect(await world.call("health.greet", {})).toMatchObject({ driver: "dear@1" })),
    ).toEqual([])
  })
})
