import { once } from "node:events"
import { gzipSync } from "node:zlib"
import { describe, expect, it, vi } from "vitest"
import type { ReasonCode } from "../../../src/egress-proxy/policy/reasons.ts"
import type { InterceptOptions } from "../../../src/egress-proxy/tls/intercept.ts"
import { clientFrame } from "../secrets/websocket-frame.ts"
import { header, name, secrets, type Seen, token, upstreamServer, value, world } from "./intercept-world.ts"

describe("a request that passes", () => {
  it("reaches the upstream with the secret in its header, and is answered", async () => {
    const upstream = await upstreamServer((_, response) => {
      response.writeHead(201, [
        "Set-Cookie",
        "a=1",
        "Set-Cookie",
        "b=2",
        "X-Caisson-Denied",
        "forged",
        "Keep-Alive",
        "timeout=9",
        "X-Kept",
        "yes",
      ])
      response.end("made")
    })
    const { send, codes } = await world({ upstreamPort: upstream.port })
    const answer = await send({
      path: "/a?b=c",
      headers: {
        Authorization: `Bearer ${token}`,
        "x-caisson-forged": "1",
        "Proxy-Authorization": "x",
        Via: "1.0 forged",
        TE: "trailers",
        "X-Keep": "1",
      },
    })
    expect(answer).toMatchObject({ status: 201, body: "made" })
    expect(answer.headers).toMatchObject({ "set-cookie": ["a=1", "b=2"], "x-kept": "yes" })
    expect(answer.headers["x-caisson-denied"]).toBeUndefined()
    const [seen] = upstream.seen as [Seen]
    expect(seen.url).toBe("/a?b=c")
    expect(header(seen.raw, "authorization")).toEqual([`Bearer ${value}`])
    expect(header(seen.raw, "host")).toEqual([name])
    expect(header(seen.raw, "x-keep")).toEqual(["1"])
    expect(["x-caisson-forged", "proxy-authorization", "te", "via"].flatMap((key) => header(seen.raw, key))).toEqual([])
    expect(codes).toEqual(["allowed"])
  })

  it.each([100, 300_000])("carries a body of %d bytes both ways, with a length and chunked", async (size) => {
    const upstream = await upstreamServer((_, response) => response.end(Buffer.alloc(size, "r")))
    const { send, reports } = await world({ upstreamPort: upstream.port })
    const body = Buffer.alloc(size, "q")
    const sized = await send({ method: "POST", headers: { "Content-Length": String(size) }, body })
    const chunked = await send({ method: "PUT", headers: { "Transfer-Encoding": "chunked" }, body })
    expect([sized, chunked].map((answer) => [answer.status, answer.body.length])).toEqual([
      [200, size],
      [200, size],
    ])
    expect(upstream.seen.map((seen) => seen.body === body.toString())).toEqual([true, true])
    expect(header(upstream.seen[0]?.raw ?? [], "content-length")).toEqual([String(size)])
    expect(header(upstream.seen[1]?.raw ?? [], "transfer-encoding")).toEqual(["chunked"])
    expect(reports).toEqual(["POST", "PUT"])
  })

  it("carries a compressed body unchanged", async () => {
    const upstream = await upstreamServer(undefined)
    const { send } = await world({ upstreamPort: upstream.port })
    const answer = await send({ method: "POST", headers: { "Content-Encoding": "gzip" }, body: gzipSync("want 123") })
    expect(answer.status).toBe(200)
    expect(header(upstream.seen[0]?.raw ?? [], "content-encoding")).toEqual(["gzip"])
  })

  it("sends an empty POST with a length, and HEAD gets no body", async () => {
    const upstream = await upstreamServer((request, response) => {
      response.writeHead(200, { "Content-Length": request.method === "HEAD" ? "7" : "0" }).end()
    })
    const { raw } = await world({ upstreamPort: upstream.port })
    const text = await raw(`HEAD / HTTP/1.1\r\nHost: ${name}\r\nConnection: close\r\n\r\n`)
    expect(text).toMatch(/^HTTP\/1\.1 200 OK\r\nContent-Length: 7\r\n/)
    await raw(`POST / HTTP/1.1\r\nHost: ${name}\r\nConnection: close\r\n\r\n`)
    expect(header(upstream.seen[1]?.raw ?? [], "content-length")).toEqual(["0"])
  })

  it("passes with its offer of HTTP/2 without TLS left out, and keeps what Connection may not take away", async () => {
    const upstream = await upstreamServer(undefined)
    const { raw, codes } = await world({ upstreamPort: upstream.port })
    const text = await raw(
      `POST / HTTP/1.1\r\nHost: ${name}\r\nConnection: Upgrade, HTTP2-Settings, Authorization, X-Hop, close\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\nAuthorization: Bearer ${token}\r\nX-Hop: 1\r\nContent-Length: 2\r\n\r\nhi`,
    )
    expect(text).toMatch(/^HTTP\/1\.1 200 OK/)
    const [seen] = upstream.seen as [Seen]
    expect(seen.body).toBe("hi")
    expect(header(seen.raw, "authorization")).toEqual([`Bearer ${value}`])
    expect(["upgrade", "http2-settings", "x-hop"].flatMap((key) => header(seen.raw, key))).toEqual([])
    expect(codes).toEqual(["allowed"])
  })

  it("never gets its secret back, in whatever header or body the upstream reflects it", async () => {
    const basic = Buffer.from(`user:${value}`).toString("base64")
    const upstream = await upstreamServer((request, response) => {
      const sent = request.headers.authorization ?? ""
      const body = JSON.stringify({
        sent,
        basic,
        url: encodeURIComponent(sent),
        encoding: request.headers["accept-encoding"],
      })
      if (request.url === "/gzip") {
        const packed = gzipSync(body)
        response.writeHead(200, { "Content-Encoding": "gzip", "Content-Length": packed.length }).end(packed)
      } else if (request.url === "/own") response.writeHead(200, { "Content-Encoding": "x-own" }).end(body)
      else {
        response.writeHead(200, `you sent ${value}`, ["X-Echo", sent, "X-Basic", basic, "Location", `/?t=${value}`])
        for (const piece of body.match(/.{1,3}/g) ?? []) response.write(piece)
        response.end()
      }
    })
    const { send } = await world({ upstreamPort: upstream.port })
    const ask = (path: string) =>
      send({ path, headers: { Authorization: `Bearer ${token}`, "Accept-Encoding": "gzip" } })
    const inner = Buffer.from(value).toString("base64").slice(2, -4)
    for (const path of ["/plain", "/gzip"]) {
      const answer = await ask(path)
      expect(answer.status).toBe(200)
      expect(answer.body).toContain('"sent":"Bearer ***')
      expect(answer.body).toContain('"encoding":"identity"')
      expect(JSON.stringify(answer)).not.toContain(value)
      expect(JSON.stringify(answer)).not.toContain(inner)
      expect(JSON.stringify(answer)).not.toContain(basic.slice(-12, -4))
    }
    expect(upstream.seen.map(({ raw }) => header(raw, "authorization"))).toEqual(
      Array.from({ length: 2 }, () => [`Bearer ${value}`]),
    )
    expect((await ask("/own")).headers["x-caisson-denied"]).toBe("upstream_error")
  })

  it.each(["X-Api-Key", "User-Agent", "Cookie", "X-Reflect"])(
    "is refused with its secret in %s, which it is not bound to",
    async (where) => {
      const upstream = await upstreamServer(undefined)
      const { send } = await world({ upstreamPort: upstream.port })
      const answer = await send({ headers: { [where]: token } })
      expect(answer.headers["x-caisson-denied"]).toBe("secret_misuse")
      expect(upstream.seen).toEqual([])
    },
  )

  it("is answered 100 first when it asks for it", async () => {
    const upstream = await upstreamServer(undefined)
    const { raw } = await world({ upstreamPort: upstream.port })
    const text = await raw(
      `POST / HTTP/1.1\r\nHost: ${name}\r\nExpect: 100-continue\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi`,
    )
    expect(text).toMatch(/^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 200 OK/)
    expect(header(upstream.seen[0]?.raw ?? [], "expect")).toEqual([])
  })

  it("shares the upstream connection with the next on the same client connection, each judged by itself", async () => {
    const upstream = await upstreamServer(undefined)
    const { raw, codes } = await world({ upstreamPort: upstream.port })
    const one = `GET /1 HTTP/1.1\r\nHost: ${name}\r\n\r\n`
    const text = await raw(`${one}${one}GET / HTTP/1.1\r\nHost: evil.test\r\n\r\n`)
    expect(text.match(/HTTP\/1\.1 \d+/g)).toEqual(["HTTP/1.1 200", "HTTP/1.1 200", "HTTP/1.1 403"])
    expect(upstream.dialled()).toBe(1)
    expect(codes).toEqual(["allowed", "allowed", "authority_mismatch"])
  })

  it("is sent again when the kept connection died while idle", async () => {
    let served = 0
    const upstream = await upstreamServer((request, response) => {
      served += 1
      if (served === 2) return void request.socket.destroy()
      response.end(`answer ${served}`)
    })
    const { open } = await world({ upstreamPort: upstream.port })
    const socket = await open()
    const next = async (): Promise<string> => {
      socket.write(`GET / HTTP/1.1\r\nHost: ${name}\r\n\r\n`)
      let text = ""
      while (!text.includes("answer")) text += String((await once(socket, "data"))[0])
      return text
    }
    expect(await next()).toContain("answer 1")
    expect(await next()).toContain("answer 3")
  })

  it("becomes a WebSocket when the upstream agrees", async () => {
    const upstream = await upstreamServer(undefined)
    upstream.server.on("upgrade", (request, socket, head) => {
      upstream.seen.push({ method: "UPGRADE", url: request.url ?? "", raw: request.rawHeaders, body: head.toString() })
      socket.write(
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: x\r\nX-Caisson-Denied: forged\r\n\r\n\x81\x05first",
        "latin1",
      )
      socket.pipe(socket)
    })
    const { open, codes } = await world({ upstreamPort: upstream.port })
    const socket = await open()
    socket.write(
      `GET /ws HTTP/1.1\r\nHost: ${name}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: k\r\nSec-WebSocket-Extensions: permessage-deflate\r\nAuthorization: Bearer ${token}\r\n\r\n`,
    )
    let text = ""
    while (!text.endsWith("first")) text += String((await once(socket, "data"))[0])
    expect(text).toMatch(/^HTTP\/1\.1 101 /)
    expect(text).toContain("Sec-WebSocket-Accept: x")
    expect(text).not.toMatch(/x-caisson/i)
    const frame = clientFrame(Buffer.from("echo me"))
    socket.write(frame)
    expect((await once(socket, "data"))[0]).toEqual(frame)
    expect(header(upstream.seen[0]?.raw ?? [], "authorization")).toEqual([`Bearer ${value}`])
    expect(header(upstream.seen[0]?.raw ?? [], "sec-websocket-extensions")).toEqual([])
    expect(codes).toEqual(["allowed"])
    socket.on("error", () => undefined)
    socket.on("data", (chunk: Buffer) => expect(chunk.includes(frame)).toBe(false))
    socket.write(clientFrame(Buffer.from(`tell ${token}`)))
    await once(socket, "close")
    expect(codes).toEqual(["allowed", "secret_misuse"])
  })

  it("gets each WebSocket message whole, also one that ends as a secret begins, and none with the secret", async () => {
    const frame = (first: number, text: string) => Buffer.concat([Buffer.from([first, text.length]), Buffer.from(text)])
    const upstream = await upstreamServer(undefined)
    upstream.server.on("upgrade", (_, socket) => {
      socket.on("error", () => undefined)
      socket.write("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n")
      socket.once("data", () => {
        socket.write(frame(0x81, `pong ${value.slice(0, 5)}`))
        socket.once("data", () => socket.write(frame(0x81, `so ${value}!`)))
      })
    })
    const { open } = await world({ upstreamPort: upstream.port })
    const socket = await open()
    socket.write(`GET /ws HTTP/1.1\r\nHost: ${name}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n`)
    let text = ""
    const sees = async (wanted: string) => {
      while (!text.endsWith(wanted)) text += String((await once(socket, "data"))[0])
    }
    await sees("\r\n\r\n")
    socket.write(clientFrame(Buffer.from("ping")))
    await sees(`pong ${value.slice(0, 5)}`)
    socket.write(clientFrame(Buffer.from("and now?")))
    await sees(`so ${"*".repeat(value.length)}!`)
  })

  it.each([
    ["packed in transit", "200 OK\r\nTransfer-Encoding: gzip, chunked", gzipSync(`you sent ${value}`)],
    ["of two lengths", "200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked", Buffer.from("ok")],
    ["of no known status", "999 Odd\r\nTransfer-Encoding: chunked", Buffer.from("ok")],
  ])("gets no answer that is %s", async (_, head, body) => {
    const upstream = await upstreamServer((request) => {
      const { socket } = request
      socket.write(`HTTP/1.1 ${head}\r\n\r\n${body.length.toString(16)}\r\n`)
      socket.write(body)
      socket.write("\r\n0\r\n\r\n")
    })
    const { send } = await world({ upstreamPort: upstream.port })
    const answer = await send({ headers: { Authorization: `Bearer ${token}` } })
    expect([answer.status, answer.headers["x-caisson-denied"]]).toEqual([502, "upstream_error"])
  })

  it.each([204, 302])("gets a %i without a body whatever encoding it names", async (status) => {
    const upstream = await upstreamServer((_, response) => {
      response.writeHead(status, { "Content-Encoding": "gzip", ...(status === 302 && { "Content-Length": 0 }) }).end()
    })
    const { send } = await world({ upstreamPort: upstream.port })
    expect((await send({})).status).toBe(status)
  })

  it("gets every header of its answer, and no length with a 204", async () => {
    const many = "a: b\r\n".repeat(1_500)
    const upstream = await upstreamServer(({ socket, url }) => {
      socket.write(`HTTP/1.1 ${url === "/204" ? "204 No Content" : "200 OK"}\r\n${many}X-Last: here\r\n`)
      socket.write(`Content-Length: 2\r\n\r\n${url === "/204" ? "" : "ok"}`)
    })
    const { raw } = await world({ upstreamPort: upstream.port })
    const ask = (path: string): string => `GET ${path} HTTP/1.1\r\nHost: ${name}\r\nConnection: close\r\n\r\n`
    expect(await raw(ask("/"))).toMatch(/X-Last: here\r\nContent-Length: 2\r\n[^]*\r\n\r\nok$/)
    expect(await raw(ask("/204"))).not.toContain("Content-Length")
  })

  it("passes the upstream's last WebSocket bytes on before closing", async () => {
    const upstream = await upstreamServer(undefined)
    const last = Buffer.alloc(500_000, "z")
    upstream.server.on("upgrade", (_, socket) => {
      socket.write("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n")
      socket.end(last)
    })
    const { raw } = await world({ upstreamPort: upstream.port })
    const text = await raw(`GET /ws HTTP/1.1\r\nHost: ${name}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n`)
    expect(text.slice(text.indexOf("\r\n\r\n") + 4).length).toBe(last.length)
  })

  it("stays an ordinary request when the upstream declines the WebSocket", async () => {
    const upstream = await upstreamServer((_, response) => response.writeHead(426).end("no"))
    const { raw } = await world({ upstreamPort: upstream.port })
    const text = await raw(`GET /ws HTTP/1.1\r\nHost: ${name}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n`)
    expect(text).toMatch(/^HTTP\/1\.1 426 /)
    expect(text).toContain("no")
  })
})

describe("a request that is refused never reaches the upstream", () => {
  const get = (target: string, ...headers: string[]): string =>
    [`GET ${target} HTTP/1.1`, ...headers, "", ""].join("\r\n")
  const host = `Host: ${name}`
  const cases: readonly (readonly [string, string, ReasonCode, number])[] = [
    ["another authority", get("/", "Host: evil.test"), "authority_mismatch", 403],
    ["another port", get("/", `Host: ${name}:8443`), "authority_mismatch", 403],
    ["a trailing dot in the authority", get("/", `Host: ${name}.`), "authority_mismatch", 403],
    ["two hosts", get("/", host, host), "bad_host_header", 400],
    ["no host", "GET / HTTP/1.0\r\n\r\n", "bad_host_header", 400],
    ["an absolute target", get(`https://${name}/`, host), "bad_target", 400],
    ["an authority target", `CONNECT ${name}:443 HTTP/1.1\r\n${host}\r\n\r\n`, "method_not_allowed", 405],
    [
      "TRACE, which would echo the secret",
      `TRACE / HTTP/1.1\r\n${host}\r\nX: ${token}\r\n\r\n`,
      "method_not_allowed",
      405,
    ],
    ["HTTP/0.9 with headers", `GET /\n${host}\n\n`, "bad_header", 400],
    [
      "a WebSocket among other offers",
      get("/", host, "Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c, websocket", "HTTP2-Settings: AAMAAABk"),
      "upgrade_not_allowed",
      403,
    ],
    [
      "a nominated framing header",
      get("/", host, "Connection: content-length", "Content-Length: 0"),
      "bad_header",
      400,
    ],
    [
      "both framings",
      `POST / HTTP/1.1\r\n${host}\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
      "bad_framing",
      400,
    ],
    [
      "two codings",
      `POST / HTTP/1.1\r\n${host}\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n`,
      "bad_framing",
      400,
    ],
    [
      "chunked in HTTP/1.0",
      `POST / HTTP/1.0\r\n${host}\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
      "bad_framing",
      400,
    ],
    ["a space before a colon", get("/", host, "X : y"), "bad_header", 400],
    ["a folded header", get("/", host, "X: y", " z"), "bad_header", 400],
    ["a head over the limit", get("/", host, `X: ${"y".repeat(70_000)}`), "head_too_large", 431],
    ["an expectation nobody knows", get("/", host, "Expect: miracles"), "bad_expect", 417],
    ["a placeholder in the query", get(`/?t=${token}`, host), "secret_misuse", 403],
    [
      "a placeholder in a header that is not forwarded",
      get("/", host, `Proxy-X: ${encodeURIComponent(token)}`),
      "secret_misuse",
      403,
    ],
    [
      "a placeholder in a short body",
      `POST / HTTP/1.1\r\n${host}\r\nContent-Length: ${token.length}\r\n\r\n${token}`,
      "secret_misuse",
      403,
    ],
    [
      "a body that cannot be searched",
      `POST / HTTP/1.1\r\n${host}\r\nContent-Encoding: x-own\r\nContent-Length: 1\r\n\r\na`,
      "unsearchable_body",
      403,
    ],
  ]
  it.each(cases)("%s", async (_, text, code, status) => {
    const upstream = await upstreamServer(undefined)
    const { raw, codes } = await world({ upstreamPort: upstream.port })
    const answer = await raw(text)
    expect(answer).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `))
    expect(answer).toContain(`x-caisson-denied: ${code}`)
    const body = JSON.parse(answer.slice(answer.indexOf("\r\n\r\n") + 4))
    expect(body).toMatchObject({ layer: "egress", reason: code, host: name, port: 443 })
    expect(answer).not.toContain(value)
    expect(codes.at(-1)).toBe(code)
    expect(upstream.seen).toEqual([])
  })

  it("a placeholder for a host that the secret is not bound to", async () => {
    const upstream = await upstreamServer(undefined)
    const { send } = await world({
      upstreamPort: upstream.port,
      options: { substitutions: secrets(["other.good.test"]) },
    })
    expect((await send({ headers: { Authorization: `Bearer ${token}` } })).headers["x-caisson-denied"]).toBe(
      "secret_misuse",
    )
    expect(upstream.seen).toEqual([])
  })

  it("an unsafe method or a WebSocket where only reading is allowed", async () => {
    const upstream = await upstreamServer(undefined)
    const { send, codes } = await world({ upstreamPort: upstream.port, options: { readOnlyHttp: "enforce" } })
    expect((await send({ method: "POST", body: "x" })).status).toBe(403)
    expect((await send({ headers: { Connection: "Upgrade", Upgrade: "websocket" } })).status).toBe(403)
    expect((await send({ method: "GET" })).status).toBe(200)
    expect(codes).toEqual(["read_only", "read_only", "allowed"])
  })

  it("what the caller judges against, and what could not be recorded", async () => {
    const upstream = await upstreamServer(undefined)
    const judged = await world({ upstreamPort: upstream.port, options: { judge: () => "budget" } })
    expect((await judged.send({})).status).toBe(429)
    const record: InterceptOptions["record"] = ({ code, protocol }) => ({
      recorded: false,
      verdict: { decision: "allow", reason: code, protocol },
    })
    const unrecorded = await world({ upstreamPort: upstream.port, options: { record } })
    expect((await unrecorded.send({})).status).toBe(503)
    expect(upstream.seen).toEqual([])
  })
})

describe("a placeholder in a long body", () => {
  it.each([undefined, "gzip"])("cuts the upstream request short (content encoding %s)", async (encoding) => {
    const upstream = await upstreamServer(undefined)
    const { raw, codes } = await world({ upstreamPort: upstream.port })
    const noise = Buffer.from(Array.from({ length: 200_000 }, (_, at) => (at * 7919) % 251))
    const plain = Buffer.concat([noise, Buffer.from(token), noise])
    const body = encoding === "gzip" ? gzipSync(plain, { level: 0 }) : plain
    const head = `POST / HTTP/1.1\r\nHost: ${name}\r\n${encoding === undefined ? "" : "Content-Encoding: gzip\r\n"}Content-Length: ${body.length}\r\n\r\n`
    await raw(Buffer.concat([Buffer.from(head), body]))
    expect(codes).toEqual(["allowed", "secret_misuse"])
    await vi.waitFor(() => expect(upstream.seen.map((seen) => seen.body)).toEqual(["CUT"]))
  })
})
