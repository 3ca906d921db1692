/** Clients that mean no good: what is another's, what is old, what is too much. */
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { mcpLimits } from "../../src/mcp-server/limits.ts"
import type { TokenOptions } from "../../src/host/types.ts"
import { type DaemonWorld, openDaemonWorld } from "./daemon-world.ts"

const MODERN = "2026-07-28"
const TASKS = "io.modelcontextprotocol/tasks"
interface Told {
  readonly status: number
  readonly session: string | null
  readonly text: string
  readonly body: {
    readonly result?: Readonly<Record<string, unknown>>
    readonly error?: { readonly code: number; readonly message: string }
  }
}

describe("a client that means no good", () => {
  let world: DaemonWorld
  let alice: string
  let bob: string
  /** of another tenant, under the same name */
  let stranger: string
  beforeAll(async () => {
    world = await openDaemonWorld()
    alice = await tokenOf({ user: "alice", agent: false })
    bob = await tokenOf({ user: "bob" })
    stranger = await tokenOf({ user: "alice", tenant: "other", agent: false })
  })
  afterAll(() => world[Symbol.asyncDispose]())
  const tokenOf = async (of: TokenOptions): Promise<string> => {
    const made = await world.daemon.host.tokens.issue({ workspaces: [world.workspace], ...of })
    if (!made.ok) throw new Error(made.error.message)
    return made.value.token
  }
  const post = async (
    token: string,
    body: unknown,
    headers: Record<string, string> = {},
    query = "",
  ): Promise<Told> => {
    const response = await fetch(`${world.address}/mcp${query}`, {
      method: "POST",
      headers: {
        authorization: `Bearer ${token}`,
        "content-type": "application/json",
        accept: "application/json, text/event-stream",
        ...headers,
      },
      body: JSON.stringify(body),
    })
    const text = await response.text()
    const data = text.startsWith("{") ? text : (/^data: (\{.*)$/m.exec(text)?.[1] ?? "{}")
    const body_ = JSON.parse(data) as Told["body"]
    return { status: response.status, session: response.headers.get("mcp-session-id"), text, body: body_ }
  }
  const ask = (
    token: string,
    method: string,
    params: Record<string, unknown>,
    headers: Record<string, string> = {},
  ) => {
    const capabilities = { elicitation: { form: {} }, extensions: { [TASKS]: {} } }
    const _meta = {
      "io.modelcontextprotocol/protocolVersion": MODERN,
      "io.modelcontextprotocol/clientInfo": { name: "hostile", version: "1" },
      "io.modelcontextprotocol/clientCapabilities": capabilities,
    }
    const name = params["name"] ?? params["uri"] ?? params["taskId"]
    return post(
      token,
      { jsonrpc: "2.0", id: 1, method, params: { ...params, _meta } },
      {
        "mcp-protocol-version": MODERN,
        "mcp-method": method,
        ...(typeof name === "string" ? { "mcp-name": name } : {}),
        ...headers,
      },
    )
  }
  const initialize = {
    jsonrpc: "2.0",
    id: 1,
    method: "initialize",
    params: { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "x", version: "1" } },
  }
  const list = { jsonrpc: "2.0", id: 2, method: "tools/list", params: {} }

  it("has no use for another's session, nor for its own under another choice of tools", async () => {
    const { session, status } = await post(alice, initialize)
    expect(status).toBe(200)
    const headers = { "mcp-session-id": session ?? "", "mcp-protocol-version": "2025-11-25" }
    expect((await post(alice, list, headers)).status).toBe(200)
    expect((await post(bob, list, headers)).status).toBe(404)
    expect((await post(stranger, list, headers)).status).toBe(404)
    expect((await post(alice, list, headers, "?find=1")).status).toBe(404)
    expect((await post(alice, list, { ...headers, "mcp-session-id": "x" })).status).toBe(404)
    const end = (token: string) =>
      fetch(`${world.address}/mcp`, { method: "DELETE", headers: { authorization: `Bearer ${token}`, ...headers } })
    expect((await end(bob)).status).toBe(404)
    expect((await end(alice)).status).toBe(200)
    expect((await post(alice, list, headers)).status).toBe(404)
  })

  it("ends its own sessions by opening too many, and nobody else's", async () => {
    const theirs = await post(bob, initialize)
    const mine: string[] = []
    for (let made = 0; made < mcpLimits.sessionsOfOne.value + 4; made += 1)
      mine.push((await post(alice, initialize)).session ?? "")
    const good = async (token: string, session: string): Promise<boolean> =>
      (await post(token, list, { "mcp-session-id": session, "mcp-protocol-version": "2025-11-25" })).status === 200
    expect(await good(alice, mine[0] ?? "")).toBe(false)
    expect(await good(alice, mine.at(-1) ?? "")).toBe(true)
    expect(await good(bob, theirs.session ?? "")).toBe(true)
  })

  it("cannot answer for another, nor twice, nor for something else than was asked", async () => {
    const write = { name: "fixture.act", arguments: { verb: "write", args: ["notes/hostile.txt", "x"] } }
    const asked = await ask(alice, "tools/call", write)
    const state = asked.body.result?.["requestState"]
    expect(asked.body.result).toMatchObject({ resultType: "input_required" })
    const yes = { inputResponses: { keep: { action: "accept", content: { keep: true } } }, requestState: state }
    for (const other of [bob, stranger])
      expect((await ask(other, "tools/call", { ...write, ...yes })).body.error).toMatchObject({ code: -32602 })
    const other = { ...write, arguments: { verb: "write", args: ["notes/other.txt", "x"] } }
    expect((await ask(alice, "tools/call", { ...other, ...yes })).body.error).toMatchObject({ code: -32602 })
    expect(
      (await ask(alice, "tools/call", { ...write, ...yes, requestState: `${String(state)}x` })).body.error,
    ).toMatchObject({
      code: -32602,
    })
    const kept = await ask(alice, "tools/call", { ...write, ...yes })
    expect(kept.body.result).toMatchObject({ structuredContent: { effects: [{ committed: true }] } })
    const again = await ask(alice, "tools/call", { ...write, ...yes })
    expect(again.body.result).toMatchObject({ isError: true })
  })

  it("learns nothing of another's calls, held effects, receipts and tasks", async () => {
    const held = await ask(alice, "tools/call", {
      name: "fixture.act",
      arguments: { verb: "write", args: ["notes/secret.txt", "x"] },
    })
    const { body } = await (await world.as({ agent: false }))("GET", "/v1/approvals")
    const [{ id } = { id: "" }] = body["approvals"] as readonly { readonly id: string }[]
    expect(held.body.result).toMatchObject({ resultType: "input_required" })
    for (const kind of ["approvals", "calls", "receipts"]) {
      const uri = `caisson://${kind}/${id}`
      expect((await ask(alice, "resources/read", { uri })).body.result).toBeDefined()
      for (const other of [bob, stranger]) {
        const theirs = await ask(other, "resources/read", { uri })
        const none = await ask(other, "resources/read", { uri: `caisson://${kind}/01ARZ3NDEKTSV4RRFFQ69G5FAV` })
        expect(theirs.body.result).toBeUndefined()
        expect(theirs.body.error?.code).toBe(none.body.error?.code)
      }
    }
    for (const method of ["tasks/get", "tasks/update", "tasks/cancel"])
      expect((await ask(bob, method, { taskId: "made-up", inputResponses: {} })).body.error).toMatchObject({
        code: -32602,
      })
    expect((await ask(bob, "tools/call", { name: "__proto__", arguments: {} })).body.error).toMatchObject({
      code: -32602,
    })
  })

  it("cannot have a request read as another by its headers", async () => {
    const call = { name: "json.query", arguments: { filter: ".", document: 1 } }
    expect((await ask(alice, "tools/call", call, { "mcp-name": "files.list" })).status).toBe(400)
    expect((await ask(alice, "tools/call", call, { "mcp-method": "tools/list" })).status).toBe(400)
    expect((await ask(alice, "tools/call", call, { "mcp-protocol-version": "2025-11-25" })).status).toBe(400)
    // A session's id beside a request of the new era changes nothing of whose it is.
    expect((await ask(alice, "tools/call", call, { "mcp-session-id": "x" })).status).toBe(200)
  })

  it("is refused what would be kept of it as long as a session or a stream is open, and what is nested without end", async () => {
    const name = "x".repeat(mcpLimits.lastingChars.value)
    const { params } = initialize
    const long = await post(bob, { ...initialize, params: { ...params, clientInfo: { name, version: "1" } } })
    expect([long.status, long.session]).toEqual([413, null])
    const uris = Array.from({ length: 10_000 }, (_, at) => `notes:${at}-${"x".repeat(40)}`)
    expect((await ask(bob, "subscriptions/listen", { notifications: { resourceSubscriptions: uris } })).status).toBe(
      413,
    )
    let document: unknown = 1
    for (let depth = 0; depth < mcpLimits.depth.value; depth += 1) document = [document]
    const call = { name: "json.query", arguments: { filter: ".", document } }
    expect(await ask(bob, "tools/call", call)).toMatchObject({ status: 400, body: { error: { code: -32600 } } })
    const many = `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"a":${"[".repeat(400_000)}${"]".repeat(400_000)}}}`
    const headers = { authorization: `Bearer ${bob}`, "content-type": "application/json" }
    const told = await fetch(`${world.address}/mcp`, { method: "POST", headers, body: many })
    expect(told.status).toBe(400)
  })

  it("is refused what is too much: a batch, a list of subscriptions", async () => {
    const { session } = await post(bob, initialize)
    const headers = { "mcp-session-id": session ?? "", "mcp-protocol-version": "2025-11-25" }
    const batch = Array.from({ length: mcpLimits.batch.value + 1 }, (_, id) => ({ ...list, id }))
    expect((await post(bob, batch, headers)).status).toBe(400)
    const open: AbortController[] = []
    const listen = async (token: string): Promise<string> => {
      const leaving = new AbortController()
      open.push(leaving)
      const _meta = {
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientInfo": { name: "hostile", version: "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
      }
      const response = await fetch(`${world.address}/mcp`, {
        method: "POST",
        signal: leaving.signal,
        headers: {
          authorization: `Bearer ${token}`,
          "content-type": "application/json",
          accept: "application/json, text/event-stream",
          "mcp-protocol-version": MODERN,
          "mcp-method": "subscriptions/listen",
        },
        body: JSON.stringify({
          jsonrpc: "2.0",
          id: 1,
          method: "subscriptions/listen",
          params: { notifications: { toolsListChanged: true }, _meta },
        }),
      })
      const reader = response.body?.getReader()
      const { value } = (await reader?.read()) ?? {}
      return Buffer.from(value ?? []).toString()
    }
    for (let made = 0; made < mcpLimits.subscriptionsOfOne.value; made += 1)
      expect(await listen(bob)).toContain("acknowledged")
    expect(await listen(bob)).toContain("imit")
    expect(await listen(alice)).toContain("acknowledged")
    for (const leaving of open) leaving.abort()
    await expect.poll(() => listen(bob), { timeout: 30_000, interval: 500 }).toContain("acknowledged")
    for (const leaving of open) leaving.abort()
  })
})
