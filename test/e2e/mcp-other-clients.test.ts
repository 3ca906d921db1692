/**
 * Clients of other makers against `/mcp`: the Python client in both eras, the one of @openai/agents, and the Inspector's
 * strict look at every tool of the catalogue. Each lists, calls, has an effect approved, and cancels.
 */
import { execFile } from "node:child_process"
import { existsSync, mkdtempSync, readFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { pathToFileURL } from "node:url"
import { promisify } from "node:util"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { fetchFromNpm, fetchFromPyPI } from "../support/fetched.ts"
import { describeNeeding } from "../support/needing.ts"
import { removeFolder } from "../support/remove-folder.ts"
import { type Ask, type DaemonWorld, openDaemonWorld } from "./daemon-world.ts"

const run = promisify(execFile)
const [python, agents, inspector] = await Promise.all([
  fetchFromPyPI("mcp", "2.3.0"),
  fetchFromNpm("@openai/agents", "0.20.0", "dist/index.mjs"),
  fetchFromNpm("@modelcontextprotocol/inspector", "2.12.0", "package.json"),
])

/** What of @openai/agents is used here. */
interface AgentsServer {
  connect(): Promise<void>
  close(): Promise<void>
  listTools(): Promise<readonly { readonly name: string }[]>
  callToolResult(name: string, input: unknown, meta?: null, options?: { readonly signal: AbortSignal }): Promise<Told>
}
interface Told {
  readonly isError?: boolean
  readonly structuredContent?: Readonly<Record<string, unknown>>
}
interface Agents {
  readonly MCPServerStreamableHttp: new (options: {
    readonly url: string
    readonly requestInit: { readonly headers: Readonly<Record<string, string>> }
  }) => AgentsServer
}

describe("clients of other makers", () => {
  let world: DaemonWorld
  let person: Ask
  beforeAll(async () => {
    world = await openDaemonWorld()
    person = await world.as({ agent: false, roles: ["caller", "approver"] })
  })
  afterAll(() => world[Symbol.asyncDispose]())
  const tokenOf = async (agent: boolean): Promise<string> => {
    const made = await world.daemon.host.tokens.issue({ user: "alice", workspaces: [world.workspace], agent })
    if (!made.ok) throw new Error(made.error.message)
    return made.value.token
  }
  const note = (name: string): string | undefined => {
    const file = join(world.workspace, "notes", name)
    return existsSync(file) ? readFileSync(file, "utf8") : undefined
  }
  /** Nothing that was cancelled goes on, or is left. */
  const isQuiet = async (): Promise<void> => {
    await expect
      .poll(async () => (await person("GET", "/v1/calls")).body["calls"] as readonly { readonly state: string }[], {
        timeout: 30_000,
        interval: 500,
      })
      .not.toContainEqual(expect.objectContaining({ state: "running" }))
  }

  describeNeeding("the Python client", python.missing, () => {
    it.each(["auto", "legacy"])("in mode %s", async (mode) => {
      const words = [join(import.meta.dirname, "mcp-client.py"), `${world.address}/mcp`, await tokenOf(false), mode]
      const { stdout, stderr } = await run(python.entry, [...words, `python-${mode}.txt`], { timeout: 100_000 })
      const told = JSON.parse(stdout) as Record<string, unknown>
      expect(told["tools"]).toContain("json.query")
      expect(told).toMatchObject({ called: { error: false, structured: { value: [7] } }, left: true })
      expect(told).toMatchObject({ kept: { error: false, structured: { effects: [{ committed: true }] } } })
      expect(told["asked"]).toEqual([expect.stringContaining("+yes")])
      expect(note(`python-${mode}.txt`)).toBe("yes")
      expect(note(`python-${mode}.txt.slept`)).toBeUndefined()
      expect(stderr).not.toContain("failed")
      await isQuiet()
    })
  })

  describeNeeding("the client of @openai/agents", agents.missing, () => {
    it("lists, calls, has an effect approved elsewhere, and cancels", async () => {
      const { MCPServerStreamableHttp } = (await import(pathToFileURL(agents.entry).href)) as Agents
      const headers = { authorization: `Bearer ${await tokenOf(true)}` }
      const server = new MCPServerStreamableHttp({ url: `${world.address}/mcp`, requestInit: { headers } })
      await server.connect()
      expect((await server.listTools()).map(({ name }) => name)).toContain("json.query")
      const called = await server.callToolResult("json.query", { filter: ".a", document: { a: 7 } })
      expect(called.structuredContent).toMatchObject({ value: [7] })
      const held = await server.callToolResult("fixture.act", { verb: "write", args: ["notes/agents.txt", "yes"] })
      expect(held).toMatchObject({ isError: true, structuredContent: { error: { code: "approval_required" } } })
      expect(note("agents.txt")).toBeUndefined()
      const decided = await person("POST", `/v1/approvals/${String(held.structuredContent?.["call"])}`, {
        decision: "approve",
      })
      expect(decided.status).toBe(200)
      expect(note("agents.txt")).toBe("yes")
      const leaving = new AbortController()
      const slept = server.callToolResult("fixture.act", { verb: "sleep", args: ["notes/slept"] }, null, leaving)
      setTimeout(() => leaving.abort(), 1_000)
      await expect(slept).rejects.toThrow()
      expect(note("slept")).toBeUndefined()
      await isQuiet()
      await server.close()
    })
  })

  describeNeeding("the Inspector", inspector.missing, () => {
    it("has no complaint about any tool, in its strict mode", async () => {
      const home = mkdtempSync(join(tmpdir(), "caisson-inspector-"))
      const program = join(inspector.folder, "node_modules/.bin/mcp-inspector")
      const header = `Authorization: Bearer ${await tokenOf(true)}`
      const target = ["--cli", `${world.address}/mcp`, "--transport", "http", "--header", header]
      const words = [...target, "--protocol-era", "modern", "--method", "tools/list", "--strict"]
      const { stdout, stderr } = await run(process.execPath, [program, ...words], {
        env: { ...process.env, HOME: home },
        timeout: 60_000,
        maxBuffer: 1 << 24,
      })
      removeFolder(home)
      expect(stderr).toBe("")
      expect((JSON.parse(stdout) as { tools: readonly unknown[] }).tools.length).toBeGreaterThan(30)
    })
  })
})
