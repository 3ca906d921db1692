import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { Client } from "@modelcontextprotocol/client"
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/client"
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { removeFolder } from "../support/remove-folder.ts"
import { type DaemonWorld, openDaemonWorld } from "./daemon-world.ts"
import { fixtureTools, openFolder } from "./host-world.ts"

const caisson = join(import.meta.dirname, "../../bin/caisson.cjs")
type Answered = Awaited<ReturnType<Client["callTool"]>>
const structured = (answer: Answered): Record<string, unknown> => answer.structuredContent as Record<string, unknown>

describe("the catalogue over MCP, on stdio", () => {
  const folder = openFolder()
  const workspace = join(folder, "work")
  const clients: Client[] = []
  let answers: ((message: string) => boolean | undefined) | undefined
  const open = async (versions?: string): Promise<Client> => {
    const client = new Client(
      { name: "test", version: "1" },
      {
        capabilities: { elicitation: { form: {} } },
        versionNegotiation: { mode: versions === undefined ? "auto" : "legacy" },
      },
    )
    client.setRequestHandler("elicitation/create", ({ params }) => {
      const keep = answers?.(params.message)
      const [field = ""] = "requestedSchema" in params ? Object.keys(params.requestedSchema.properties) : []
      return keep === undefined ? { action: "cancel" } : { action: "accept", content: { [field]: keep } }
    })
    await client.connect(
      new StdioClientTransport({
        command: process.execPath,
        args: [caisson, "mcp", "--workspace", workspace, "--manifests", fixtureTools],
        env: { PATH: process.env["PATH"] ?? "", CAISSON_DATA: join(folder, "data"), HOME: folder },
        stderr: "inherit",
      }),
    )
    clients.push(client)
    return client
  }
  const note = (name: string): string | undefined => {
    const file = join(workspace, "notes", name)
    return existsSync(file) ? readFileSync(file, "utf8") : undefined
  }
  beforeAll(() => {
    mkdirSync(join(workspace, "notes"), { recursive: true })
    writeFileSync(join(workspace, "notes", "old.txt"), "old\n")
  })
  afterAll(async () => {
    for (const client of clients) await client.close()
    removeFolder(folder)
  })

  describe.each([
    ["modern", undefined],
    ["legacy", "2025-11-25"],
  ] as const)("to a %s client", (era, version) => {
    let client: Client
    beforeAll(async () => {
      client = await open(version)
    })

    it("has tools with schemas and annotations from their contracts", async () => {
      const { tools } = await client.listTools()
      const query = tools.find(({ name }) => name === "json.query")
      expect(query).toMatchObject({
        annotations: { readOnlyHint: true, destructiveHint: false },
        inputSchema: { type: "object" },
      })
      expect(tools.find(({ name }) => name === "file.write")?.annotations).toMatchObject({
        readOnlyHint: false,
        destructiveHint: false,
      })
    })

    it("answers with the value, the effects and the receipt", async () => {
      const answer = await client.callTool({ name: "json.query", arguments: { filter: ".a", document: { a: 7 } } })
      expect(answer.isError ?? false).toBe(false)
      expect(structured(answer)).toMatchObject({
        value: [7],
        effects: [],
        receipt: expect.stringMatching(/^sha256:/) as string,
      })
    })

    it("says what is wrong with an input, and that a tool is not there", async () => {
      const answer = await client.callTool({ name: "json.query", arguments: { document: {} } })
      expect(answer).toMatchObject({ isError: true })
      expect(JSON.stringify(answer.content)).toContain("input_invalid")
      await expect(client.callTool({ name: "no.such", arguments: {} })).rejects.toThrow(/no tool/)
    })

    it("asks before anything runs where nothing could be taken back, and runs with a yes alone", async () => {
      const asked: string[] = []
      const call = () => client.callTool({ name: "fixture.mail", arguments: { verb: "print", args: ["4"] } })
      answers = (message) => {
        asked.push(message)
        return false
      }
      expect(await call()).toMatchObject({ isError: true, structuredContent: { error: { code: "approval_denied" } } })
      expect(asked).toEqual([expect.stringContaining("fixture.mail")])
      expect(asked[0]).toContain("external:")
      expect(asked[0]).toContain('{"verb":"print","args":["4"]}')
      asked.length = 0
      answers = (message) => {
        asked.push(message)
        return undefined
      }
      const later = await call()
      expect(later).toMatchObject({ isError: true, structuredContent: { error: { code: "approval_required" } } })
      expect(JSON.stringify(later.content)).toContain("caisson grants create --tool fixture.mail")
      expect(JSON.stringify(later.content)).toContain("caisson approvals show")
      // Who said nothing is not asked again, least of all about changes that there are none of.
      expect(asked).toHaveLength(1)
      answers = () => true
      expect(structured(await call())).toMatchObject({ value: "xxxx" })
      // What cannot be shown whole nobody is asked about.
      asked.length = 0
      const args = Array.from({ length: 30 }, () => "x".repeat(100))
      const long = await client.callTool({ name: "fixture.mail", arguments: { verb: "print", args } })
      expect(long).toMatchObject({ isError: true, structuredContent: { error: { code: "approval_required" } } })
      expect(asked).toEqual([])
    })

    it("shows the changes to whoever sits there, and keeps exactly those that they said yes to", async () => {
      const asked: string[] = []
      answers = (message) => {
        asked.push(message)
        return true
      }
      const kept = await client.callTool({
        name: "fixture.act",
        arguments: { verb: "write", args: [`notes/${era}.txt`, "yes"] },
      })
      expect(structured(kept)).toMatchObject({ effects: [{ path: `notes/${era}.txt`, committed: true }] })
      expect(asked).toHaveLength(1)
      expect(asked[0]).toContain("+yes")
      expect(note(`${era}.txt`)).toBe("yes")
      answers = () => false
      const denied = await client.callTool({
        name: "fixture.act",
        arguments: { verb: "write", args: [`notes/${era}-no.txt`, "no"] },
      })
      expect(denied).toMatchObject({ isError: true })
      expect(note(`${era}-no.txt`)).toBeUndefined()
      answers = () => undefined
      const later = await client.callTool({
        name: "fixture.act",
        arguments: { verb: "write", args: [`notes/${era}-later.txt`, "no"] },
      })
      expect(JSON.stringify(later.content)).toContain("approval_required")
      const { resources } = await client.listResources()
      const held = resources.findLast(({ uri }) => uri.startsWith("caisson://approvals/"))
      expect(JSON.stringify(await client.readResource({ uri: held?.uri ?? "" }))).toContain(`notes/${era}-later.txt`)
    })
  })
})

describe("the catalogue over MCP, on the daemon", () => {
  let world: DaemonWorld
  beforeAll(async () => {
    world = await openDaemonWorld()
  })
  afterAll(() => world[Symbol.asyncDispose]())
  const connect = async (token: string | undefined, query = ""): Promise<Client> => {
    const client = new Client({ name: "test", version: "1" }, { versionNegotiation: { mode: "auto" } })
    const headers = token === undefined ? {} : { authorization: `Bearer ${token}` }
    await client.connect(
      new StreamableHTTPClientTransport(new URL(`${world.address}/mcp${query}`), { requestInit: { headers } }),
    )
    return client
  }
  const tokenOf = async (user: string): Promise<string> => {
    const made = await world.daemon.host.tokens.issue({ user, workspaces: [world.workspace] })
    if (!made.ok) throw new Error(made.error.message)
    return made.value.token
  }

  it("serves who shows a token, on that token's workspace, and nobody else", async () => {
    await expect(connect(undefined)).rejects.toThrow()
    const client = await connect(await tokenOf("alice"))
    const listed = await client.callTool({ name: "files.list", arguments: { path: "notes" } })
    expect(JSON.stringify(structured(listed)["value"])).toContain("old.txt")
    const id = String(structured(listed)["call"])
    const voice = await world.as()
    const events = await voice("GET", `/v1/calls/${id}`)
    expect(events.body).toMatchObject({ state: "settled", tool: "files.list" })
    // Counted as every other call: it went the same way.
    const made = await world.daemon.host.tokens.issue({
      agent: false,
      workspaces: "any",
      roles: ["caller", "operator"],
    })
    if (!made.ok) throw new Error(made.error.message)
    const headers = { authorization: `Bearer ${made.value.token}` }
    const measured = await (await fetch(`${world.address}/metrics`, { headers })).text()
    expect(measured).toMatch(/^caisson_calls_total\{.*\} 1$/m)
    await client.close()
  })

  it("holds what an agent's call changed, which the agent's own client cannot approve", async () => {
    const client = await connect(await tokenOf("alice"))
    const held = await client.callTool({
      name: "fixture.act",
      arguments: { verb: "write", args: ["notes/held.txt", "x"] },
    })
    expect(held).toMatchObject({ isError: true })
    expect(JSON.stringify(held.content)).toContain("approval_required")
    const { resources } = await client.listResources()
    expect(resources).toHaveLength(1)
    const others = await connect(await tokenOf("bob"))
    expect((await others.listResources()).resources).toEqual([])
    await expect(others.readResource({ uri: resources[0]?.uri ?? "" })).rejects.toThrow()
    await Promise.all([client.close(), others.close()])
  })

  it("makes an agent's call that cannot be taken back once somebody granted it, as the answer says how", async () => {
    const client = await connect(await tokenOf("alice"))
    const call = () => client.callTool({ name: "fixture.mail", arguments: { verb: "print", args: ["3"] } })
    const refused = await call()
    expect(refused).toMatchObject({ isError: true, structuredContent: { error: { code: "approval_required" } } })
    const [, words = ""] = /`caisson grants create ([^`]*)`/.exec(JSON.stringify(refused.content)) ?? []
    const [, tool, user, workspace] =
      /^--tool (\S+) --user (\S+) --workspace (\S+) --uses 1 --days 1$/.exec(words) ?? []
    expect(tool).toBe("fixture.mail")
    const person = await world.as({ agent: false, user: "pat", roles: ["caller", "approver"] })
    const made = await person("POST", "/v1/grants", { tool, user, workspace, uses: 1, days: 1 })
    expect(made.status).toBe(201)
    expect(structured(await call())).toMatchObject({ value: "xxx" })
    expect(await call()).toMatchObject({ isError: true })
    await client.close()
  })

  it("shows the tools that can be called where it stands: without a folder none that changes files", async () => {
    const made = await world.daemon.host.tokens.issue({ user: "alice", workspaces: "any", roles: ["caller"] })
    if (!made.ok) throw new Error(made.error.message)
    const named = async (query: string): Promise<readonly string[]> => {
      const client = await connect(made.value.token, query)
      const { tools } = await client.listTools()
      await client.close()
      return tools.map(({ name }) => name)
    }
    const nowhere = await named("")
    expect(nowhere).toContain("json.query")
    expect(nowhere).not.toContain("fixture.act")
    expect(nowhere).not.toContain("file.write")
    expect(await named(`?workspace=${encodeURIComponent(world.workspace)}`)).toEqual(
      expect.arrayContaining(["json.query", "fixture.act", "file.write"]),
    )
    const client = await connect(made.value.token, "?find=1")
    const found = await client.callTool({ name: "find_tools", arguments: { query: "write" } })
    expect(JSON.stringify(found.content)).not.toContain("file.write")
    await client.close()
  })

  it("has three tools that find the others, where a client asks for that", async () => {
    const client = await connect(await tokenOf("alice"), "?find=1")
    expect((await client.listTools()).tools.map(({ name }) => name)).toEqual([
      "call_tool",
      "describe_tool",
      "find_tools",
    ])
    const found = await client.callTool({ name: "find_tools", arguments: { query: "json" } })
    expect(JSON.stringify(found.content)).toContain("json.query")
    const called = await client.callTool({
      name: "call_tool",
      arguments: { name: "json.query", arguments: { filter: ".", document: { b: 1 } } },
    })
    expect(structured(called)).toMatchObject({ value: [{ b: 1 }] })
    await client.close()
  })
})
