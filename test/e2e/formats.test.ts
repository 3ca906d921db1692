/** Tools written to AML and ARuntime, run as they are: through a real host, in the real sandbox. */
import { existsSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { processCaller, readReceipts } from "../../src/host/index.ts"
import type { Envelope } from "../../src/host/types.ts"
import { type FormatsWorld, openFormatsWorld } from "./formats-world.ts"

const annotations = `annotations:
  note-write: { mutates: ["workspace:/notes/*"] }
  note-remove: { mutates: ["workspace:/notes/*"] }
  user-disable: { mutates: ["external:directory"] }
  mail-send: { approval: always }
`
const code = (envelope: Envelope): string => (envelope.ok ? "ok" : envelope.error.code)
const detailsOf = (envelope: Envelope): Record<string, unknown> => (envelope.ok ? {} : envelope.error.details)

describe("with the operator's annotations", () => {
  let world: FormatsWorld
  beforeAll(async () => {
    world = await openFormatsWorld({ config: annotations })
    const set = await world.host.secrets.set("orders-token", "token-of-orders", { shared: true })
    expect(set.ok).toBe(true)
    await world.host.secrets.set("prod-pay-key", "key-of-payments", { shared: true })
    await world.host.secrets.set("mail-token", "token-of-mail", { shared: true })
  }, 60_000)
  afterAll(async () => world[Symbol.asyncDispose]())

  describe("each of the seven classes of ARuntime runs, its effects judged", () => {
    it("read-only", async () => {
      expect(await world.call("note-read", { name: "old" }, { approved: false })).toMatchObject({
        ok: true,
        value: "old\n",
        effects: [],
      })
    })
    it("reversible write: asked about by its effects, and committed with a yes", async () => {
      const held = await world.call("note-write", { name: "new" }, { approved: false })
      expect(code(held)).toBe("approval_required")
      expect(existsSync(join(world.workspace, "notes/new.txt"))).toBe(false)
      const done = await world.call("note-write", { name: "new" })
      expect(done).toMatchObject({
        ok: true,
        effects: [{ kind: "create", path: "notes/new.txt", declared: true, committed: true }],
      })
      expect(readFileSync(join(world.workspace, "notes/new.txt"), "utf8")).toBe("new\n")
    })
    it("irreversible: asked about before it runs", async () => {
      writeFileSync(join(world.workspace, "notes/away.txt"), "x")
      const asked = await world.call("note-remove", { name: "away" }, { approved: false })
      expect(asked).toMatchObject({ ok: false, error: { code: "approval_required" }, effects: [] })
      expect(await world.call("note-remove", { name: "away" })).toMatchObject({
        ok: true,
        effects: [{ kind: "delete", path: "notes/away.txt", committed: true }],
      })
    })
    it.each([
      ["financial/high-impact", "invoice-pay", "pay acme\n"],
      ["external communication", "mail-send", "mail acme\n"],
      ["code execution", "script-run", "script acme\n"],
      ["administrative", "user-disable", "disable acme\n"],
    ])("%s: asked about before it runs, and run with a yes", async (_class, tool, value) => {
      const asked = await world.call(tool, { name: "acme" }, { approved: false })
      expect(asked).toMatchObject({
        ok: false,
        error: { code: "approval_required", details: { spelled: "approval.required" } },
      })
      expect(await world.call(tool, { name: "acme" })).toMatchObject({ ok: true, value })
    })
    it.each(["note-read", "note-write", "note-remove", "invoice-pay", "mail-send", "script-run"])(
      "%s that strays changes nothing",
      async (tool) => {
        const strayed = await world.call(tool, { name: "stray" })
        expect(strayed).toMatchObject({
          ok: false,
          error: { code: "undeclared_write", details: { spelled: "permission.denied" } },
        })
        expect(existsSync(join(world.workspace, "stray.txt"))).toBe(false)
      },
    )
  })

  it("limits how often a contract is called, and says for how long", async () => {
    const ends = [
      await world.call("user-disable", { name: "a" }),
      await world.call("user-disable", { name: "b" }),
      await world.call("user-disable", { name: "c" }),
    ]
    const last = ends.at(-1) as Envelope
    expect(last).toMatchObject({
      ok: false,
      error: { code: "rate_limited", details: { reason: "rate_limit", spelled: "rate.exceeded" } },
    })
    expect(detailsOf(last)["retry_after_ms"]).toBeGreaterThan(0)
  })

  it("names the tool that undoes what was done half-way, and tells it in ARuntime's word", async () => {
    expect(await world.call("note-write", { name: "half" })).toMatchObject({
      ok: false,
      error: { code: "partial_effect", details: { spelled: "partial-effect", compensation: { tool: "note-remove" } } },
    })
    expect(code(await world.call("note-remove", { name: "undone" }))).toBe("compensation_failed")
  })

  it("keeps the data's class and digests of the audited fields in the receipt, and no value", async () => {
    const { call } = await world.call("note-read", { name: "old" })
    const found = readReceipts(world.data, { call })[0] as unknown as {
      metadata: { tool: Record<string, unknown> }
    }
    expect(found.metadata.tool).toMatchObject({
      data_classification: "internal",
      audit: { name: expect.stringMatching(/^sha256:/) as string },
    })
  })

  it("AML rest-api: sends the path, the query and the secret, and tells what the author says of a failure", async () => {
    world.answer((_request, response) => {
      response.setHeader("content-type", "application/json")
      response.end('{"order":"A/1","total":3}')
    })
    expect(await world.call("order-lookup", { order: "A/1", detail: "full" }, { approved: false })).toMatchObject({
      ok: true,
      value: { total: 3 },
    })
    expect(world.requests.at(-1)).toMatchObject({
      method: "GET",
      url: "/v1/orders/A%2F1?detail=full",
      headers: { authorization: "Bearer token-of-orders" },
    })
    world.answer((_request, response) => void response.writeHead(404).end("{}"))
    expect(await world.call("order-lookup", { order: "none" })).toMatchObject({
      ok: false,
      error: {
        code: "upstream_error",
        hint: "Ask the customer for the number again",
        retryable: false,
        details: { status: 404 },
      },
    })
  })

  it("AML rest-api: tries again after the statuses it names, and after no other", async () => {
    const statuses = async (status: number): Promise<number> => {
      const before = world.requests.length
      world.answer((_request, response) => void response.writeHead(status).end("{}"))
      await world.call("order-lookup", { order: "x" })
      return world.requests.length - before
    }
    expect(await statuses(503)).toBe(2)
    expect(await statuses(500)).toBe(1)
  })

  it("AML action: asked about, sent once, its key in its header, and told that it is deprecated", async () => {
    world.answer((_request, response) => {
      response.setHeader("content-type", "application/json")
      response.end('{"refund":"r1"}')
    })
    const before = world.requests.length
    expect(code(await world.call("refund-create", { order: "7", cents: 5 }, { approved: false }))).toBe(
      "approval_required",
    )
    expect(world.requests).toHaveLength(before)
    const done = await world.call("refund-create", { order: "7", cents: 5 })
    expect(done).toMatchObject({ ok: true, notes: [expect.stringContaining("deprecated") as string] })
    expect(world.requests.at(-1)).toMatchObject({
      method: "POST",
      url: "/orders/7/refunds",
      headers: { "x-api-key": "key-of-payments" },
    })
    expect(JSON.parse(world.requests.at(-1)?.body ?? "")).toEqual({ cents: 5 })
  })

  it("AML mcp: calls the server's tool", async () => {
    world.answer((_request, response, body) => {
      const { id, method, params } = JSON.parse(body === "" ? "{}" : body) as {
        id?: number
        method?: string
        params?: { arguments?: unknown }
      }
      const result =
        method === "initialize"
          ? { protocolVersion: "2025-11-25", capabilities: { tools: {} }, serverInfo: { name: "t", version: "1" } }
          : method === "tools/list"
            ? { tools: [{ name: "search_tickets", inputSchema: { type: "object" } }] }
            : { content: [], structuredContent: { found: params?.arguments ?? null } }
      if (id === undefined) return void response.writeHead(202).end()
      response.setHeader("content-type", "application/json")
      response.end(JSON.stringify({ jsonrpc: "2.0", id, result }))
    })
    expect(await world.call("ticket-search", { words: "late" }, { approved: false })).toMatchObject({
      ok: true,
      value: { found: { words: "late" } },
    })
  })

  it("AML function: served by a driver that implements it", async () => {
    expect(await world.call("word-count", { text: "one two" }, { approved: false })).toMatchObject({
      ok: true,
      value: { words: 2 },
      driver: "format-desk@1",
    })
  })

  it.each(["invoice-render", "order-event"])("AML %s is refused with the reason", async (tool) => {
    const end = await world.call(tool, { invoice: "1", order: "1" })
    expect(end).toMatchObject({ ok: false, error: { code: "no_route", class: "routing" } })
    expect(JSON.stringify(end)).toContain("DRIVER.md")
  })
})

describe("without a word of the operator", () => {
  let world: FormatsWorld
  beforeAll(async () => {
    world = await openFormatsWorld({
      unvouched: true,
      config: annotations,
      edit: (put) => {
        put("aruntime/note-read.tool.json", (text) =>
          JSON.stringify({
            ...(JSON.parse(text) as object),
            deprecation: { removal: "2020-01-01", replacement: "note_see" },
          }),
        )
        put("aml/order-lookup.tool.md", (text) =>
          text.replace("base_url: https://orders.shop.test/v1", "base_url: https://127.0.0.1/v1"),
        )
        put("aml/word-count.tool.md", (text) => text.replace("status: active", "status: disabled"))
        put("desk/DRIVER.md", (text) => text.replace("tool: word-count, version", "tool: word-count, version"))
      },
    })
    await world.host.secrets.set("prod-pay-key", "key-of-payments", { shared: true })
    await world.host.secrets.set("orders-token", "token-of-orders", { shared: true })
  }, 60_000)
  afterAll(async () => world[Symbol.asyncDispose]())

  it("what a write may change is closed, also where an annotation names its id", async () => {
    expect(code(await world.call("note-write", { name: "new" }))).toBe("undeclared_write")
    expect(existsSync(join(world.workspace, "notes/new.txt"))).toBe(false)
  })
  it("a contract that was removed is refused by the host's clock, and names what took its place", async () => {
    const context = { now: "2019-01-01" }
    const end = await world.host.call(
      { tool: "note-read", input: { name: "old" }, workspace: world.workspace, context },
      { caller: processCaller("alice") },
    )
    expect(end).toMatchObject({
      ok: false,
      error: { code: "tool_unavailable", details: { reason: "removed", replacement: "note-see" } },
    })
  })
  it("a disabled one is refused", async () => {
    expect(await world.call("word-count", { text: "x" })).toMatchObject({
      ok: false,
      error: { details: { reason: "disabled" } },
    })
  })
  it("a stranger's contract gets no secret that was not set for its driver", async () => {
    const before = world.requests.length
    expect(await world.call("refund-create", { order: "1", cents: 1 })).toMatchObject({
      ok: false,
      error: { code: "auth_required", hint: expect.stringContaining("--driver refund-create-driver@2") as string },
    })
    expect(world.requests).toHaveLength(before)
  })
  it("a private address is not reached, whatever the contract says", async () => {
    await world.host.secrets.set("orders-token", "x", { shared: true, driver: "order-lookup-driver@1" })
    const before = world.requests.length
    const end = await world.call("order-lookup", { order: "1" })
    expect(end.ok).toBe(false)
    expect(world.requests).toHaveLength(before)
  })
})
