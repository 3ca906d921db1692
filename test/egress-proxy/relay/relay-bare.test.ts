/**
 * Tunnels through the default dialler, on lines and, as where Node has none, on sockets: the same behaviour of both.
 *
 * What is looked for is what a relay on bare handles could get wrong: bytes of another read, bytes cut off by a close,
 * an end that looks like a break or a break that looks like an end, a side that is read on although nobody takes it.
 */
import { createHash } from "node:crypto"
import { readdirSync } from "node:fs"
import { mkdtemp, rm } from "node:fs/promises"
import { connect, type Socket } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { handles } from "../../../src/egress-proxy/connection/handles.ts"
import { createProxyWith, type EgressProxy, type EgressProxyOptions } from "../../../src/egress-proxy/proxy.ts"
import { established, rawClient, startUpstream, tunnel, until, type Client, type Upstream } from "../harness.ts"

const block = (at: number, size: number): Buffer => Buffer.alloc(size, createHash("sha256").update(String(at)).digest())
/** more than the kernel holds for two connections in a row */
const noise = Buffer.concat(Array.from({ length: 160 }, (_, at) => block(at, ((at * 7_919) % 190_000) + 1)))
const digest = (bytes: Buffer): string => createHash("sha256").update(bytes).digest("hex")

/** All that a socket receives after the proxy's answer, by a reader that stops after every few bytes and starts again. */
async function received(socket: Socket): Promise<string> {
  const hash = createHash("sha256")
  const stops = setInterval(() => socket.resume(), 1)
  socket.on("data", (chunk) => {
    hash.update(chunk)
    socket.pause()
  })
  await new Promise((resolve) => socket.on("end", resolve).on("close", resolve))
  clearInterval(stops)
  return hash.digest("hex")
}

it("this Node has lines", () => expect(handles).toBeDefined())

describe.each([
  ["lines", true],
  ["sockets", false],
])("a tunnel on %s", (_, bare) => {
  const open = (upstream: Upstream, options: Partial<EgressProxyOptions> = {}): Promise<EgressProxy> =>
    createProxyWith(
      {
        egress: ["tcp://db.good.test:5432"],
        services: { "db.good.test": { address: "127.0.0.1", port: upstream.port } },
        listen: "127.0.0.1:0",
        limits: { lingerMs: 50 },
        ...options,
      },
      { bare },
    )
  /** A tunnel that stands; the second on the same proxy asks with bytes that are known by then. */
  const enter = async (proxy: EgressProxy): Promise<Client> => {
    const client = rawClient(proxy.port ?? 0)
    client.send(tunnel("db.good.test:5432"))
    await client.sees(established)
    return client
  }
  const body = (text: string): Buffer => Buffer.from(text.slice(text.indexOf("\r\n\r\n") + 4), "latin1")
  const idle = async (proxy: EgressProxy): Promise<void> => {
    const open = (): number => {
      const { connections, passages, pending } = proxy.counters()
      return connections + passages + pending
    }
    await until(() => open() === 0, "nothing is open")
  }

  it("delivers bytes unchanged to a reader that stops and starts", async () => {
    await using upstream = await startUpstream((socket) => socket.once("data", () => socket.end(noise)))
    await using proxy = await open(upstream)
    for (const turn of ["first", "known"]) {
      const client = await enter(proxy)
      client.socket.removeAllListeners("data")
      client.send("go")
      expect([turn, await received(client.socket)]).toEqual([turn, digest(noise)])
      expect((await client.closed).reset).toBe(false)
    }
    await idle(proxy)
    expect(proxy.counters()).toMatchObject({ bytesIn: 2 * noise.length, bytesOut: 4, allowed: 2 })
  })

  it("delivers bytes unchanged to an upstream that stops and starts", async () => {
    let got: Promise<string> | undefined
    await using upstream = await startUpstream((socket) => {
      got = received(socket)
      socket.on("end", () => socket.end("done"))
    })
    await using proxy = await open(upstream)
    const client = await enter(proxy)
    client.socket.end(noise)
    expect((await client.closed).text).toMatch(/done$/)
    expect(await got).toBe(digest(noise))
    await idle(proxy)
  })

  it("keeps the bytes of many tunnels apart", async () => {
    await using upstream = await startUpstream((socket) =>
      socket.once("data", (chunk) => socket.end(block(Number(chunk), 200_000 + Number(chunk)))),
    )
    await using proxy = await open(upstream)
    const clients = await Promise.all(Array.from({ length: 40 }, () => enter(proxy)))
    clients.forEach((client, at) => client.send(String(at)))
    const got = await Promise.all(clients.map(async (client) => digest(body((await client.closed).text))))
    expect(got).toEqual(clients.map((_client, at) => digest(block(at, 200_000 + at))))
    await idle(proxy)
  })

  it("passes half-closes, resets and upstreams that speak first", async () => {
    await using upstream = await startUpstream((socket) => {
      socket.write("banner")
      socket.on("end", () => socket.end("bye"))
      socket.on("data", (chunk) => String(chunk) === "reset" && socket.resetAndDestroy())
    })
    await using proxy = await open(upstream)
    const polite = await enter(proxy)
    await polite.sees(/banner$/)
    polite.socket.end()
    expect(await polite.closed).toMatchObject({ reset: false, text: expect.stringMatching(/bannerbye$/) })
    const rude = await enter(proxy)
    await rude.sees(/banner$/)
    rude.send("reset")
    expect((await rude.closed).reset).toBe(true)
    await idle(proxy)
  })

  it("lets an upstream end first and the client go on", async () => {
    const heard: string[] = []
    await using upstream = await startUpstream((socket) => {
      socket.end("all I have")
      socket.on("data", (chunk) => heard.push(String(chunk)))
    })
    await using proxy = await open(upstream)
    const client = rawClient(proxy.port ?? 0)
    client.socket.removeAllListeners("end")
    client.send(tunnel("db.good.test:5432"))
    await client.sees(/all I have$/)
    client.send("and still")
    await until(() => heard.join("") === "and still", "the upstream hears it")
    client.socket.end()
    expect((await client.closed).reset).toBe(false)
    await idle(proxy)
  })

  it("resets an upstream that was being written to when the client broke off", async () => {
    let broke: string | undefined
    await using upstream = await startUpstream((socket) => {
      socket.pause()
      socket.on("error", (error: NodeJS.ErrnoException) => {
        broke = error.code
      })
      socket.on("end", () => {
        broke = "a quiet end"
      })
    })
    await using proxy = await open(upstream)
    const client = await enter(proxy)
    client.socket.write(Buffer.alloc(20_000_000))
    await until(() => proxy.counters().bytesOut > 1_000_000, "much was sent")
    client.socket.resetAndDestroy()
    await idle(proxy)
    for (const socket of upstream.sockets) socket.resume()
    await until(() => broke !== undefined, "the upstream knows")
    expect(broke).toBe("ECONNRESET")
  })

  /** Bytes from here until nobody takes them any more. */
  const pour = (socket: Socket): void => {
    const more = (): void => {
      while (socket.write(Buffer.alloc(65_536)));
    }
    socket.on("drain", more)
    more()
  }
  /** Descriptors, once all that the first tunnel needs for good is there. */
  const heldAfterOne = async (proxy: EgressProxy, upstream: Upstream): Promise<number> => {
    const client = await enter(proxy)
    await until(() => upstream.sockets.size === 1, "the upstream is there")
    client.socket.resetAndDestroy()
    for (const socket of upstream.sockets) socket.destroy()
    await idle(proxy)
    await until(() => upstream.sockets.size === 0, "the first is over")
    return held()
  }
  const held = (): number => readdirSync("/proc/self/fd").length
  /** No byte has passed for a while. */
  const stuck = async (proxy: EgressProxy): Promise<void> => {
    let [before, since] = [0, 0]
    await until(() => {
      const { bytesIn, bytesOut } = proxy.counters()
      since = bytesIn + bytesOut > 0 && bytesIn + bytesOut === before ? since + 1 : 0
      before = bytesIn + bytesOut
      return since > 40
    }, "nothing more passes")
  }

  it("lets go of sixty tunnels whose clients broke off while their upstreams took nothing", async () => {
    await using upstream = await startUpstream((socket) => void socket.pause())
    await using proxy = await open(upstream)
    const before = await heldAfterOne(proxy, upstream)
    const clients = await Promise.all(Array.from({ length: 60 }, () => enter(proxy)))
    for (const client of clients) pour(client.socket)
    await stuck(proxy)
    expect(proxy.counters().passages).toBe(60)
    for (const client of clients) client.socket.resetAndDestroy()
    await idle(proxy)
    for (const socket of upstream.sockets) socket.destroy()
    await until(() => held() <= before, "all descriptors are closed")
  })

  it("lets go of sixty tunnels whose upstreams broke off while their clients took nothing", async () => {
    await using upstream = await startUpstream((socket) => socket.once("data", () => pour(socket)))
    await using proxy = await open(upstream)
    const before = await heldAfterOne(proxy, upstream)
    const clients = await Promise.all(Array.from({ length: 60 }, () => enter(proxy)))
    for (const client of clients) client.socket.pause()
    for (const client of clients) client.send("go")
    await stuck(proxy)
    expect(proxy.counters().passages).toBe(60)
    for (const socket of upstream.sockets) socket.resetAndDestroy()
    await idle(proxy)
    for (const client of clients) client.socket.destroy()
    await until(() => held() <= before, "all descriptors are closed")
  })

  it("lets go of a client that broke off after it had said all, while its upstream took nothing", async () => {
    await using upstream = await startUpstream((socket) => void socket.pause())
    await using proxy = await open(upstream)
    const client = await enter(proxy)
    client.socket.end(Buffer.alloc(20_000_000))
    await stuck(proxy)
    client.socket.resetAndDestroy()
    await idle(proxy)
  })

  it("cuts a tunnel one way of which stands still, though the other way goes on", async () => {
    await using upstream = await startUpstream((socket) => {
      socket.pause()
      const news = setInterval(() => socket.write("news"), 5)
      socket.on("close", () => clearInterval(news))
    })
    await using proxy = await open(upstream, { limits: { lingerMs: 50, stalledMs: 300 } })
    const client = await enter(proxy)
    pour(client.socket)
    await client.closed
    await idle(proxy)
    expect(proxy.counters()).toMatchObject({ infrastructure: 1 })
  })

  it("passes on all that a client said before it ended, to an upstream that takes it late", async () => {
    let got: Promise<string> | undefined
    await using upstream = await startUpstream((socket) => {
      socket.pause()
      socket.end("that is all from here")
    })
    await using proxy = await open(upstream)
    const client = rawClient(proxy.port ?? 0)
    client.socket.removeAllListeners("end")
    client.send(tunnel("db.good.test:5432"))
    await client.sees(/from here$/)
    client.socket.end(noise)
    await stuck(proxy)
    // Longer than the sweep, which must not take two ends for a break.
    await new Promise((resolve) => setTimeout(resolve, 1_200))
    for (const socket of upstream.sockets) got = received(socket)
    expect(await got).toBe(digest(noise))
    await idle(proxy)
  })

  it("does not read on for a side that takes nothing", async () => {
    await using upstream = await startUpstream((socket) =>
      socket.once("data", () => {
        const pour = (): void => {
          while (socket.write(Buffer.alloc(65_536)));
          socket.once("drain", pour)
        }
        pour()
      }),
    )
    await using proxy = await open(upstream)
    const client = await enter(proxy)
    client.socket.pause()
    client.send("go")
    let [before, since] = [0, 0]
    await until(() => {
      const now = proxy.counters().bytesIn
      since = now > 0 && now === before ? since + 1 : 0
      before = now
      return since > 40 || now > 100_000_000
    }, "nothing more is read")
    expect(before).toBeLessThan(100_000_000)
    proxy.update({ egress: [] })
    await idle(proxy)
  })

  it("hands early bytes over once, whether or not the upstream is there yet", async () => {
    const heard: Buffer[] = []
    await using upstream = await startUpstream((socket) => {
      socket.on("data", (chunk) => heard.push(chunk))
      socket.on("end", () => socket.end("ok"))
    })
    await using proxy = await open(upstream)
    await enter(proxy)
    for (const early of ["", "e", "x".repeat(70_000)]) {
      heard.length = 0
      const client = rawClient(proxy.port ?? 0)
      client.socket.end(`${tunnel("db.good.test:5432")}${early}`)
      expect((await client.closed).text).toMatch(/ok$/)
      expect(Buffer.concat(heard).toString()).toBe(early)
    }
  })

  it("cuts a tunnel at its byte budget, to the byte", async () => {
    const heard: Buffer[] = []
    await using upstream = await startUpstream((socket) => socket.on("data", (chunk) => heard.push(chunk)))
    await using proxy = await open(upstream, { budgets: { bytesOut: 10 } })
    const client = await enter(proxy)
    client.send("0123456789")
    await until(() => Buffer.concat(heard).length === 10, "ten bytes are there")
    client.send("!")
    await client.closed
    expect(Buffer.concat(heard).toString()).toBe("0123456789")
    expect(proxy.denials()).toMatchObject([{ reason: "budget" }])
    await idle(proxy)
  })

  it("looks for placeholders on its way, and lets none through", async () => {
    const heard: Buffer[] = []
    await using upstream = await startUpstream((socket) => socket.on("data", (chunk) => heard.push(chunk)))
    const placeholder = "$$SECRET[GITHUB_TOKEN]$$"
    await using proxy = await open(upstream, {
      substitutions: [{ placeholder, value: "ghp_0123456789", hosts: ["api.good.test"] }],
    })
    const client = await enter(proxy)
    client.send(placeholder.slice(0, 9))
    await until(() => heard.length > 0, "a part is no placeholder yet")
    client.send(placeholder.slice(9))
    await client.closed
    expect(Buffer.concat(heard).toString()).toBe(placeholder.slice(0, 9))
    expect(proxy.denials()).toMatchObject([{ reason: "secret_misuse" }])
    await idle(proxy)
  })

  it("answers a refused dial in words, also for a request that was allowed before", async () => {
    let upstream = await startUpstream((socket) => socket.end())
    await using proxy = await open(upstream)
    await (await enter(proxy)).closed
    await upstream[Symbol.asyncDispose]()
    const client = rawClient(proxy.port ?? 0)
    client.send(tunnel("db.good.test:5432"))
    expect((await client.closed).text).toMatch(/^HTTP\/1\.1 502 [^]*x-caisson-denied: connect_failed/)
    upstream = await startUpstream(() => {})
    await using _again = upstream
    await idle(proxy)
  })

  it("answers in words a client that has ended already", async () => {
    await using upstream = await startUpstream((socket) => socket.end("late"))
    await using proxy = await open(upstream)
    const refused = rawClient(proxy.port ?? 0)
    refused.socket.end(tunnel("evil.test:5432"))
    expect((await refused.closed).text).toMatch(/^HTTP\/1\.1 403 [^]*"hint":"[^]*}\n$/)
    const allowed = rawClient(proxy.port ?? 0)
    allowed.socket.end(tunnel("db.good.test:5432"))
    expect((await allowed.closed).text).toMatch(/late$/)
    await idle(proxy)
  })

  it("judges a known request by the policy of the day", async () => {
    await using upstream = await startUpstream(() => {})
    await using proxy = await open(upstream)
    await enter(proxy)
    await enter(proxy)
    proxy.update({ egress: ["tcp://other.good.test:5432"] })
    const client = rawClient(proxy.port ?? 0)
    client.send(tunnel("db.good.test:5432"))
    expect((await client.closed).text).toContain("x-caisson-denied: host_not_allowed")
    await idle(proxy)
  })

  it("goes on as a socket where the proxy has more to say: SOCKS, plain HTTP, a hundred bytes one by one", async () => {
    await using upstream = await startUpstream((socket) => {
      let seen = ""
      socket.on("data", (chunk) => {
        seen += String(chunk)
        if (!/length: 4/i.test(seen) || seen.endsWith("body"))
          socket.end("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi")
      })
    })
    await using proxy = await open(upstream, {
      egress: ["plain.good.test:80", "tcp://db.good.test:5432"],
      services: {
        "plain.good.test": { address: "127.0.0.1", port: upstream.port },
        "db.good.test": { address: "127.0.0.1", port: upstream.port },
      },
    })
    const web = rawClient(proxy.port ?? 0)
    const head = "GET http://plain.good.test/ HTTP/1.1\r\nHost: plain.good.test\r\nConnection: close\r\n\r\n"
    web.socket.setNoDelay(true)
    for (const byte of head) {
      web.send(byte)
      await new Promise((resolve) => setImmediate(resolve))
    }
    expect((await web.closed).text).toMatch(/^HTTP\/1\.1 200 [^]*hi$/)
    const form = rawClient(proxy.port ?? 0)
    form.send("POST http://plain.good.test/ HTTP/1.1\r\nHost: plain.good.test\r\nContent-Length: 4\r\n\r\n")
    await until(() => upstream.sockets.size === 1, "the head is on its way")
    form.send("body")
    await form.sees(/hi$/)
    form.send("GET http://evil.test/ HTTP/1.1\r\nHost: evil.test\r\nConnection: close\r\n\r\n")
    expect((await form.closed).text).toMatch(/^HTTP\/1\.1 200 [^]*hiHTTP\/1\.1 403 [^]*host_not_allowed/)
    const socks = rawClient(proxy.port ?? 0)
    const name = "db.good.test"
    socks.send(`\x05\x01\x00\x05\x01\x00\x03${String.fromCharCode(name.length)}${name}\x15\x38`)
    await socks.sees(/^\x05\x00\x05\x00/)
    socks.send("go")
    expect((await socks.closed).text).toMatch(/hi$/)
    await idle(proxy)
  })

  it("leaves no descriptor behind, however it ends", async () => {
    const keep: Socket[] = []
    await using upstream = await startUpstream((socket) => {
      keep.push(socket)
      socket.on("data", (chunk) => String(chunk) === "end" && socket.end())
      socket.on("end", () => socket.end())
    })
    await using proxy = await open(upstream)
    const first = await enter(proxy)
    first.socket.destroy()
    await idle(proxy)
    const before = held()
    for (let turn = 0; turn < 30; turn += 1) {
      const client = await enter(proxy)
      if (turn % 3 === 0) client.socket.resetAndDestroy()
      else if (turn % 3 === 1) client.socket.destroy()
      else client.send("end")
      await client.closed
    }
    await idle(proxy)
    for (const socket of keep) socket.destroy()
    await until(() => held() <= before, "all descriptors are closed")
  })

  it("serves a Unix socket as it serves a port", async () => {
    const folder = await mkdtemp(join(tmpdir(), "caisson-relay-"))
    await using upstream = await startUpstream((socket) => socket.once("data", () => socket.end(noise)))
    await using proxy = await open(upstream, { listen: `unix:${join(folder, "proxy.sock")}` })
    const received: Buffer[] = []
    const client = connect(join(folder, "proxy.sock"))
    client.write(tunnel("db.good.test:5432"))
    client.once("data", () => client.write("go").valueOf() && client.on("data", (chunk) => received.push(chunk)))
    await new Promise((resolve) => client.on("close", resolve))
    expect(digest(Buffer.concat(received))).toBe(digest(noise))
    await idle(proxy)
    await rm(folder, { recursive: true })
  })
})
