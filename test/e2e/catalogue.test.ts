/** Every example of every bundled tool, through `host.call`, in a real sandbox. */
import { globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { createServer, type Server } from "node:http"
import { createServer as createSecureServer } from "node:https"
import type { AddressInfo } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { getCACertificates, setDefaultCACertificates } from "node:tls"
import { fileURLToPath } from "node:url"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import { parse } from "yaml"
import { createCallAuthority } from "../../src/egress-proxy/tls/authority.ts"
import { createHost, processCaller } from "../../src/host/index.ts"
import type { Host, ToolListing } from "../../src/host/types.ts"
import type { JsonObject, JsonValue } from "../../src/manifest/types.ts"
import { publicRegistry } from "../support/public-registry.ts"
import { furnish } from "./catalogue-workspaces.ts"

interface Example {
  readonly name: string
  readonly input: JsonObject
  readonly output?: JsonValue
}
interface Written {
  readonly file: string
  readonly id: string
  readonly examples?: readonly Example[]
}

const catalogue = fileURLToPath(new URL("../../manifests", import.meta.url))
const written = globSync("**/TOOL.md", { cwd: catalogue })
  .map((name) => join(catalogue, name))
  .map(
    (file): Written => ({
      file,
      ...(parse(readFileSync(file, "utf8").split("---\n")[1] ?? "") as Omit<Written, "file">),
    }),
  )
  .sort((a, b) => (a.id < b.id ? -1 : 1))
const examples = written.flatMap((tool) => (tool.examples ?? []).map((example) => ({ tool, example })))
const page = "<title>a small page</title>\n"

const known = {
  id: "GHSA-jfh8-c2jp-5v3q",
  summary: "Remote code injection in Log4j",
  aliases: ["CVE-2021-44228"],
  affected: [{ package: { ecosystem: "Maven", name: "org.apache.logging.log4j:log4j-core" } }],
}
const roots = getCACertificates("default")

/** Answers as the service does, with a certificate for its name that this process trusts. */
const openOsv = async (): Promise<Server> => {
  const authority = createCallAuthority({ names: ["api.osv.dev"] })
  setDefaultCACertificates([...roots, authority.caPem])
  const made = createSecureServer(authority.leafFor("api.osv.dev"), (request, response) => {
    const found = request.url === `/v1/vulns/${known.id}`
    response.writeHead(found ? 200 : 404, { "content-type": "application/json" })
    response.end(JSON.stringify(found ? known : { code: 5, message: "Bug not found." }))
  })
  await new Promise<void>((resolve) => made.listen(0, "127.0.0.1", resolve))
  return made
}

/** Drivers whose servers are packages. */
const packaged = ["memory-mcp", "thinking-mcp"]

let scratch: string
let host: Host
let server: Server
let osv: Server
let tools: ReadonlyMap<string, ToolListing>

beforeAll(async () => {
  scratch = mkdtempSync(join(tmpdir(), "caisson-catalogue-"))
  server = createServer((_, response) => response.end(page))
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  const { port } = server.address() as AddressInfo
  osv = await openOsv()
  const config = join(scratch, "caisson.yaml")
  // The hosts that examples dial are mapped to servers of this test's own.
  const secure = (osv.address() as AddressInfo).port
  const services = `example.com: 127.0.0.1:${port}\n    api.osv.dev: 127.0.0.1:${secure}`
  const registry = await publicRegistry()
  writeFileSync(config, `egress:\n  services:\n    ${services}\n    ${registry ?? ""}\n`)
  host = await createHost({ data: join(scratch, "data"), config })
  // Without a registry they are not there, and their examples say so.
  if (registry !== undefined)
    for (const driver of packaged) expect(await host.install(driver)).toMatchObject({ ok: true, version: "2026.8.31" })
  tools = new Map((await host.tools()).map((tool) => [tool.contract.id, tool]))
}, 600_000)

afterAll(async () => {
  await host?.close()
  for (const each of [server, osv]) await new Promise((resolve) => each.close(resolve))
  setDefaultCACertificates(roots)
  rmSync(scratch, { recursive: true, force: true })
})

const inHost = ["file.edit", "file.read", "file.write", "files.list", "text.search"]

describe("the bundled catalogue", () => {
  test("loads without a single finding", () => {
    expect(host.diagnostics().filter((diagnostic) => diagnostic.file.startsWith(catalogue))).toEqual([])
  })

  test("registers every tool in the folder, each with a driver and an example", () => {
    expect([...tools.keys()].sort()).toEqual(written.map((tool) => tool.id))
    for (const tool of written) {
      expect(tool.examples ?? [], tool.id).not.toHaveLength(0)
      expect(tools.get(tool.id)?.drivers, tool.id).not.toHaveLength(0)
    }
  })

  test.for(examples)("$tool.id: $example.name", async ({ tool, example }, { skip }) => {
    const { id } = tool
    const listing = tools.get(id)
    if (listing?.availability.available === false) skip(`${listing.availability.reason}; ${listing.availability.fix}`)
    const workspace = join(scratch, "workspaces", `${id}-${example.name.replaceAll(" ", "-")}`)
    furnish(id, tool.file, workspace)
    const envelope = await host.call({ tool: id, input: example.input, workspace }, { approved: true })
    expect(envelope).toMatchObject({ ok: true })
    if (!envelope.ok) return
    if (Object.hasOwn(example, "output")) expect(envelope.value).toEqual(example.output)
    if (id === "http.fetch") expect(envelope.value).toBe(page)
    if (id === "vulnerability.show") expect(envelope.value).toEqual(known)
    const mutates = listing?.contract.mutates ?? []
    if (mutates.length === 0) expect(envelope.effects).toEqual([])
    else {
      expect(envelope.effects).not.toHaveLength(0)
      for (const effect of envelope.effects) expect(effect).toMatchObject({ declared: true, committed: true })
    }
    expect(envelope.denied).toEqual([])
    expect(envelope.receipt).toMatch(/^sha256:[0-9a-f]{64}$/)
  })

  test("a line of thought goes on from call to call, for whoever began it", async ({ skip }) => {
    const listing = tools.get("thinking.step")
    if (listing?.availability.available === false) skip(`${listing.availability.reason}; ${listing.availability.fix}`)
    const workspace = join(scratch, "workspaces", "thinking")
    mkdirSync(workspace)
    const step = async (thoughtNumber: number, user: string): Promise<unknown> => {
      const input = { thought: "Then.", thoughtNumber, totalThoughts: 3, nextThoughtNeeded: true }
      const envelope = await host.call({ tool: "thinking.step", input, workspace }, { caller: processCaller(user) })
      return envelope.ok ? (envelope.value as JsonObject)["thoughtHistoryLength"] : envelope
    }
    expect([await step(1, "alice"), await step(2, "alice"), await step(1, "bob"), await step(3, "alice")]).toEqual([
      1, 2, 1, 3,
    ])
  })

  test("serves files in the host itself beside the programs, which stay the default", () => {
    const served = [...tools.values()].filter(({ drivers }) => drivers.includes("caisson-files@1"))
    expect(served.map(({ contract }) => contract.id).sort()).toEqual(inHost)
  })

  test.for(examples.filter(({ tool }) => inHost.includes(tool.id)))(
    "$tool.id, in the host itself: $example.name",
    async ({ tool: { id, file }, example }) => {
      const workspace = join(scratch, "workspaces", `host-${id}-${example.name.replaceAll(" ", "-")}`)
      furnish(id, file, workspace)
      const envelope = await host.call(
        { tool: id, input: example.input, workspace, driver: "caisson-files" },
        { approved: true },
      )
      expect(envelope).toMatchObject({ ok: true, driver: "caisson-files@1", value: example.output })
      const changes = (tools.get(id)?.contract.mutates ?? []).length > 0
      expect(envelope.effects.map(({ declared, committed }) => declared && committed)).toEqual(changes ? [true] : [])
    },
  )
})
