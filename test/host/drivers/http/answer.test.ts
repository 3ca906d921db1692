/** What comes back: statuses, streams, and services that do their worst. */
import { createServer as createRawServer, type Socket } from "node:net"
import { gzipSync } from "node:zlib"
import { describe, expect, it } from "vitest"
import { until } from "../../../egress-proxy/harness.ts"
import { ask, json, listenOn, serve } from "./world.ts"

const GET = "endpoint: /x, method: GET"
const KEY = "s3cret+value/1234"
const keyed = 'endpoint: /x, method: GET, headers: { Authorization: "Bearer ${secrets.KEY}" }'

/** A service that says what it likes to a request, byte for byte. */
const raw = async (speak: (socket: Socket) => void) => {
  const sockets = new Set<Socket>()
  const server = createRawServer((socket) => {
    sockets.add(socket)
    socket.on("error", () => undefined).on("close", () => sockets.delete(socket))
    socket.once("data", () => speak(socket))
  })
  const port = await listenOn(server)
  return {
    port,
    sockets,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

describe("a status", () => {
  // biome-ignore format: a table reads by rows
  it.each([
    [401, "auth_required", false],
    [403, "auth_required", false],
    [404, "upstream_error", false],
    [422, "upstream_error", false],
    [429, "rate_limited", undefined],
    [500, "upstream_error", true],
    [503, "upstream_error", true],
  ])("of %i is %s", async (status, code, retryable) => {
    await using service = await serve(json({ error: "why" }, status))
    const { outcome, facts } = await ask({ port: service.port, http: GET })
    expect(outcome).toMatchObject({ ok: false, code, details: { status, body: '{"error":"why"}' } })
    if (retryable === true) expect(outcome).toMatchObject({ retryable })
    expect(facts).toMatchObject({ response_status: status })
  })

  it.each([
    ["7", 7_000],
    [new Date(Date.now() + 3_600_000).toUTCString(), 3_600_000],
    ["999999999", 86_400_000],
    ["soon", undefined],
    ["-1", undefined],
  ])("of 429 that asks to wait (%s) says for how long", async (value, ms) => {
    await using service = await serve((_, response) => response.writeHead(429, { "retry-after": value }).end())
    const { outcome } = await ask({ port: service.port, http: GET })
    const waits = outcome.ok ? undefined : outcome.details["retry_after_ms"]
    if (ms === undefined) expect(waits).toBeUndefined()
    else expect(Math.abs((waits as number) - ms)).toBeLessThan(60_000)
  })

  it.each([500, 502, 503, 504])("of %i for a change that nobody may repeat leaves it in doubt", async (status) => {
    await using service = await serve(json({}, status))
    const tool = { mutates: [{ class: "network", scope: "*", text: "network:*" }] }
    const { outcome } = await ask({ port: service.port, http: "endpoint: /x", tool })
    expect(outcome).toMatchObject({ ok: false, retryable: false, details: { commit: "unknown" } })
    const again = await ask({ port: service.port, http: "endpoint: /x, idempotency_key_header: Key", tool })
    expect(again.outcome).toMatchObject({ ok: false, retryable: true })
  })

  it("that leads on to a place which refuses leaves a change in doubt: the first place was asked", async () => {
    await using service = await serve((request, response) =>
      request.url === "/x"
        ? response.writeHead(303, { location: "/done" }).end()
        : response.writeHead(request.method === "GET" ? 404 : 500).end(),
    )
    const tool = { mutates: [{ class: "network", scope: "*", text: "network:*" }] }
    const { outcome } = await ask({ port: service.port, http: "endpoint: /x", tool })
    expect(outcome).toMatchObject({ ok: false, retryable: false, details: { status: 404, commit: "unknown" } })
    const refused = await ask({ port: service.port, http: "endpoint: /done, method: GET", tool })
    expect(refused.outcome).toMatchObject({ ok: false, details: { status: 404 } })
    expect(refused.outcome).not.toMatchObject({ details: { commit: "unknown" } })
  })

  it("that the driver takes for an expired login is one, whatever it is", async () => {
    await using service = await serve((_, response) => response.writeHead(200, { "x-auth": "gone" }).end("{}"))
    const more = 'auth: { state: { env: [KEY] }, expiry: { detect: "header:X-Auth:gone" } }'
    expect((await ask({ port: service.port, http: GET })).outcome).toMatchObject({ ok: true })
    expect((await ask({ port: service.port, http: GET, more, secrets: { KEY: "k" } })).outcome).toMatchObject({
      code: "auth_required",
      details: { status: 200 },
    })
  })

  it("that is no refusal leaves a change in doubt, also where the driver takes it for an expired login", async () => {
    await using service = await serve((request, response) =>
      response.writeHead(request.url === "/seen" ? 303 : 200, { "x-auth": "gone" }).end("{}"),
    )
    const more = 'auth: { state: { env: [KEY] }, expiry: { detect: "header:X-Auth:gone" } }'
    const tool = { mutates: [{ class: "network", scope: "*", text: "network:*" }] }
    for (const [http, code] of [
      ["endpoint: /done", "auth_required"],
      ["endpoint: /seen", "upstream_error"],
    ] as const) {
      const { outcome } = await ask({ port: service.port, http, more, tool, secrets: { KEY: "k" } })
      expect(outcome).toMatchObject({ ok: false, code, details: { commit: "unknown" } })
      expect(outcome).not.toMatchObject({ undone: true })
    }
  })
})

describe("an answer", () => {
  it("is JSON, or text where the contract wants one, and nothing where there is none", async () => {
    await using service = await serve((request, response) => {
      if (request.url === "/text") response.end("plain")
      else if (request.url === "/none") response.writeHead(204).end()
      else response.end('{"a":[{"k":"x","v":1},{"k":"y","v":2}]}')
    })
    const at = async (http: string, type?: string) =>
      (await ask({ port: service.port, http, tool: { outputs: type === undefined ? {} : { type } } })).outcome
    expect(await at("endpoint: /text, method: GET", "string")).toMatchObject({ value: "plain" })
    expect(await at("endpoint: /none, method: GET")).toMatchObject({ value: null })
    expect(await at('endpoint: /json, method: GET, response_extract: "$.a[*].v"')).toMatchObject({ value: [1, 2] })
    expect(await at("endpoint: /json, method: GET, response_extract: \"$.a[?(@.k=='y')]\"")).toMatchObject({
      value: [{ v: 2 }],
    })
    expect(await at('endpoint: /json, method: GET, response_extract: "$.b"')).toMatchObject({
      code: "output_parse_failed",
    })
    expect(await at('endpoint: /text, method: GET, response_extract: "$.b"')).toMatchObject({
      code: "output_parse_failed",
    })
  })

  it("is undone of its encoding", async () => {
    await using service = await serve((_, response) =>
      response
        .writeHead(200, { "content-encoding": "gzip", "content-type": "application/json" })
        .end(gzipSync('{"a":1}')),
    )
    expect((await ask({ port: service.port, http: GET })).outcome).toMatchObject({ value: { a: 1 } })
  })

  it("that unfolds into more than may be kept is stopped there", async () => {
    const bomb = gzipSync(Buffer.alloc(50_000_000, "a"))
    await using service = await serve((_, response) =>
      response.writeHead(200, { "content-encoding": "gzip" }).end(bomb),
    )
    const { outcome } = await ask({ port: service.port, http: GET })
    expect(bomb.length).toBeLessThan(65_536)
    expect(outcome).toMatchObject({ ok: false, code: "limit_exceeded" })
  })

  it.each(["gzip, gzip", "zstd", "made-up"])("encoded as %s, which nobody asked for, is refused", async (encoding) => {
    await using service = await serve((_, response) =>
      response.writeHead(200, { "content-encoding": encoding }).end("x"),
    )
    expect((await ask({ port: service.port, http: GET })).outcome).toMatchObject({
      code: "upstream_error",
      details: { reason: "bad_encoding" },
    })
  })

  it("without end is stopped at the limit", async () => {
    await using service = await serve((_, response) => {
      const more = (): void => {
        if (!response.destroyed && response.write("x".repeat(16_384))) setImmediate(more)
        else response.once("drain", more)
      }
      more()
    })
    expect((await ask({ port: service.port, http: GET })).outcome).toMatchObject({ code: "limit_exceeded" })
  })

  it.each([
    ["before its head", ""],
    ["in its head", "HTTP/1.1 200 OK\r\nContent-Le"],
    ["in a body of known length", "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"],
    ["in a chunk", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{"],
    ["by being no HTTP", "SSH-2.0-x\r\n\r\n"],
    ["by a head of megabytes", `HTTP/1.1 200 OK\r\nX: ${"x".repeat(200_000)}\r\n\r\n`],
  ])("that breaks off %s is a failure that may be tried again", async (_, said) => {
    await using service = await raw((socket) => socket.end(said))
    expect((await ask({ port: service.port, http: GET })).outcome).toMatchObject({
      ok: false,
      code: "upstream_error",
      retryable: true,
      details: { sent: true },
    })
  })

  it("after interim answers without end does not come", async () => {
    await using service = await raw((socket) => {
      const more = (): void => {
        if (socket.destroyed) return
        socket.write("HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n".repeat(8))
        setImmediate(more)
      }
      more()
    })
    expect((await ask({ port: service.port, http: GET })).outcome).toMatchObject({
      code: "upstream_error",
      details: { reason: "too_many_interim" },
    })
  })

  it("after a few interim answers does", async () => {
    await using service = await raw((socket) =>
      socket.end("HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n1"),
    )
    expect((await ask({ port: service.port, http: GET })).outcome).toMatchObject({ ok: true, value: 1 })
  })

  it("that nobody waits for any longer is given up, and its connection with it", async () => {
    const cancel = new AbortController()
    await using service = await raw((socket) => {
      socket.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
      cancel.abort()
    })
    const { outcome } = await ask({ port: service.port, http: GET, signal: cancel.signal })
    expect(outcome.ok).toBe(false)
  })
})

describe("a service that is slow", () => {
  const quiet = async (first: string) => {
    const cancel = new AbortController()
    const service = await raw((socket) => {
      socket.write(first)
      cancel.abort()
    })
    return { service, signal: cancel.signal }
  }
  it.each([
    ["with its head", "http://api.test", ""],
    ["in the middle of its head", "http://api.test", "HTTP/1.1 200 OK\r\nX-A"],
    ["with its body", "http://api.test", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n1"],
    ["with its part of TLS", "https://api.test", ""],
  ])("%s is waited for no longer than the call is", async (_, base, first) => {
    const { service, signal } = await quiet(first)
    await using _service = service
    expect((await ask({ port: service.port, http: GET, base, signal })).outcome.ok).toBe(false)
    await until(() => service.sockets.size === 0, "the connection to be gone")
  })
})

describe("a secret that the service sends back", () => {
  it.each([
    ["as it is", `{"a":"${KEY}"}`],
    ["percent-encoded", JSON.stringify({ a: encodeURIComponent(KEY) })],
    ["in base64", JSON.stringify({ a: Buffer.from(`user:${KEY}`).toString("base64") })],
    ["with escapes of JSON here and there", `{"a":"${KEY.replace("c", "\\u0063")}"}`],
    ["as a key", `{"${KEY}":1}`],
  ])("%s is not in the value", async (_, body) => {
    await using service = await serve((_request, response) => response.end(body))
    const { outcome } = await ask({ port: service.port, http: keyed, secrets: { KEY } })
    const text = JSON.stringify(outcome)
    expect(outcome.ok).toBe(true)
    for (const spelled of [KEY, encodeURIComponent(KEY), Buffer.from(KEY).toString("base64").slice(4, 16)])
      expect(text).not.toContain(spelled)
  })

  it("is in no error, event or fact", async () => {
    await using service = await serve((request, response) => {
      if (request.url === "/x") response.writeHead(500).end(`no: ${request.headers.authorization}`)
      else response.writeHead(200, { "content-type": "text/event-stream" }).end(`data: {"a":"${KEY}"}\n\n`)
    })
    const failed = await ask({ port: service.port, http: keyed, secrets: { KEY } })
    expect(failed.outcome).toMatchObject({ ok: false, details: { status: 500 } })
    const streamed = await ask({
      port: service.port,
      http: keyed.replace("/x", "/y").concat(", streaming: { transport: sse }"),
      secrets: { KEY },
    })
    expect(streamed.events).toHaveLength(1)
    expect(JSON.stringify([failed, streamed])).not.toContain(KEY)
  })
})

describe("a stream", () => {
  const sse =
    'event: start\ndata: {"n":0}\n\n: comment\ndata: {"n":1}\r\n\r\nevent: other\ndata: two\ndata: lines\n\ndata: [DONE]\n\ndata: {"n":9}\n\n'
  it("of events is told as it comes, up to the event that ends it, however it is cut", async () => {
    await using service = await serve((_, response) => {
      response.writeHead(200, { "content-type": "text/event-stream" })
      const bytes = Buffer.from(sse)
      const next = (at: number): void => {
        if (at >= bytes.length) return void response.end()
        response.write(bytes.subarray(at, at + 3), () => setImmediate(next, at + 3))
      }
      next(0)
    })
    const http = 'endpoint: /x, method: GET, streaming: { transport: sse, event_field: data, terminator: "[DONE]" }'
    const { outcome, events } = await ask({ port: service.port, http, tool: { outputs: { type: "array" } } })
    const values = [{ n: 0 }, { n: 1 }, "two\nlines"]
    expect(outcome).toMatchObject({ ok: true, value: values, notes: [] })
    expect(events).toEqual(values.map((value) => ({ type: "progress", value })))
  })

  it("of events may be told by their name, and by a part of each", async () => {
    await using service = await serve((_, response) =>
      response.writeHead(200, { "content-type": "text/event-stream" }).end(sse),
    )
    const named = await ask({
      port: service.port,
      http: "endpoint: /x, method: GET, streaming: { transport: sse, event_field: start }",
    })
    expect(named.outcome).toMatchObject({ value: { n: 0 } })
    const part = await ask({
      port: service.port,
      http: 'endpoint: /x, method: GET, response_extract: "$.n", streaming: { transport: sse, terminator: nothing }',
      tool: { outputs: { type: "string" } },
    })
    expect(part.outcome).toMatchObject({ value: "019", notes: [expect.stringContaining("without the event")] })
  })

  it("of pieces is told piece by piece, and read as a whole", async () => {
    await using service = await serve((_, response) => {
      response.write('{"text":"gr')
      setImmediate(() => response.end('\u00fc\u00df"}'))
    })
    const http = 'endpoint: /x, method: GET, response_extract: "$.text", streaming: { transport: chunked }'
    const { outcome, events } = await ask({ port: service.port, http })
    expect(outcome).toMatchObject({ ok: true, value: "gr\u00fc\u00df" })
    expect(events.map((event) => (event.type === "progress" ? event.value : "")).join("")).toBe(
      '{"text":"gr\u00fc\u00df"}',
    )
  })

  it("of lines is told line by line", async () => {
    await using service = await serve((_, response) => response.end('{"n":1}\n\n{"n":2}\r\n{"n":3}'))
    const { outcome, events } = await ask({
      port: service.port,
      http: "endpoint: /x, method: GET, streaming: { transport: ndjson }",
      tool: { outputs: { type: "array" } },
    })
    expect(outcome).toMatchObject({ value: [{ n: 1 }, { n: 2 }, { n: 3 }] })
    expect(events).toHaveLength(3)
  })

  it("that breaks off, or never ends, is a failure", async () => {
    await using broken = await raw((socket) => {
      socket.write(
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n9\r\ndata: 1\n\n\r\n",
      )
      socket.end()
    })
    const http = "endpoint: /x, method: GET, streaming: { transport: sse }"
    expect((await ask({ port: broken.port, http })).outcome).toMatchObject({ code: "upstream_error" })
    await using endless = await serve((_, response) => {
      response.writeHead(200, { "content-type": "text/event-stream" })
      const more = (): void =>
        void (response.destroyed || response.write("data: xxxxxxxxxxxxxxxx\n\n", () => setImmediate(more)))
      more()
    })
    expect((await ask({ port: endless.port, http, outputBytes: 1_000 })).outcome).toMatchObject({
      code: "limit_exceeded",
    })
  })

  it("that comes in one piece after all is read as one", async () => {
    await using service = await serve(json({ n: 1 }))
    const { outcome, events } = await ask({
      port: service.port,
      http: "endpoint: /x, method: GET, streaming: { transport: sse }",
    })
    expect([outcome, events]).toMatchObject([{ value: { n: 1 } }, []])
  })
})
