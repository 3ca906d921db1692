/** The reference MCP servers, unmodified, installed from the public registry and started for each call. */
import { existsSync, readFileSync } from "node:fs"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import type { CallEvent } from "../../src/host/events.ts"
import { describeNeeding, testNeeding } from "../support/needing.ts"
import { publicRegistry } from "../support/public-registry.ts"
import { openWorld, type World } from "./host-world.ts"

const registry = await publicRegistry()
const noChromium = existsSync("/usr/lib/chromium/chromium")
  ? undefined
  : "chromium is not installed: apt-get install -y chromium"
const missing = registry !== undefined ? undefined : "the public npm registry cannot be reached: run it where it can"

describeNeeding("reference MCP servers", missing, () => {
  let world: World
  const page = createServer((_request, response) => {
    response.setHeader("content-type", "text/html")
    response.end("<title>A page</title><h1>Served by the test</h1>")
  })
  beforeAll(async () => {
    await new Promise<void>((resolve) => page.listen(0, "127.0.0.1", resolve))
    const { port } = page.address() as AddressInfo
    const services = `{ ${registry}, page.test: "127.0.0.1:${port}" }`
    world = await openWorld(`egress: { services: ${services} }\n`, {
      manifests: [join(import.meta.dirname, "../../fixtures/mcp-servers")],
    })
    for (const driver of ["mcp-filesystem", "mcp-everything", "mcp-memory"])
      expect(await world.host.install(driver)).toMatchObject({ ok: true, version: "2026.8.31" })
  }, 600_000)
  afterAll(async () => {
    await world[Symbol.asyncDispose]()
    page.closeAllConnections()
    page.close()
  })

  describe("server-filesystem", () => {
    it("reads the workspace", async () => {
      expect(await world.call("mcp.read-file", { path: "/workspace/README.md" })).toMatchObject({
        ok: true,
        value: "read me\n",
      })
    })
    it("writes what is declared", async () => {
      const written = await world.call("mcp.write-file", { path: "/workspace/notes/a.md", text: "by the server" })
      expect(written).toMatchObject({ ok: true, effects: [{ path: "notes/a.md", committed: true }] })
      expect(readFileSync(join(world.workspace, "notes/a.md"), "utf8")).toBe("by the server")
    })
    it("has what is not declared undone", async () => {
      const refused = await world.call("mcp.write-file", { path: "/workspace/stray.md", text: "x" })
      expect(refused).toMatchObject({ ok: false, error: { code: "undeclared_write" } })
      expect(existsSync(join(world.workspace, "stray.md"))).toBe(false)
    })
    it("refuses what lies outside, with its own words", async () => {
      const refused = await world.call("mcp.read-file", { path: "/etc/passwd" })
      expect(refused).toMatchObject({ ok: false, error: { code: "upstream_error" } })
    })
  })

  describe("server-everything", () => {
    it("gives text back", async () => {
      expect(await world.call("mcp.echo", { text: "hello" })).toMatchObject({ ok: true, value: "Echo: hello" })
    })
    it("gives what is structured back", async () => {
      const told = await world.call("mcp.weather", { city: "Chicago" })
      expect(told).toMatchObject({ ok: true, value: { temperature: expect.any(Number) as number } })
    })
    it("gives a picture back", async () => {
      const given = await world.call("mcp.picture", {})
      expect(given).toMatchObject({ ok: true })
      expect(JSON.stringify(given)).toContain('"mimeType":"image/png"')
    })
    it("tells how far it is", async () => {
      const heard: CallEvent[] = []
      const done = await world.host.call(
        { tool: "mcp.long", input: { duration: 0.2, steps: 2 }, workspace: world.workspace },
        { approved: true, onEvent: (event) => heard.push(event) },
      )
      expect(done).toMatchObject({ ok: true })
      expect(heard.filter(({ type }) => type === "progress")).toMatchObject([
        { value: { progress: 1, total: 2 } },
        { value: { progress: 2, total: 2 } },
      ])
    })
  })

  describe("server-memory", () => {
    it("keeps its memory in the workspace, where the next server finds it", async () => {
      const entities = [{ name: "Ada", entityType: "person", observations: ["wrote the first program"] }]
      const kept = await world.call("mcp.remember", { entities })
      expect(kept).toMatchObject({ ok: true, effects: [{ path: "memory.jsonl", committed: true }] })
      const found = await world.call("mcp.recall", { query: "program" })
      expect(found).toMatchObject({ ok: true, value: { entities: [{ name: "Ada" }] } })
    })
  })

  describe("@playwright/mcp", () => {
    testNeeding("opens a declared page in Chromium, and no other", noChromium, async () => {
      expect(await world.host.install("mcp-playwright")).toMatchObject({ ok: true })
      const seen = await world.call("mcp.look", { url: "http://page.test/" })
      expect(seen).toMatchObject({ ok: true, value: expect.stringContaining("A page") as string, effects: [] })
      const other = await world.call("mcp.look", { url: "http://evil.test/" })
      // The browser shows the proxy's own refusal.
      expect(JSON.stringify(other)).not.toContain("A page")
      expect(other.denied.map(({ target }) => target)).toContain("evil.test:80")
    })
  })
})
