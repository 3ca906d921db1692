/** What an MCP server may do and may not, the same in each era and on each backend. */
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { createServer, type Server } from "node:http"
import type { AddressInfo } from "node:net"
import { afterAll, beforeAll, expect, it } from "vitest"
import type { CallEvent } from "../../src/host/events.ts"
import { type McpWorld, openMcpWorld } from "./mcp-world.ts"

const failed = (code: string, more: object = {}): object => ({ ok: false, error: { code, ...more } })

/** `settings`: what the backend needs of the config. */
export const mcpSuite = (
  backend: "namespace" | "docker",
  era: "legacy" | "modern",
  settings: () => string = () => "",
): void => {
  let world: McpWorld
  let service: Server
  beforeAll(async () => {
    service = createServer((_request, response) => void response.end("ok"))
    await new Promise<void>((resolve) => service.listen(0, "127.0.0.1", resolve))
    const { port } = service.address() as AddressInfo
    const egress = `egress: { services: { service.test: "127.0.0.1:${port}" } }\n`
    world = await openMcpWorld(era, { backend, settings: `${settings()}${egress}` })
  })
  afterAll(async () => {
    await world[Symbol.asyncDispose]()
    service.close()
  })

  it("serves a tool whose declared effect is committed", async () => {
    const written = await world.call("notes.write", { path: "notes/new.txt", text: "by a server" })
    expect(written).toMatchObject({
      ok: true,
      value: "written",
      driver: "notes-server@1",
      effects: [{ path: "notes/new.txt", declared: true, committed: true }],
    })
    expect(readFileSync(join(world.workspace, "notes/new.txt"), "utf8")).toBe("by a server")
  })
  it("has what is structured taken as the driver says", async () => {
    expect(await world.call("notes.read", { path: "README.md" })).toMatchObject({ ok: true, value: "read me\n" })
  })
  it("has an effect that its contract does not declare refused and undone", async () => {
    const refused = await world.call("notes.write", { path: "stray.txt", text: "x" })
    expect(refused).toMatchObject(failed("undeclared_write"))
    expect(existsSync(join(world.workspace, "stray.txt"))).toBe(false)
  })
  it("has a dial to an undeclared host denied", async () => {
    expect(await world.act("dial", ["service.test", "80"])).toMatchObject({ ok: true, value: "reached", denied: [] })
    const dialled = await world.act("dial", ["elsewhere.test", "80"])
    expect(dialled).toMatchObject({ ok: false, denied: [{ layer: "egress" }] })
  })
  it("starts no program that nobody declared", async () => {
    expect(await world.act("spawn")).toMatchObject({ ok: false })
  })
  it("fails with its own words where it says that it failed", async () => {
    expect(await world.act("fail")).toMatchObject(failed("upstream_error", { message: "on purpose" }))
    expect(await world.act("refuse")).toMatchObject(failed("upstream_error", { details: { rpc_code: -32602 } }))
  })
  it("tells how it crashed", async () => {
    const crashed = await world.act("crash")
    expect(crashed).toMatchObject(failed("upstream_error", { details: { exit: 7 } }))
    expect(JSON.stringify(crashed)).toContain("going down")
  })
  it("is left where it writes without end", async () => {
    expect(await world.act("flood")).toMatchObject(failed("limit_exceeded", { details: { limit: "mcp" } }))
  })
  it("tells how far it is", async () => {
    const heard: CallEvent[] = []
    const done = await world.act("progress", [], { onEvent: (event) => heard.push(event) })
    expect(done).toMatchObject({ ok: true, value: "done" })
    const steps = heard.flatMap((event) => (event.type === "progress" ? [event.value] : []))
    expect(steps).toEqual([
      { progress: 1, total: 2, message: "step 1" },
      { progress: 2, total: 2, message: "step 2" },
    ])
  })
  it("is ended when the call is cancelled, and leaves nothing", async () => {
    const cancel = new AbortController()
    const sleeping = world.act("sleep", [], {
      signal: cancel.signal,
      onEvent: (event) => {
        if (event.type === "output") cancel.abort()
      },
    })
    expect(await sleeping).toMatchObject(failed("cancelled"))
    expect(existsSync(join(world.workspace, "slept.txt"))).toBe(false)
  })
  it("asks a person through whoever makes the call", async () => {
    const asked: unknown[] = []
    const answered = await world.act("ask", [], {
      elicit: async (question) => {
        asked.push(question)
        return { action: "accept", content: {} }
      },
    })
    expect(asked).toEqual([
      { message: "Which colour?", schema: expect.objectContaining({ type: "object" }) as unknown },
    ])
    expect(answered).toMatchObject({ ok: true })
    expect(JSON.stringify(answered)).toContain('\\"blue\\"')
  })
  it("is told that nobody is there to be asked", async () => {
    const answered = await world.act("ask")
    if (era === "modern") expect(answered).toMatchObject(failed("upstream_error"))
    else expect(JSON.stringify(answered)).toContain("refused")
  })
  it("gives back pictures and resources by safe addresses", async () => {
    const given = await world.act("picture", ["https://me:secret@site.test/x"])
    expect(given).toMatchObject({
      ok: true,
      value: {
        content: [
          { type: "image", mimeType: "image/png", data: "iVBORw0KGgo=" },
          { type: "resource_link", uri: "https://site.test/x", name: "more" },
          { type: "resource", resource: { uri: "file:///workspace/a.txt", text: "a" } },
        ],
      },
    })
    expect(await world.act("picture", ["javascript:alert(1)"])).toMatchObject(failed("output_parse_failed"))
  })
  it("has an environment of what its driver sets and no more", async () => {
    const { value } = (await world.act("env")) as { value: string }
    expect(JSON.parse(value)).toContain("NOTES")
    expect(JSON.parse(value)).not.toContain("CAISSON_DATA")
  })
}
