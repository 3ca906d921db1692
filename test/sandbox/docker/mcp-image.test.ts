/** MCP servers that come as images (C-58): run in a sandbox of this host's, never by the machine's own docker. */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { Readable } from "node:stream"
import { afterAll, beforeAll, expect, it } from "vitest"
import type { CallEvent } from "../../../src/host/events.ts"
import { processCaller, readReceipts } from "../../../src/host/index.ts"
import { openEngine } from "../../../src/sandbox/docker/engine/engine.ts"
import { digestOfFolder, openFolder, openWorld, type World } from "../../e2e/host-world.ts"
import { acquireEngine } from "../../support/docker-engine.ts"
import { removeFolder } from "../../support/remove-folder.ts"
import { engineSuite } from "./engine-suite.ts"
import { localBase } from "./local-base.ts"

const engine = await acquireEngine()
const socket = engine.ok ? engine.socket : ""
const api = openEngine({ origin: "given", socketPath: socket })
const mark = `m${process.pid}`
const absent = `acme/server@sha256:${"0".repeat(64)}`

/** The image's own: it has neither Perl nor Python, and its server is found by where it is started. */
const server = `#!/usr/bin/env node
import { execFileSync } from "node:child_process"
import { connect } from "node:net"
import { createInterface } from "node:readline"
import { readdirSync, writeFileSync } from "node:fs"
const say = (message) => process.stdout.write(JSON.stringify({ jsonrpc: "2.0", ...message }) + "\\n")
const tools = [{ name: "act", description: "Acts.", inputSchema: { type: "object", properties: { verb: { type: "string" }, path: { type: "string" } } } }]
const started = () => { try { return String(execFileSync("/usr/bin/ls", ["/"])) } catch (error) { return String(error.code) } }
const dialled = () => new Promise((resolve) => connect(443, "elsewhere.test").on("connect", () => resolve("connected")).on("error", (error) => resolve(error.code)))
const act = async ({ verb, path }) => {
  if (verb === "write") { writeFileSync("/workspace/" + path, "by the image"); return "written" }
  if (verb === "start") return started()
  if (verb === "dial") return dialled()
  if (verb === "crash") { writeFileSync("/workspace/notes/half.txt", "x"); process.kill(process.pid, "SIGKILL") }
  if (verb === "wait") { writeFileSync("/workspace/notes/half.txt", "x"); process.stderr.write("waiting\\n"); return new Promise(() => setInterval(() => {}, 1000)) }
  return JSON.stringify({ cwd: process.cwd(), args: process.argv.slice(2), env: process.env.IMAGE_SAYS, word: process.env.WORD ?? null, at: readdirSync("/usr/bin").sort() })
}
for await (const line of createInterface({ input: process.stdin })) {
  const { id, method, params } = JSON.parse(line)
  if (method === "initialize") say({ id, result: { protocolVersion: "2025-11-25", capabilities: { tools: {} }, serverInfo: { name: "image", version: "1" } } })
  else if (method === "tools/list") say({ id, result: { tools } })
  else if (method === "tools/call") say({ id, result: { content: [{ type: "text", text: await act(params.arguments) }] } })
  else if (id !== undefined) say({ id, error: { code: -32601, message: "no" } })
}
`
const tool = `---
name: Act
id: image.act
description: Acts.
version: 1.0.0
inputs: { type: object, properties: { verb: { type: string }, path: { type: string } } }
outputs: { type: string }
mutates: ["workspace:/notes/"]
approval: on-mutate
timeout_ms: 60000
---
`
const driver = (id: string, image: string, more = ""): string => `---
name: Image
id: ${id}
description: d
version: 1.0.0
kind: mcp
server: { kind: docker, image: "${image}"${more} }
transport: stdio
network: { egress: ["declared.test:443"] }
implements: [{ tool: image.act, version: ^1.0.0, metadata: { mcp: { tool_name: act } } }]
---
`

engineSuite("an MCP server that comes as an image", engine, () => {
  let manifests = ""
  let id = ""
  let world: World
  const open = (backend: "docker" | "namespace"): Promise<World> =>
    openWorld(backend === "docker" ? `docker: { engine: "unix://${socket}" }\n` : "", {
      manifests: [manifests],
      backend,
    })
  beforeAll(async () => {
    if (!engine.ok) return
    const base = await localBase(mark, "", "caisson/test-base", {
      texts: { "app/serve": server },
      copies: { "usr/local/bin/node": process.execPath },
      without: ["/usr/bin/perl", "/usr/bin/python", "/usr/lib/x86_64-linux-gnu/perl-base"],
      config: { Entrypoint: ["./serve"], Cmd: ["--usual"], WorkingDir: "/app", Env: ["IMAGE_SAYS=here", "WORD=none"] },
    })
    expect(await api.load(Readable.from([base.bytes]))).toMatchObject({ ok: true })
    id = base.id
    manifests = openFolder()
    const put = (name: string, file: string, text: string): void => {
      mkdirSync(join(manifests, name))
      writeFileSync(join(manifests, name, file), text)
    }
    put("t", "TOOL.md", tool)
    put("usual", "DRIVER.md", driver("image-usual", id))
    put("own", "DRIVER.md", driver("image-own", id, ", args: [--own], env: { WORD: plain }"))
    put("absent", "DRIVER.md", driver("image-absent", absent))
    put("named", "DRIVER.md", driver("image-named", `caisson/test-base:${mark}`))
    world = await open("docker")
  }, 180_000)
  afterAll(async () => {
    if (!engine.ok) return
    await world[Symbol.asyncDispose]()
    await api.removeImage(`caisson/test-base:${mark}`)
    removeFolder(manifests)
    await engine[Symbol.asyncDispose]()
  })
  const pin = { driver: "image-usual" }
  const said = async (name: string): Promise<Record<string, unknown>> => {
    const envelope = await world.call("image.act", { verb: "look" }, { driver: name })
    expect(envelope).toMatchObject({ ok: true })
    return JSON.parse(envelope.ok ? String(envelope.value) : "{}") as Record<string, unknown>
  }

  it("starts as the image says, sees what it needs to start and no other program", async () => {
    expect(await said("image-usual")).toEqual({
      cwd: "/app",
      args: ["--usual"],
      env: "here",
      word: "none",
      at: ["env"],
    })
  }, 180_000)
  it("is given what its driver says in the place of the image's own words", async () => {
    expect(await said("image-own")).toMatchObject({ args: ["--own"], word: "plain" })
  })
  it("has what its contract declares committed, and the receipt names the image by its id", async () => {
    const envelope = await world.call("image.act", { verb: "write", path: "notes/a.txt" }, pin)
    expect(envelope).toMatchObject({ ok: true, effects: [{ path: "notes/a.txt", declared: true, committed: true }] })
    expect(readFileSync(join(world.workspace, "notes/a.txt"), "utf8")).toBe("by the image")
    const [receipt] = readReceipts(world.data, { call: envelope.call })
    expect(JSON.stringify(receipt)).toContain(`"server_image":"${id}"`)
    expect(JSON.stringify(receipt)).toContain(
      `"image":"${id}","may_start":["/usr/bin/env","/usr/local/bin/node"],"program":"/app/serve"`,
    )
  })
  it("has what its contract does not declare refused and undone", async () => {
    const before = digestOfFolder(world.workspace)
    expect(await world.call("image.act", { verb: "write", path: "stray.txt" }, pin)).toMatchObject({
      ok: false,
      error: { code: "undeclared_write" },
    })
    expect(digestOfFolder(world.workspace)).toBe(before)
  })
  it("reaches no host that its driver does not declare, and starts no program", async () => {
    const dial = await world.call("image.act", { verb: "dial" }, pin)
    expect(dial.denied).toMatchObject([
      { layer: "egress", target: expect.stringContaining("elsewhere.test") as string },
    ])
    const start = await world.call("image.act", { verb: "start" }, pin)
    expect(start.ok ? start.value : start.error.code).toMatch(/^(?:EACCES|EPERM|ENOENT|EAGAIN|undeclared_exec)$/)
  })
  it("keeps nothing of a crash, nor of a call that is cancelled", async () => {
    const crashed = await world.call("image.act", { verb: "crash" }, pin)
    expect(crashed).toMatchObject({ ok: false, error: { code: "upstream_error" } })
    const cancel = new AbortController()
    const cancelled = await world.host.call(
      { tool: "image.act", input: { verb: "wait" }, workspace: world.workspace, ...pin },
      {
        caller: processCaller("alice"),
        approved: true,
        signal: cancel.signal,
        onEvent: (event: CallEvent) => {
          if (event.type === "output" && Buffer.from(event.bytes).includes("waiting")) cancel.abort()
        },
      },
    )
    expect(cancelled).toMatchObject({ ok: false, error: { code: "cancelled" } })
    expect(existsSync(join(world.workspace, "notes/half.txt"))).toBe(false)
  })
  it("is refused by name where the engine does not have it, where a name may mean another one, and without images", async () => {
    const reasonOf = async (at: World, name: string): Promise<unknown> =>
      (await at.host.drivers()).find(({ contract }) => contract.id === name)?.availability
    expect(await reasonOf(world, "image-absent")).toMatchObject({
      available: false,
      reason: expect.stringContaining(`the engine does not have the image ${absent}`) as string,
    })
    expect(await reasonOf(world, "image-named")).toMatchObject({
      available: false,
      reason: expect.stringContaining("not named by its digest") as string,
    })
    await using other = await open("namespace")
    expect(await reasonOf(other, "image-usual")).toMatchObject({
      available: false,
      reason: expect.stringMatching(/starts its server from an image .* the namespace backend/) as string,
    })
  })
})
