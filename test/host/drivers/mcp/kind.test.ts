import { describe, expect, it } from "vitest"
import { mcpKind } from "../../../../src/host/drivers/mcp/kind.ts"
import type { DriverContract } from "../../../../src/manifest/types.ts"
import { asDriver, load } from "../../../manifest/from-text.ts"
import { toolOf } from "../../call/values.ts"
import { programOf } from "../../call/values.ts"

const driver = (server: string, more = ""): DriverContract =>
  asDriver(
    load(
      "DRIVER.md",
      `name: x\nid: far\ndescription: d\nversion: 1.0.0\nkind: mcp\nserver: { ${server} }\ntransport: stdio\n${more}\nimplements: [{ tool: t.one, version: ^1.0.0, metadata: { mcp: { tool_name: do, argument_mapping: { text: body } } } }]`,
      "strict",
    ),
  )
const callOf = (contract: DriverContract, tool = toolOf({ id: "t.one" })) => {
  const { binding, diagnostics } = mcpKind.bind(contract, 0, tool, contract.implements[0] as never)
  return {
    diagnostics,
    call: {
      tool,
      driver: { key: "far@1", contract },
      binding,
      input: { text: "x" },
      context: {},
      operation: "o",
      program: programOf(),
    },
  }
}

describe("the mcp kind", () => {
  it("gives a server without a sandbox of its own what the contract says, and no more", () => {
    const { call } = callOf(driver("kind: binary, path: srv, args: [--stdio], env: { A: b }"))
    const needs = mcpKind.needs(call, () => undefined)
    expect(needs).toMatchObject({
      ok: true,
      value: {
        executables: { children: false },
        fs: { read: ["**"], write: ["notes/*"], deny: [] },
        env: { pass: [], set: { A: "b" } },
        egress: [],
      },
    })
  })
  it("gives one that declares a sandbox what it declares", () => {
    const sandbox =
      'sandbox: { fs: { read: ["notes/**"], write: [] }, exec: { allow: true, spawn: [git] }, env: { pass: [B] } }'
    const { call } = callOf(driver("kind: binary, path: srv", sandbox))
    expect(mcpKind.needs(call, () => undefined)).toMatchObject({
      ok: true,
      value: {
        executables: { children: true },
        fs: { read: ["notes/**"], write: [] },
        env: { pass: ["B"] },
        notes: [expect.stringContaining("git") as string],
      },
    })
  })
  it("puts nothing of a call on the server's command line", () => {
    const { call } = callOf(driver("kind: binary, path: srv, args: [--stdio]"))
    const made = mcpKind.command(call)
    expect(made).toMatchObject({ ok: true, value: { run: "conversation" } })
    expect(JSON.stringify(made)).not.toContain('"x"')
    expect(mcpKind.evidence(call, {} as never)).toEqual({
      mcp_tool_name: "do",
      transport: "stdio",
      server_kind: "binary",
    })
  })
  it("refuses an argument that no input fills", () => {
    const tool = toolOf({ id: "t.one", inputs: { type: "object", properties: {}, additionalProperties: false } })
    const { diagnostics } = callOf(driver("kind: binary, path: srv"), tool)
    expect(diagnostics).toMatchObject([{ severity: "error", rule: "mapping-unknown" }])
  })
  it("gives a secret under its own name alone", () => {
    const auth = "auth: { state: { env: [TOKEN] } }"
    expect(
      mcpKind.unenforceable(driver("kind: binary, path: s, env: { TOKEN: '${secrets.TOKEN}' }", auth)),
    ).toBeUndefined()
    expect(
      mcpKind.unenforceable(driver("kind: binary, path: s, env: { KEY: '${secrets.TOKEN}' }", auth)),
    ).toMatchObject({
      control: "env",
    })
  })
  it("names what has to be installed", () => {
    expect(mcpKind.packages?.(driver('kind: npm, package: "@a/b@1.2.3"'), { prefer: "system" })).toEqual([
      { source: "npm", packages: [{ name: "@a/b", version: "1.2.3" }] },
    ])
    expect(mcpKind.packages?.(driver("kind: docker, image: 'a/b:1'"), { prefer: "system" })).toEqual([])
  })
})
