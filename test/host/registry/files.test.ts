import { expect, it } from "vitest"
import { bindDriver } from "../../../src/host/registry/bind.ts"
import { toolReach } from "../../../src/host/registry/reach.ts"
import { asDriver, asTool, cliFront, load, toolFront } from "../../manifest/from-text.ts"

const plain = asTool(load("TOOL.md", toolFront()))
const withFiles = asTool(load("TOOL.md", toolFront("inputsFiles: { a: { path: in/a } }")))
const head = (kind: string): string => `
name: D
id: dd
description: A driver for tests.
version: 1.0.0
kind: ${kind}
network: { egress: [service.test] }
`
const http = `${head("http")}base_url: https://service.test
implements: [{ tool: t.one, version: ^1.0.0, metadata: { http: { endpoint: /x } } }]`
const mcp = (server: string, transport: string): string => `${head("mcp")}server: ${server}
transport: ${transport}
implements: [{ tool: t.one, version: ^1.0.0, metadata: { mcp: { tool_name: x } } }]`

it.each([
  ["an http driver", http, false],
  ["a remote MCP server", mcp("{ kind: remote, url: https://service.test/mcp }", "http"), false],
  ["an MCP server that is started", mcp("{ kind: binary, path: ./server.py }", "stdio"), true],
  ["a program", cliFront(), true],
])("%s serves a contract with files only where what it runs can reach them", (_what, front, reaches) => {
  const driver = asDriver(load("DRIVER.md", front))
  expect(bindDriver(driver, [plain]).refusal).toBeUndefined()
  const { refusal, diagnostics } = bindDriver(driver, [withFiles])
  expect(refusal === undefined).toBe(reaches)
  if (!reaches) expect(diagnostics).toMatchObject([{ rule: "files-out-of-reach", path: "implements[0].tool" }])
})

it("a contract that takes or gives other files reaches further", () => {
  expect(toolReach(withFiles).parts["inputsFiles"]).toEqual({ as: "names", of: ["in/a"] })
  expect(toolReach(plain).parts["inputsFiles"]).toEqual({ as: "names", of: [] })
})
