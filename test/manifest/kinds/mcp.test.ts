import { describe, expect, it } from "vitest"
import type { McpCall, McpSpec } from "../../../src/manifest/types.ts"
import { asDriver, errors, load, warnings } from "../from-text.ts"

const front = (server: string, { call = "tool_name: q", transport = "stdio", extra = "" } = {}): string => `
name: M
id: m-one
description: d
version: 1.0.0
kind: mcp
network: { egress: [mcp.test] }
auth: { state: { env: [KEY] } }
server: { ${server} }
transport: ${transport}
${extra}
implements: [{ tool: t.one, version: ^1.0.0, metadata: { mcp: { ${call} } } }]`
type More = Parameters<typeof front>[1]
const spec = (server: string, more: More = {}): McpSpec => {
  const { body } = asDriver(load("DRIVER.md", front(server, more), "strict"))
  if (body.kind !== "mcp") throw new Error("not mcp")
  return body.mcp
}
const call = (text: string): McpCall | undefined =>
  asDriver(load("DRIVER.md", front("kind: binary, path: srv", { call: text }), "strict")).implements[0]?.mcp

describe("an mcp driver", () => {
  it.each([
    [
      "kind: binary, path: /usr/local/bin/srv, args: [/workspace]",
      { kind: "binary", path: "/usr/local/bin/srv", args: ["/workspace"], env: [] },
    ],
    [
      'kind: npm, package: "@x/srv@1.2.3"',
      { kind: "npm", package: "@x/srv@1.2.3", name: "@x/srv", version: "1.2.3", args: [], env: [] },
    ],
    ["kind: docker, image: ghcr.io/x/srv:1", { kind: "docker", image: "ghcr.io/x/srv:1", args: [], env: [] }],
    [
      'kind: docker, image: srv, env: { DB_URL: "${secrets.KEY}", LOG: quiet }',
      {
        kind: "docker",
        image: "srv",
        args: [],
        env: [
          {
            name: "DB_URL",
            value: {
              text: "${secrets.KEY}",
              parts: [{ type: "value", path: { root: "secrets", keys: ["KEY"] }, filters: [] }],
            },
          },
          { name: "LOG", value: { text: "quiet", parts: [{ type: "literal", text: "quiet" }] } },
        ],
      },
    ],
  ])("starts %s", (server, expected) => {
    expect(spec(server).server).toEqual(expected)
  })
  it("reaches a server elsewhere, and says how long it waits", () => {
    expect(
      spec("kind: remote, url: 'https://mcp.test/v1'", {
        transport: "http",
        extra:
          "protocol_version: '2025-11-25'\nconnection_options: { timeout_ms: 5000, max_retries: 2, keepalive: true }\nprompts: [{ name: p, integrate_as: skill_block, skill_ref: ./s }]\nresources: [{ uri_template: 'file:///{path}', integrate_as: ref_kind, ref_kind_id: file }]",
      }),
    ).toEqual({
      server: { kind: "remote", url: "https://mcp.test/v1" },
      transport: "http",
      protocolVersion: "2025-11-25",
      prompts: [{ name: "p", integrateAs: "skill_block", skillRef: "./s" }],
      resources: [{ uriTemplate: "file:///{path}", integrateAs: "ref_kind", refKindId: "file" }],
      connection: { timeoutMs: 5000, maxRetries: 2, keepalive: true },
    })
  })
  it("names the server's tool, its arguments and what of its answer is taken", () => {
    expect(call("tool_name: q")).toEqual({ toolName: "q", extract: [] })
    expect(
      call('tool_name: read_file, argument_mapping: { q: path }, result_extract: "$.rows[?(@.ok==true)]"'),
    ).toEqual({
      toolName: "read_file",
      arguments: [{ input: "q", argument: "path" }],
      extract: [
        { take: "property", name: "rows" },
        { take: "where", key: "ok", value: true },
      ],
    })
  })
  it.each<[string, string, More, string]>([
    [
      "a value of one call in its arguments",
      'kind: binary, path: s, args: ["--user=${input.user}"]',
      {},
      "per-call-value @ server.args[0]",
    ],
    [
      "a tenant in its environment",
      'kind: binary, path: s, env: { TENANT: "${context.tenant}" }',
      {},
      "per-call-value @ server.env.TENANT",
    ],
    [
      "a secret in its arguments",
      'kind: binary, path: s, args: ["${secrets.KEY}"]',
      {},
      "secret-in-argv @ server.args[0]",
    ],
    ["a shell in its arguments", 'kind: binary, path: s, args: ["&&", rm]', {}, "argv-shell @ server.args[0]"],
    [
      "a literal password",
      "kind: binary, path: s, env: { DB_PASSWORD: hunter2 }",
      {},
      "plaintext-credential @ server.env.DB_PASSWORD",
    ],
    ["a variable that is no name", 'kind: binary, path: s, env: { "A=B": c }', {}, 'bad-value @ server.env["A=B"]'],
    ["a program that climbs", "kind: binary, path: ../../bin/sh", {}, "path-escape @ server.path"],
    ["a program that is a command line", "kind: binary, path: 'sh -c id'", {}, "path-escape @ server.path"],
    ["a program that is an option", "kind: binary, path: -x", {}, "path-escape @ server.path"],
    [
      "a package that is an address",
      'kind: npm, package: "https://evil.test/x.tgz"',
      {},
      "mcp-server @ server.package",
    ],
    ["a package that is a repository", "kind: npm, package: someone/repo", {}, "mcp-server @ server.package"],
    ["an image that is an option", "kind: docker, image: --privileged", {}, "mcp-server @ server.image"],
    ["an image with blanks", "kind: docker, image: 'x -v /:/h'", {}, "mcp-server @ server.image"],
    [
      "a server that an input chooses",
      'kind: remote, url: "https://${input.h}/"',
      { transport: "sse" },
      "mcp-server @ server.url",
    ],
    [
      "a server with a password",
      "kind: remote, url: 'https://u:p@mcp.test/'",
      { transport: "sse" },
      "mcp-server @ server.url",
    ],
    ["a server in the clear", "kind: remote, url: 'http://mcp.test/'", { transport: "sse" }, "bad-value @ server.url"],
    ["a remote server on stdio", "kind: remote, url: 'https://mcp.test/'", {}, "mcp-transport @ transport"],
    ["a program on http", "kind: binary, path: s", { transport: "http" }, "mcp-transport @ transport"],
    ["a kind of server that is none", "kind: ssh, host: x", {}, "not-one-of @ server.kind"],
    [
      "a tool's name with an end of line",
      "kind: binary, path: s",
      { call: 'tool_name: "a\\nb"' },
      "bad-value @ implements[0].metadata.mcp.tool_name",
    ],
    [
      "two inputs for one argument",
      "kind: binary, path: s",
      { call: "tool_name: q, argument_mapping: { q: x, size: x }" },
      "mapping-twice @ implements[0].metadata.mcp.argument_mapping.size",
    ],
    [
      "an argument that is a tree",
      "kind: binary, path: s",
      { call: "tool_name: q, argument_mapping: { q: { a: b } }" },
      "wrong-type @ implements[0].metadata.mcp.argument_mapping.q",
    ],
  ])("is refused with %s", (_what, server, more, expected) => {
    const result = load("DRIVER.md", front(server, more))
    expect(errors(result)).toEqual([expected])
    expect(JSON.stringify(result)).not.toContain("hunter2")
  })
  it.each<[string, string, More, string]>([
    [
      "a host that it cannot reach",
      "kind: remote, url: 'https://other.test/'",
      { transport: "sse" },
      "address-not-in-egress @ server.url",
    ],
    [
      "arguments for what is not started",
      "kind: remote, url: 'https://mcp.test/', args: [x]",
      { transport: "sse" },
      "mcp-remote-extra @ server.args",
    ],
    [
      "a wait without an end",
      "kind: binary, path: s",
      { extra: "connection_options: { timeout_ms: 9007199254740991 }" },
      "wait-too-long @ connection_options.timeout_ms",
    ],
    ["a prompt of another form", "kind: binary, path: s", { extra: "prompts: [hello]" }, "mcp-prompts @ prompts[0]"],
    [
      "a resource that is no address",
      "kind: binary, path: s",
      { extra: "resources: [{ uri_template: '../x', integrate_as: raw }]" },
      "mcp-resources @ resources[0]",
    ],
  ])("is warned of %s", (_what, server, more, expected) => {
    expect(warnings(load("DRIVER.md", front(server, more)))).toEqual([expected])
  })
})
