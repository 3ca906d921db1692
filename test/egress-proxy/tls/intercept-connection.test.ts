import { execFile, spawn } from "node:child_process"
import { once } from "node:events"
import { mkdtemp, rm, writeFile } from "node:fs/promises"
import { createServer as createTcpServer } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { promisify } from "node:util"
import { describe, expect, it, vi } from "vitest"
import { createCallAuthority } from "../../../src/egress-proxy/tls/authority.ts"
import { bundleWith, trustEnvironment } from "../../../src/egress-proxy/tls/trust.ts"
import {
  callCa,
  header,
  listening,
  name,
  type Seen,
  testCa,
  token,
  upstreamServer,
  value,
  world,
} from "./intercept-world.ts"

const run = promisify(execFile)

describe("the upstream's certificate", () => {
  it.each<readonly [string, () => Promise<{ port: number; seen: readonly Seen[] }>]>([
    ["is for another name", () => upstreamServer(undefined, "evil.test")],
    ["is expired", () => upstreamServer(undefined, name, createCallAuthority({ now: new Date("2020-01-01") }))],
    ["is of an unknown authority", () => upstreamServer(undefined, name, createCallAuthority())],
  ])("%s: nothing is sent", async (_, start) => {
    const upstream = await start()
    const { send, codes } = await world({ upstreamPort: upstream.port })
    const answer = await send({ headers: { Authorization: `Bearer ${token}` } })
    expect([answer.status, answer.headers["x-caisson-denied"]]).toEqual([502, "upstream_tls"])
    expect(codes).toEqual(["allowed", "upstream_tls"])
    expect(upstream.seen).toEqual([])
  })

  it("is absent because the upstream speaks no TLS: nothing is sent in the clear", async () => {
    const got: Buffer[] = []
    const port = await listening(
      createTcpServer((socket) => {
        socket.on("error", () => undefined)
        socket.on("data", (chunk) => {
          got.push(chunk)
          socket.end("HTTP/1.1 200 OK\r\n\r\n")
        })
      }),
    )
    const { send } = await world({ upstreamPort: port })
    expect((await send({ headers: { Authorization: `Bearer ${token}` } })).headers["x-caisson-denied"]).toBe(
      "upstream_tls",
    )
    expect(Buffer.concat(got).includes(value)).toBe(false)
  })
})

describe("an upstream that fails", () => {
  it("by refusing is infrastructure", async () => {
    const { send } = await world({
      options: { upstream: () => Promise.reject(Object.assign(new Error("x"), { code: "ECONNREFUSED" })) },
    })
    const answer = await send({})
    expect([answer.status, answer.headers["x-caisson-denied"]]).toEqual([502, "connect_failed"])
  })

  it("by closing during the handshake is infrastructure", async () => {
    const port = await listening(createTcpServer((socket) => void socket.once("data", () => socket.resetAndDestroy())))
    const { send } = await world({ upstreamPort: port })
    expect((await send({})).headers["x-caisson-denied"]).toBe("connect_failed")
  })

  it("by never finishing the handshake is infrastructure, and its connection is closed", async () => {
    const closed = Promise.withResolvers<void>()
    const silent = createTcpServer((socket) => {
      socket.on("error", () => undefined)
      socket.once("close", () => closed.resolve())
      socket.resume()
    })
    const { send } = await world({ upstreamPort: await listening(silent), options: { limits: { handshakeMs: 100 } } })
    expect((await send({})).headers["x-caisson-denied"]).toBe("connect_timeout")
    await closed.promise
  })

  it("by never finishing the handshake is let go when the client leaves", async () => {
    const closed = Promise.withResolvers<void>()
    const dialled = Promise.withResolvers<void>()
    const silent = createTcpServer((socket) => {
      socket.on("error", () => undefined)
      socket.once("close", () => closed.resolve())
      socket.once("data", () => dialled.resolve())
    })
    const { open } = await world({ upstreamPort: await listening(silent) })
    const socket = await open()
    socket.write(`GET / HTTP/1.1\r\nHost: ${name}\r\n\r\n`)
    await dialled.promise
    socket.destroy()
    await closed.promise
  })

  it("by closing before its answer is infrastructure", async () => {
    const upstream = await upstreamServer((request) => void request.socket.destroy())
    const { send } = await world({ upstreamPort: upstream.port })
    expect((await send({})).headers["x-caisson-denied"]).toBe("upstream_error")
  })

  it("by never answering is infrastructure", async () => {
    const upstream = await upstreamServer(() => undefined)
    const { send } = await world({ upstreamPort: upstream.port, options: { limits: { idleMs: 1_000 } } })
    const answer = await send({})
    expect([answer.status, answer.headers["x-caisson-denied"]]).toEqual([504, "upstream_timeout"])
  })

  it("in the middle of its body is broken off to the client", async () => {
    const upstream = await upstreamServer((request, response) => {
      response.writeHead(200, { "Content-Length": "100" })
      response.write("part", () => request.socket.destroy())
    })
    const { send } = await world({ upstreamPort: upstream.port })
    await expect(send({})).rejects.toThrow()
  })

  it("by sending interim responses without end is infrastructure", async () => {
    const upstream = await upstreamServer(
      (request) => void request.socket.write("HTTP/1.1 103 Early Hints\r\n\r\n".repeat(40)),
    )
    const { send } = await world({ upstreamPort: upstream.port })
    expect((await send({})).headers["x-caisson-denied"]).toBe("upstream_error")
  })

  it("by answering with two lengths is infrastructure", async () => {
    const upstream = await upstreamServer(
      (request) =>
        void request.socket.end("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
    )
    const { send } = await world({ upstreamPort: upstream.port })
    expect((await send({})).headers["x-caisson-denied"]).toBe("upstream_error")
  })
})

describe("the connection", () => {
  it("ends, and the process goes on, when a callback throws", async () => {
    const throwing = () => {
      throw new Error("a bug")
    }
    const { send, interceptions } = await world({ options: { judge: throwing } })
    await expect(send({})).rejects.toThrow()
    expect(await interceptions[0]?.done).toEqual({ end: "closed" })
  })

  it("ends when the client's name is another", async () => {
    const { open, ends, interceptions } = await world({})
    const socket = await open({ servername: "evil.test", checkServerIdentity: () => undefined }).catch(
      (error: unknown) => error,
    )
    await interceptions[0]?.done
    expect(ends).toEqual([{ end: "sni_mismatch" }])
    expect(socket).toBeDefined()
  })

  it("tells when the program does not trust the authority", async () => {
    const { open, interceptions } = await world({})
    await expect(open({ ca: testCa.caPem })).rejects.toThrow()
    expect(await interceptions[0]?.done).toMatchObject({ end: expect.stringMatching(/^(client_tls|unused)$/) })
  })

  it("tells when curl does not trust the authority", async () => {
    const { port, interceptions } = await world({})
    const curl = spawn("curl", ["-sS", "--connect-to", `${name}:443:127.0.0.1:${port}`, `https://${name}/`], {
      stdio: "ignore",
      env: {},
    })
    const [exit] = await once(curl, "exit")
    expect(exit).not.toBe(0)
    expect(await interceptions[0]?.done).toMatchObject({ end: "client_tls" })
  })

  it("is not made for a client that speaks only h2", async () => {
    const { open, interceptions } = await world({})
    await expect(open({ ALPNProtocols: ["h2"] })).rejects.toThrow()
    expect(await interceptions[0]?.done).toMatchObject({ end: "client_tls" })
  })

  it("is taken by curl and Python with the bundle, and their Basic credentials are replaced", async () => {
    const upstream = await upstreamServer(undefined)
    const { port } = await world({ upstreamPort: upstream.port })
    const folder = await mkdtemp(join(tmpdir(), "caisson-intercept-"))
    try {
      const bundle = join(folder, "ca.pem")
      await writeFile(bundle, bundleWith("", callCa.caPem))
      const env = { PATH: process.env["PATH"] ?? "", ...trustEnvironment(bundle) }
      const flags = ["-sS", "--connect-to", `${name}:443:127.0.0.1:${port}`, "-u", `git:${token}`, "-d", "some=data"]
      expect((await run("curl", [...flags, `https://${name}/info/refs`], { env })).stdout).toBe("hello")
      const script = [
        "import http.client, ssl, socket, sys, base64",
        "context = ssl.create_default_context()",
        "context.verify_flags |= ssl.VERIFY_X509_STRICT",
        `connection = http.client.HTTPSConnection("${name}", context=context)`,
        `raw = socket.create_connection(("127.0.0.1", ${port}))`,
        `connection.sock = context.wrap_socket(raw, server_hostname="${name}")`,
        `connection.request("GET", "/", headers={"Authorization": "Bearer " + sys.argv[1]})`,
        "print(connection.getresponse().read().decode())",
      ].join("\n")
      expect((await run("python3", ["-c", script, token], { env })).stdout).toBe("hello\n")
    } finally {
      await rm(folder, { recursive: true, force: true })
    }
    const sent = upstream.seen.flatMap((seen) => header(seen.raw, "authorization"))
    expect(sent).toEqual([`Basic ${Buffer.from(`git:${value}`).toString("base64")}`, `Bearer ${value}`])
  })

  it("leaves no socket behind, however it ends", async () => {
    const upstream = await upstreamServer((request, response) => {
      if (request.url === "/cut") request.socket.destroy()
      else if (request.url !== "/hang") response.end("x".repeat(1000))
    })
    const { open, interceptions, ends } = await world({ upstreamPort: upstream.port })
    for (let round = 0; round < 30; round += 1) {
      const socket = await open()
      socket.on("error", () => undefined)
      const path = ["/", "/cut", "/hang"][round % 3]
      socket.write(`GET ${path} HTTP/1.1\r\nHost: ${name}\r\n\r\n`)
      if (path === "/hang") await vi.waitFor(() => expect(upstream.seen.at(-1)?.url).toBe("/hang"))
      else await once(socket, "data")
      if (round % 2 === 0) socket.destroy()
      else socket.end()
    }
    await Promise.all(interceptions.map((interception) => interception.done))
    expect(ends).toHaveLength(30)
    await vi.waitFor(() => expect(upstream.sockets.size).toBe(0))
  })

  it("ends when no head comes in time, also when it trickles", async () => {
    const { open, interceptions } = await world({ options: { limits: { headMs: 200 } } })
    const socket = await open()
    socket.on("error", () => undefined)
    socket.on("end", () => undefined)
    const trickle = setInterval(() => socket.write("X"), 20)
    socket.write("GET / HT")
    await interceptions[0]?.done
    clearInterval(trickle)
  })

  it("closes the upstream too when the client goes away", async () => {
    const upstream = await upstreamServer((_, response) => void response.write("begun"))
    const { open, interceptions } = await world({ upstreamPort: upstream.port })
    const socket = await open()
    socket.write(`GET / HTTP/1.1\r\nHost: ${name}\r\n\r\n`)
    await once(socket, "data")
    socket.destroy()
    await interceptions[0]?.done
    for (const left of upstream.sockets) await once(left, "close")
    expect(upstream.sockets.size).toBe(0)
  })

  it("ends when more requests are read ahead than allowed", async () => {
    const upstream = await upstreamServer(() => undefined)
    const { raw } = await world({ upstreamPort: upstream.port, options: { limits: { pipelined: 4 } } })
    expect(await raw(`GET / HTTP/1.1\r\nHost: ${name}\r\n\r\n`.repeat(5))).toBe("")
  })

  it("ends when more bytes of heads are read ahead than allowed, and not for one head", async () => {
    const upstream = await upstreamServer((_, response) => void response.end("whole"))
    const { raw } = await world({ upstreamPort: upstream.port, options: { limits: { pipelinedBytes: 5_000 } } })
    const head = (bytes: number, rest = ""): string =>
      `GET / HTTP/1.1\r\nHost: ${name}\r\nX: ${"x".repeat(bytes)}\r\n${rest}\r\n`
    const last = "Connection: close\r\n"
    expect(await raw(head(10_000, last))).toContain("whole")
    expect((await raw(head(1_000) + head(1_000, last))).match(/whole/g)).toHaveLength(2)
    expect(await raw(head(1_600) + head(1_600, last))).not.toContain("whole")
  })

  it("ends when heads that are read ahead take more memory than allowed, however short their lines are", async () => {
    const upstream = await upstreamServer(() => undefined)
    const { raw } = await world({ upstreamPort: upstream.port })
    expect(await raw(`GET / HTTP/1.1\r\nHost: ${name}\r\n${"a:\r\n".repeat(120)}\r\n`.repeat(20))).toBe("")
  })

  it("refuses a head of more lines than it looks at: none goes unseen", async () => {
    const upstream = await upstreamServer(undefined)
    const { raw, codes } = await world({ upstreamPort: upstream.port, options: { limits: { headerLines: 4 } } })
    const head = (lines: number): string =>
      `GET / HTTP/1.1\r\nHost: ${name}\r\n${"a: b\r\n".repeat(lines - 2)}Connection: close\r\n\r\n`
    expect(await raw(head(4))).toContain("hello")
    for (const lines of [5, 6, 2_000]) expect(await raw(head(lines)), `${lines}`).toMatch(/^HTTP\/1\.1 431 /)
    expect(codes).toEqual(["allowed", "head_too_large", "head_too_large", "head_too_large"])
    expect(upstream.seen).toHaveLength(1)
  })
})
