/** MCP servers that come as packages: of npm by `server.kind`, of pip by the driver's `install`; from a registry of the test. */
import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { removeFolder } from "../support/remove-folder.ts"
import { type PackageRegistry, startPackageRegistry } from "../support/servers/package-registry.ts"
import { openFolder, openWorld, type World } from "./host-world.ts"

const NODE = `#!/usr/bin/env node
import { createInterface } from "node:readline"
import { word } from "served-word"
const tools = [{ name: "say", description: "Says it.", inputSchema: { type: "object", properties: { name: { type: "string" } } } }]
const answers = {
  "server/discover": () => ({ supportedVersions: ["2026-07-28"], capabilities: { tools: {} } }),
  "tools/list": () => ({ tools }),
  "tools/call": ({ arguments: { name } }) => ({ content: [{ type: "text", text: word + " " + name }] }),
}
for await (const line of createInterface({ input: process.stdin })) {
  const { id, method, params } = JSON.parse(line)
  const result = { resultType: "complete", ttlMs: 0, cacheScope: "private", ...answers[method](params) }
  console.log(JSON.stringify({ jsonrpc: "2.0", id, result }))
}
`
const PYTHON = `import json, sys
def main():
    tools = [{"name": "say", "description": "Says it.", "inputSchema": {"type": "object", "properties": {"name": {"type": "string"}}}}]
    for line in sys.stdin:
        request = json.loads(line)
        method = request.get("method")
        if method == "initialize":
            result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "x", "version": "1"}}
        elif method == "tools/list":
            result = {"tools": tools}
        elif method == "tools/call":
            result = {"content": [{"type": "text", "text": "hello from pip, " + request["params"]["arguments"]["name"]}]}
        else:
            continue
        print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}), flush=True)
`

const driver = (id: string, lines: readonly string[]): string =>
  [
    "---",
    `name: ${id}`,
    `id: ${id}`,
    "description: A fixture.",
    "version: 1.0.0",
    "kind: mcp",
    ...lines,
    "transport: stdio",
    "implements: [{ tool: served.say, version: ^1.0.0, metadata: { mcp: { tool_name: say } } }]",
    "---",
    "",
  ].join("\n")
const TOOL = `---
name: served.say
id: served.say
description: A fixture.
version: 1.0.0
inputs: { type: object, additionalProperties: false, required: [name], properties: { name: { type: string } } }
outputs: { type: string }
idempotent: true
mutates: []
approval: auto
risk_level: 0
timeout_ms: 120000
---
`

describe("an MCP server in a package", () => {
  const folder = openFolder()
  let registry: PackageRegistry
  let world: World
  beforeAll(async () => {
    registry = await startPackageRegistry()
    const bin = { bin: { "odd-name": "server.mjs" }, type: "module" }
    await registry.publish(
      {
        name: "served-word",
        version: "1.0.0",
        manifest: { type: "module", exports: "./index.js" },
        files: { "index.js": "export const word = 'hello'\n" },
      },
      {
        name: "@own/served",
        version: "1.2.0",
        manifest: { ...bin, dependencies: { "served-word": "^1.0.0" } },
        files: { "server.mjs": NODE },
      },
      { name: "climbing", version: "1.0.0", manifest: { bin: { climbing: "../../x.js" } } },
    )
    registry.publishWheels({
      name: "servedpy",
      version: "1.0",
      files: { "servedpy.py": PYTHON },
      scripts: ["servedpy = servedpy:main"],
    })
    const put = (path: string, text: string): void => {
      mkdirSync(join(folder, path, ".."), { recursive: true })
      writeFileSync(join(folder, path), text)
    }
    put("say/TOOL.md", TOOL)
    put("npm/DRIVER.md", driver("served-npm", ['server: { kind: npm, package: "@own/served@^1.0.0" }']))
    put("climbing/DRIVER.md", driver("served-climbing", ["server: { kind: npm, package: climbing@1.0.0 }"]))
    put(
      "pip/DRIVER.md",
      driver("served-pip", [
        "server: { kind: binary, path: servedpy }",
        'protocol_version: "2025-11-25"',
        "install: [{ method: pip, package: servedpy }]",
      ]),
    )
    world = await openWorld(registry.config, { manifests: [folder] })
  })
  afterAll(async () => {
    await world[Symbol.asyncDispose]()
    await registry[Symbol.asyncDispose]()
    removeFolder(folder)
  })

  it.each([
    ["served-npm", "hello Ada"],
    ["served-pip", "hello from pip, Ada"],
  ])("%s is not there, is installed when asked to, and then serves", async (id, value) => {
    const call = () => world.call("served.say", { name: "Ada" }, { driver: id })
    expect(await call()).toMatchObject({
      ok: false,
      error: { message: expect.stringContaining("installed") as string },
    })
    expect(await world.host.install(id)).toMatchObject({ ok: true })
    expect(await call()).toMatchObject({ ok: true, value, driver: `${id}@1` })
  })
  it("is no program where it is said to lie outside of its package", async () => {
    await world.host.install("served-climbing")
    const refused = await world.call("served.say", { name: "Ada" }, { driver: "served-climbing" })
    expect(refused).toMatchObject({ ok: false })
    expect(JSON.stringify(refused)).toContain("brings no program")
  })
})
