/**
 * The client that the protocol's own conformance suite examines: this host with an mcp driver, called once for each tool
 * of the scenario. Run as `node mcp-conformance-client.ts URL`, with the scenario in MCP_CONFORMANCE_SCENARIO.
 *
 * The suite serves plain HTTP on loopback; a driver speaks TLS to a name, so that a pipe stands in between.
 */
import { mkdirSync, mkdtempSync, realpathSync, writeFileSync } from "node:fs"
import { connect } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { createServer, getCACertificates, setDefaultCACertificates } from "node:tls"
import type { AddressInfo } from "node:net"
import { createCallAuthority } from "../../src/egress-proxy/tls/authority.ts"
import { createHost } from "../../src/host/index.ts"
import type { JsonObject } from "../../src/manifest/types.ts"
import { removeFolder } from "../support/remove-folder.ts"

interface ToolCall {
  readonly name: string
  readonly arguments?: JsonObject
}
const SCHEMA_TOOL = "json_schema_2020_12_tool"
const callsOf: Readonly<Record<string, readonly ToolCall[]>> = {
  initialize: [{ name: "any" }],
  tools_call: [{ name: "add_numbers", arguments: { a: 5, b: 3 } }],
  "elicitation-sep1034-client-defaults": [{ name: "test_client_elicitation_defaults" }],
  "sse-retry": [{ name: "test_reconnection" }],
  "request-metadata": [{ name: "test" }],
  "sep-2322-client-request-state": [
    { name: "test_mrtr_echo_state" },
    { name: "test_mrtr_no_state" },
    { name: "test_mrtr_unrelated" },
    { name: "test_mrtr_no_result_type" },
  ],
  "http-standard-headers": [{ name: "test_headers" }, { name: "my-hyphenated-tool" }],
  "http-invalid-tool-headers": [{ name: "valid_tool", arguments: { region: "x" } }],
  "json-schema-ref-no-deref": [{ name: "lookup_user", arguments: { id: "x" } }],
  "json-schema-2020-12-preservation": [{ name: SCHEMA_TOOL }, { name: "json_schema_echo" }],
}

const [, , url = ""] = process.argv
const scenario = process.env["MCP_CONFORMANCE_SCENARIO"] ?? ""
const { toolCalls = callsOf[scenario] ?? [] } = JSON.parse(process.env["MCP_CONFORMANCE_CONTEXT"] ?? "{}") as {
  toolCalls?: readonly ToolCall[]
}
const version = process.env["MCP_CONFORMANCE_PROTOCOL_VERSION"]
const target = new URL(url)

const authority = createCallAuthority({ names: ["mcp.test"] })
setDefaultCACertificates([...getCACertificates("default"), authority.caPem])
const { key, cert } = authority.leafFor("mcp.test")
const pipe = createServer({ key, cert, ALPNProtocols: ["http/1.1"] }, (near) => {
  const far = connect(Number(target.port), target.hostname)
  near.on("error", () => far.destroy()).pipe(far)
  far.on("error", () => near.destroy()).pipe(near)
})
await new Promise<void>((resolve) => pipe.listen(0, "127.0.0.1", resolve))

const folder = realpathSync(mkdtempSync(join(tmpdir(), "caisson-conformance-")))
const write = (path: string, front: readonly string[]): void => {
  mkdirSync(join(folder, path, ".."), { recursive: true })
  writeFileSync(join(folder, path), `---\n${front.join("\n")}\n---\n`)
}
toolCalls.forEach((_call, index) =>
  write(`manifests/t${index}/TOOL.md`, [
    `name: judged.t${index}`,
    `id: judged.t${index}`,
    "description: A tool of the suite.",
    "version: 1.0.0",
    "inputs: { type: object }",
    "outputs: {}",
    "idempotent: false",
    'mutates: ["network:mcp.test"]',
    "approval: on-mutate",
    "risk_level: 1",
    "timeout_ms: 25000",
  ]),
)
write("manifests/DRIVER.md", [
  "name: The suite",
  "id: judged",
  "description: The server of the suite.",
  "version: 1.0.0",
  "kind: mcp",
  `server: { kind: remote, url: "https://mcp.test${target.pathname}" }`,
  "transport: http",
  ...(version === undefined ? [] : [`protocol_version: "${version}"`]),
  'network: { egress: ["mcp.test:443"] }',
  "implements:",
  ...toolCalls.map(
    ({ name }, index) =>
      `  - { tool: judged.t${index}, version: ^1.0.0, metadata: { mcp: { tool_name: ${JSON.stringify(name)} } } }`,
  ),
])
const { port } = pipe.address() as AddressInfo
writeFileSync(join(folder, "caisson.yaml"), `egress: { services: { mcp.test: "127.0.0.1:${port}" } }\n`, {
  mode: 0o600,
})
mkdirSync(join(folder, "work"))

{
  await using host = await createHost({
    data: join(folder, "data"),
    manifests: [join(folder, "manifests")],
    config: join(folder, "caisson.yaml"),
  })
  for (const [index, { name, arguments: given = {} }] of toolCalls.entries()) {
    let input = given
    if (name === "json_schema_echo") {
      const seen = await host.review("judged")
      const tool = seen.ok ? seen.tools.find((each) => each.name === SCHEMA_TOOL) : undefined
      input = { schema: tool?.accepted.offer?.["inputSchema"] ?? null }
    }
    const envelope = await host.call(
      { tool: `judged.t${index}`, input, workspace: join(folder, "work") },
      { approved: true, elicit: async () => ({ action: "accept", content: {} }) },
    )
    console.log(name, JSON.stringify(envelope.ok ? envelope.value : envelope.error))
  }
}
pipe.close()
removeFolder(folder)
