/**
 * The client that the protocol's own conformance suite examines: this host with an mcp driver, called once for each tool
 * of the scenario. Run as `node mcp-conformance-client.ts URL`, with the scenario in MCP_CONFORMANCE_SCENARIO.
 *
 * In the scenarios of logins a person does what a call says: where it needs a login, `login` is run, the page is followed,
 * and the call is made again, more often than any scenario allows: what ends it is the host's own bound.
 */
import { mkdirSync, mkdtempSync, realpathSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { getCACertificates, setDefaultCACertificates } from "node:tls"
import { request } from "undici"
import { createHost, processCaller } from "../../src/host/index.ts"
import type { JsonObject } from "../../src/manifest/types.ts"
import { removeFolder } from "../support/remove-folder.ts"
import { names, openFront } from "./mcp-conformance-front.ts"

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
const isLogin = scenario.startsWith("auth/")
interface Context {
  readonly toolCalls?: readonly ToolCall[]
  readonly client_id?: string
  readonly client_secret?: string
  readonly issuer?: string
}
const context = JSON.parse(process.env["MCP_CONFORMANCE_CONTEXT"] ?? "{}") as Context
const loginCalls = scenario === "auth/authorization-server-migration" ? 2 : 1
const toolCalls =
  context.toolCalls ?? (isLogin ? Array<ToolCall>(loginCalls).fill({ name: "test-tool" }) : (callsOf[scenario] ?? []))
const version = process.env["MCP_CONFORMANCE_PROTOCOL_VERSION"]
const target = new URL(url)

const front = await openFront(target)
setDefaultCACertificates([...getCACertificates("default"), front.caPem])

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
  `network: { egress: ${JSON.stringify(names.map((name) => `${name}:443`))} }`,
  ...(isLogin ? ["auth:", "  login: { url: https://mcp.test/ }", "  state: { env: [JUDGED_TOKEN] }"] : []),
  "implements:",
  ...toolCalls.map(
    ({ name }, index) =>
      `  - { tool: judged.t${index}, version: ^1.0.0, metadata: { mcp: { tool_name: ${JSON.stringify(name)} } } }`,
  ),
])
/** What the operator knows of the suite's servers: a client that was registered with them, or that others may know. */
const { client_id: clientId, client_secret: clientSecret, issuer = "https://as1.test" } = context
const flow = scenario.startsWith("auth/client-credentials") ? "client-credentials" : "authorization-code"
const registered =
  clientId === undefined
    ? "mcp_logins: { register: true, client_document: https://conformance-test.local/client-metadata.json }"
    : `logins: { judged: { flow: ${flow}, issuer: "${front.named(issuer)}", client_id: ${clientId}, client_secret: judged-client } }`
const services = names.map((name) => `${name}: "127.0.0.1:${front.port}"`).join(", ")
writeFileSync(join(folder, "caisson.yaml"), `egress: { services: { ${services} } }\n${registered}\n`, { mode: 0o600 })
mkdirSync(join(folder, "work"))

{
  await using host = await createHost({
    data: join(folder, "data"),
    manifests: [join(folder, "manifests")],
    config: join(folder, "caisson.yaml"),
  })
  const workspace = join(folder, "work")
  const caller = processCaller("somebody")
  if (clientSecret !== undefined) {
    const set = await host.secrets.set("judged-client", clientSecret, { shared: true })
    if (!set.ok) throw new Error(JSON.stringify(set))
  }
  /** Follows the page, which approves by itself, and comes back as a browser does. */
  const visit = async (page: string): Promise<void> => {
    const back = await front.open(page)
    if (back !== undefined) await (await request(back)).body.dump()
  }
  const login = async (): Promise<boolean> => {
    const visits: Promise<void>[] = []
    const report = await host.login("judged", {
      caller,
      workspace,
      timeoutMs: 15_000,
      person: { open: ({ url: page }) => void visits.push(visit(page)) },
    })
    await Promise.all(visits)
    console.log("login", JSON.stringify(report))
    return report.ok
  }
  for (const [index, { name, arguments: given = {} }] of toolCalls.entries()) {
    let input = given
    if (name === "json_schema_echo") {
      const seen = await host.review("judged")
      const tool = seen.ok ? seen.tools.find((each) => each.name === SCHEMA_TOOL) : undefined
      input = { schema: tool?.accepted.offer?.["inputSchema"] ?? null }
    }
    const call = () =>
      host.call(
        { tool: `judged.t${index}`, input, workspace },
        { caller, approved: true, elicit: async () => ({ action: "accept", content: {} }) },
      )
    let envelope = await call()
    for (let tries = 0; tries < 8 && !envelope.ok && envelope.error.code === "auth_required"; tries += 1) {
      if (!(await login())) break
      envelope = await call()
    }
    console.log(name, JSON.stringify(envelope.ok ? envelope.value : envelope.error))
  }
}
await front[Symbol.asyncDispose]()
removeFolder(folder)
