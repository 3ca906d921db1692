/** Servers that run elsewhere, over real TLS and a real proxy: streamable HTTP and the older sse. */
import { notInvited } from "../../../../src/host/call/judging/second-run.ts"
import type { ServerResponse } from "node:http"
import { getCACertificates, setDefaultCACertificates } from "node:tls"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { createEgressProxy } from "../../../../src/egress-proxy/index.ts"
import { createCallAuthority } from "../../../../src/egress-proxy/tls/authority.ts"
import type { EventBody } from "../../../../src/host/events.ts"
import type { Desk, Review } from "../../../../src/host/drivers/kind.ts"
import { outletFetch } from "../../../../src/host/drivers/mcp/outlet-fetch.ts"
import { mcpKind } from "../../../../src/host/drivers/mcp/kind.ts"
import type { JsonObject } from "../../../../src/manifest/types.ts"
import { asDriver, load } from "../../../manifest/from-text.ts"
import { toolOf } from "../../call/values.ts"
import { noFiles, type Service, serve, unpaced } from "../http/world.ts"

const roots = getCACertificates("default")
const authority = createCallAuthority({ names: ["mcp.test"] })
const { key, cert } = authority.leafFor("mcp.test")
beforeAll(() => setDefaultCACertificates([...roots, authority.caPem]))
afterAll(() => setDefaultCACertificates(roots))

interface Message {
  readonly id?: number | string
  readonly method: string
  readonly params: JsonObject
}
type Reply = (message: Message, response: ServerResponse) => void

const TOOL = { name: "do", description: "Does it.", inputSchema: { type: "object", properties: {} } }
const send = (response: ServerResponse, id: Message["id"], result: object): void => {
  response.writeHead(200, { "content-type": "application/json" })
  response.end(JSON.stringify({ jsonrpc: "2.0", id, result: { resultType: "complete", ...result } }))
}

/** A server of the newer era; `call` answers the call of its tool. The first `broken` requests are broken off. */
const streamable = (call: Reply, tls = { key: String(key), cert: String(cert) }, broken = 0) => {
  let made: Service | undefined
  let left = broken
  const answer = (response: ServerResponse): void => {
    left -= 1
    if (left >= 0) return void response.destroy()
    const message = JSON.parse(made?.bodies.at(-1) || "{}") as Message
    const cached = { ttlMs: 0, cacheScope: "private" }
    if (message.method === "server/discover")
      return send(response, message.id, { supportedVersions: ["2026-07-28"], capabilities: { tools: {} }, ...cached })
    if (message.method === "tools/list") return send(response, message.id, { tools: [TOOL], ...cached })
    return call(message, response)
  }
  return serve((_request, response) => answer(response), tls).then((service) => (made = service))
}
const done: Reply = ({ id }, response) => send(response, id, { content: [{ type: "text", text: "done" }] })

interface Asked {
  readonly port: number
  readonly transport?: string
  readonly path?: string
  readonly egress?: readonly string[]
  readonly review?: Review
  readonly signal?: AbortSignal
  readonly more?: string
  readonly pace?: Desk["pace"]
  /** what its contract says that it changes */
  readonly changes?: Parameters<typeof toolOf>[0]
}

const ask = async ({
  more = "",
  port,
  transport = "http",
  path = "/mcp",
  egress,
  review,
  signal,
  changes = {},
  pace = unpaced,
}: Asked) => {
  const driver = asDriver(
    load(
      "DRIVER.md",
      `name: x\nid: far\ndescription: d\nversion: 1.0.0\nkind: mcp\nserver: { kind: remote, url: "https://mcp.test${path}" }\ntransport: ${transport}\n${more}network: { egress: ["mcp.test"] }\nimplements: [{ tool: t.one, version: ^1.0.0, metadata: { mcp: { tool_name: do } } }]`,
      "strict",
    ),
  )
  const tool = toolOf({ id: "t.one", inputs: { type: "object" }, outputs: { type: "string" }, ...changes })
  const { binding } = mcpKind.bind(driver, 0, tool, driver.implements[0] as never)
  const of = { tool, driver: { key: "far@1", contract: driver }, binding, input: {}, context: {}, operation: "o" }
  const made = mcpKind.command(of)
  if (!made.ok || made.value.run !== "hosted") throw new Error("not hosted")
  await using proxy = await createEgressProxy({
    egress: egress ?? ["mcp.test"],
    services: { "mcp.test": { address: "127.0.0.1", port } },
  })
  const events: EventBody[] = []
  const desk: Desk = {
    signal: signal ?? new AbortController().signal,
    outputBytes: 65_536,
    tell: (event) => void events.push(event),
    note: () => undefined,
    review: review ?? (async () => ({ ok: true, value: { digest: "sha256:0", first: false } })),
    secret: async () => undefined,
    layer: noFiles,
    pace,
    outlet: { connect: (to) => proxy.dial(to) },
  }
  const outcome = notInvited({ tool, command: made.value }, await made.value.act(desk))
  return { outcome, events, denied: proxy.denials().map(({ reason, target }) => `${reason} ${target}`) }
}

describe("a server over streamable HTTP", () => {
  it("that answers with a status that is none is at fault itself, and is told so", async () => {
    const odd: Reply = (_message, response) =>
      void response.socket?.end("HTTP/1.1 999 Odd\r\ncontent-length: 2\r\n\r\n{}")
    await using service = await streamable(odd)
    const { outcome } = await ask({ port: service.port })
    expect(outcome).toMatchObject({
      ok: false,
      code: "upstream_error",
      message: expect.stringContaining("999") as string,
    })
  })

  it("is asked what it is, and then called", async () => {
    await using service = await streamable(done)
    expect((await ask(service)).outcome).toMatchObject({ ok: true, value: "done" })
    const methods = service.bodies.map((body) => (JSON.parse(body) as Message).method)
    expect(methods).toEqual(["server/discover", "tools/list", "tools/call"])
  })
  it("is not called where what it says was not accepted", async () => {
    await using service = await streamable(done)
    const review: Review = async () => ({ ok: false, code: "policy_violation", message: "changed", details: {} })
    expect((await ask({ ...service, review })).outcome).toMatchObject({ ok: false, code: "policy_violation" })
    expect(service.bodies.join("")).not.toContain("tools/call")
  })
  it("tells how far it is, in events of its answer", async () => {
    await using service = await streamable(({ id, params }, response) => {
      response.writeHead(200, { "content-type": "text/event-stream" })
      const { progressToken } = params["_meta"] as { progressToken: number }
      const say = (message: object): void =>
        void response.write(`data: ${JSON.stringify({ jsonrpc: "2.0", ...message })}\n\n`)
      say({ method: "notifications/progress", params: { progressToken, progress: 1, total: 2 } })
      say({ id, result: { resultType: "complete", content: [{ type: "text", text: "done" }] } })
      response.end()
    })
    const { outcome, events } = await ask(service)
    expect(outcome).toMatchObject({ ok: true, value: "done" })
    expect(events).toEqual([{ type: "progress", value: { progress: 1, total: 2 } }])
  })
  it("that nobody declared or the operator does not allow gets no request", async () => {
    await using service = await streamable(done)
    const { outcome, denied } = await ask({ ...service, egress: ["elsewhere.test"] })
    expect(outcome).toMatchObject({ ok: false, code: "egress_denied" })
    expect(denied).toContain("host_not_allowed mcp.test:443")
    expect(service.requests).toEqual([])
  })
  it("that does not prove its name gets no request", async () => {
    const other = createCallAuthority({ names: ["mcp.test"] }).leafFor("mcp.test")
    await using service = await streamable(done, { key: String(other.key), cert: String(other.cert) })
    expect((await ask(service)).outcome).toMatchObject({ ok: false, code: "upstream_error", details: { sent: false } })
    expect(service.requests).toEqual([])
  })
  it.each([
    [401, "auth_required"],
    [429, "rate_limited"],
    [500, "upstream_error"],
  ])("that answers with %i is told as %s", async (status, code) => {
    await using service = await streamable((_message, response) => response.writeHead(status).end("no"))
    expect((await ask(service)).outcome).toMatchObject({ ok: false, code, details: { status } })
  })
  it.each([
    [429, "rate_limited"],
    [503, "upstream_error"],
  ])("that asks by %i to be left alone says for how long, and is", async (status, code) => {
    await using service = await streamable((_message, response) =>
      response.writeHead(status, { "retry-after": "7" }).end(),
    )
    const alone: number[] = []
    const pace: Desk["pace"] = { ...unpaced, leaveAlone: async (ms) => void alone.push(ms) }
    const { outcome } = await ask({ ...service, pace })
    expect(outcome).toMatchObject({ ok: false, code, details: { status, retry_after_ms: 7_000 } })
    expect(alone).toEqual([7_000])
  })
  it("that is to be left alone for longer than anybody waits gets no request, and has done nothing", async () => {
    await using service = await streamable(done)
    const early = { ok: false, code: "rate_limited", message: "later", details: { sent: false } } as const
    const changes = { mutates: [{ class: "external", scope: "orders" }] as never, idempotent: false }
    const { outcome } = await ask({ ...service, changes, pace: { ...unpaced, turn: async () => early } })
    expect(outcome).toMatchObject({ ok: false, code: "rate_limited" })
    expect(outcome).not.toMatchObject({ details: { commit: "unknown" } })
    expect(service.requests).toEqual([])
  })
  it("that redirects to another place is not followed there", async () => {
    await using service = await streamable((_message, response) =>
      response.writeHead(307, { location: "https://elsewhere.test/mcp" }).end(),
    )
    const { outcome, denied } = await ask(service)
    expect(outcome).toMatchObject({ ok: false })
    expect(denied).toEqual([])
  })
  it("that breaks off before it has said what it is is asked again, as often as its driver says", async () => {
    await using service = await streamable(done, undefined, 2)
    expect((await ask({ ...service, more: "connection_options: { max_retries: 1 }\n" })).outcome).toMatchObject({
      ok: false,
      details: { during: "connect" },
    })
    await using other = await streamable(done, undefined, 2)
    expect((await ask({ ...other, more: "connection_options: { max_retries: 2 }\n" })).outcome).toMatchObject({
      ok: true,
    })
  })
  it.each<[string, Parameters<typeof streamable>[0], object]>([
    [
      "breaks off",
      (_, response) => void response.destroy(),
      { ok: false, retryable: false, details: { commit: "unknown" } },
    ],
    [
      "fails",
      (_, response) => void response.writeHead(502).end(),
      { ok: false, code: "upstream_error", retryable: false, details: { commit: "unknown", status: 502 } },
    ],
    [
      "throws while it does it",
      ({ id }, response) => {
        response.writeHead(200, { "content-type": "application/json" })
        response.end(JSON.stringify({ jsonrpc: "2.0", id, error: { code: -32603, message: "half done" } }))
      },
      { ok: false, code: "upstream_error", retryable: false, details: { commit: "unknown", rpc_code: -32603 } },
    ],
  ])(
    "that %s when it was asked to change something has perhaps done it, and is not to be asked again",
    async (_, answer, expected) => {
      await using service = await streamable(answer)
      const mutates = [{ class: "external", scope: "orders" }] as never
      expect((await ask({ ...service, changes: { mutates, idempotent: false } })).outcome).toMatchObject(expected)
      const again = (await ask({ ...service, changes: { mutates, idempotent: true } })).outcome
      expect(again).toMatchObject({ details: { commit: "unknown" } })
      expect(again).not.toMatchObject({ retryable: false })
      expect((await ask({ ...service, changes: { mutates: [] } })).outcome).not.toMatchObject({
        details: { commit: "unknown" },
      })
    },
  )
  it("that was not asked yet, or refused, has done nothing", async () => {
    await using service = await streamable((_, response) => void response.writeHead(429).end())
    const changes = { mutates: [{ class: "external", scope: "orders" }] as never, idempotent: false }
    expect((await ask({ ...service, changes })).outcome).not.toMatchObject({ details: { commit: "unknown" } })
    const { outcome } = await ask({ ...service, changes, egress: ["elsewhere.test"] })
    expect(outcome).not.toMatchObject({ details: { commit: "unknown" } })
  })
  it("that answers with what is nested too deeply to be read is left, and has perhaps done it", async () => {
    const deep = `${"[".repeat(5_000)}${"]".repeat(5_000)}`
    await using service = await streamable(({ id }, response) => {
      const text = JSON.stringify({
        jsonrpc: "2.0",
        id,
        result: { resultType: "complete", content: [], structuredContent: { at: 0 } },
      })
      response.writeHead(200, { "content-type": "application/json" }).end(text.replace('"at":0', `"at":${deep}`))
    })
    const changes = {
      mutates: [{ class: "external", scope: "orders" }] as never,
      idempotent: false,
      outputs: { type: "object" },
    }
    const { outcome } = await ask({ ...service, changes })
    expect(outcome).toMatchObject({ ok: false, code: "limit_exceeded", details: { limit: "mcp", commit: "unknown" } })
  })
  it("that answers with another place to look at has perhaps done it", async () => {
    await using service = await streamable((_, response) => void response.writeHead(303, { location: "/done" }).end())
    const changes = { mutates: [{ class: "external", scope: "orders" }] as never, idempotent: false }
    expect((await ask({ ...service, changes })).outcome).toMatchObject({ details: { commit: "unknown", status: 303 } })
  })
  it("that took the call, and wants a login for the rest of its answer, has perhaps done it", async () => {
    let asked: string | undefined
    await using service = await streamable((message, response) => {
      if (message.method === undefined || asked !== undefined) return void response.writeHead(401).end()
      asked = message.method
      response.writeHead(200, { "content-type": "text/event-stream" })
      response.end("id: 1\nretry: 10\ndata:\n\n")
    })
    const changes = { mutates: [{ class: "external", scope: "orders" }] as never, idempotent: false }
    const { outcome } = await ask({ ...service, changes, more: "connection_options: { timeout_ms: 2000 }\n" })
    expect(service.requests.map(({ method }) => method)).toContain("GET")
    expect(outcome).toMatchObject({ ok: false, retryable: false, details: { commit: "unknown" } })
    expect(outcome).not.toMatchObject({ code: "auth_required" })
  })
  it("that breaks off is told, and a call that nobody waits for is over", async () => {
    await using broken = await streamable((_message, response) => response.destroy())
    expect((await ask(broken)).outcome).toMatchObject({ ok: false, code: "upstream_error" })
    const cancel = new AbortController()
    await using silent = await streamable(() => cancel.abort())
    expect((await ask({ ...silent, signal: cancel.signal })).outcome).toMatchObject({ ok: false, code: "cancelled" })
  })
})

/** A server of the older transport: answers come on the stream that was opened first. */
const sse = (endpoint: string) => {
  let stream: ServerResponse | undefined
  let made: Service | undefined
  return serve(
    (request, response) => {
      if (request.method === "GET") {
        stream = response
        response.writeHead(200, { "content-type": "text/event-stream" })
        response.write(`event: endpoint\ndata: ${endpoint}\n\n`)
        return
      }
      response.writeHead(202).end()
      const { id, method, params } = JSON.parse(made?.bodies.at(-1) ?? "{}") as Message
      if (id === undefined) return
      const say = (result: object): void =>
        void stream?.write(`event: message\ndata: ${JSON.stringify({ jsonrpc: "2.0", id, ...result })}\n\n`)
      if (method === "initialize") {
        const { protocolVersion } = params as { protocolVersion: string }
        return say({
          result: { protocolVersion, capabilities: { tools: {} }, serverInfo: { name: "x", version: "1" } },
        })
      }
      if (method === "tools/list") return say({ result: { tools: [TOOL] } })
      if (method === "tools/call") return say({ result: { content: [{ type: "text", text: "done" }] } })
      return say({ error: { code: -32601, message: "no such method" } })
    },
    { key: String(key), cert: String(cert) },
  ).then((service) => (made = service))
}

describe("a server over sse", () => {
  it("is spoken with on its stream", async () => {
    await using service = await sse("/messages?session=1")
    const { outcome } = await ask({ ...service, transport: "sse", path: "/sse" })
    expect(outcome).toMatchObject({ ok: true, value: "done" })
    expect(service.requests.map(({ method, url }) => `${method} ${url}`)).toContain("POST /messages?session=1")
  })
  it("that names another place for its messages gets none", async () => {
    await using service = await sse("https://elsewhere.test/messages")
    const { outcome, denied } = await ask({ ...service, transport: "sse", path: "/sse" })
    expect(outcome).toMatchObject({ ok: false })
    expect([service.bodies.join(""), denied]).toEqual(["", []])
  })
})

describe("the client's way out", () => {
  const desk = (connect: Desk["outlet"]["connect"]): Desk => ({
    signal: new AbortController().signal,
    outputBytes: 65_536,
    tell: () => undefined,
    note: () => undefined,
    review: () => Promise.reject(new Error("nothing here is reviewed")),
    secret: async () => undefined,
    layer: noFiles,
    pace: unpaced,
    outlet: { connect },
  })
  it.each(["https://elsewhere.test/mcp", "http://mcp.test/mcp", "https://mcp.test:8443/mcp"])(
    "does not lead to %s, whoever asks",
    async (to) => {
      const dialled: string[] = []
      const way = outletFetch(
        desk(({ host }) => {
          dialled.push(host)
          return Promise.reject(new Error("dialled"))
        }),
        new URL("https://mcp.test/mcp"),
      )
      await expect(way.fetch(to)).rejects.toThrow()
      expect(way.failure()).toMatchObject({ code: "egress_denied" })
      expect(dialled).toEqual([])
    },
  )
  it("carries so many bytes back and no more, over all answers", async () => {
    await using service = await serve((_request, response) => response.end("x".repeat(600)), {
      key: String(key),
      cert: String(cert),
    })
    await using proxy = await createEgressProxy({
      egress: ["mcp.test"],
      services: { "mcp.test": { address: "127.0.0.1", port: service.port } },
    })
    const way = outletFetch(
      desk((to) => proxy.dial(to)),
      new URL("https://mcp.test/mcp"),
      { most: 1_000 },
    )
    const text = async (): Promise<string> => (await way.fetch("https://mcp.test/mcp")).text()
    expect(await text()).toHaveLength(600)
    await expect(text()).rejects.toThrow()
    expect(way.failure()).toMatchObject({ code: "limit_exceeded" })
  })
})
