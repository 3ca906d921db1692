/**
 * What one sandbox sends must not hold up another: bounded work in a turn of the event loop, one pass over bytes, no
 * object for each of them. Counted, not timed; `npm run bench -- fairness` measures what it comes to.
 */
import { createSocket } from "node:dgram"
import { once } from "node:events"
import { connect, createServer, type Socket } from "node:net"
import { PassThrough, Readable } from "node:stream"
import { setImmediate as nextTurn } from "node:timers/promises"
import { describe, expect, it, vi } from "vitest"
import type { ByteSource } from "../../src/egress-proxy/connection/byte-source.ts"
import { Deadline } from "../../src/egress-proxy/connection/deadline.ts"
import { createBodyReader } from "../../src/egress-proxy/http/body.ts"
import { defaultLimits, processPace } from "../../src/egress-proxy/limits.ts"
import { linger } from "../../src/egress-proxy/serve/linger.ts"
import { createPace, unhurried } from "../../src/egress-proxy/pace.ts"
import { createEgressProxy, createProxyWith } from "../../src/egress-proxy/proxy.ts"
import { createClientHelloReader } from "../../src/egress-proxy/tls/client-hello.ts"
import { createPlaceholderScanner } from "../../src/egress-proxy/secrets/scanner.ts"
import { needlesForAll } from "../../src/egress-proxy/secrets/spellings.ts"
import { prepareSubstitutions } from "../../src/egress-proxy/secrets/substitute.ts"
import { createWebSocketScanner } from "../../src/egress-proxy/secrets/websocket.ts"
import { createTurnstile } from "../../src/base/turnstile.ts"
import { createTurns, inTurns } from "../../src/egress-proxy/connection/turns.ts"
import { echo, listening, rawClient, respond, rig, startUpstream, tunnel, until } from "./harness.ts"

const { requestCost, turnBytes } = defaultLimits
const perTurn = turnBytes / requestCost
const placeholders = ["$$SECRET[GITHUB_TOKEN]$$", "$$SECRET[NPM_TOKEN]$$"]

/** The most that `count` grew by between two turns of the event loop while `work` was done. */
async function mostInATurn(count: () => number, work: () => Promise<unknown>): Promise<number> {
  let [most, last, over] = [0, count(), false]
  const watch = (): void => {
    most = Math.max(most, count() - last)
    last = count()
    if (!over) setImmediate(watch)
  }
  setImmediate(watch)
  await work()
  over = true
  return most
}
/** How often memory is taken, whatever for. */
function allocations(work: () => void): number {
  const spies = (["allocUnsafe", "alloc", "concat", "from"] as const).map((name) => vi.spyOn(Buffer, name))
  work()
  const count = spies.reduce((sum, spy) => sum + spy.mock.calls.length, 0)
  for (const spy of spies) spy.mockRestore()
  return count
}

describe("turns", () => {
  it("grant so much in one turn of the loop, in order, and what costs more alone", async () => {
    const turns = createTurns(100)
    const order: number[] = []
    const costs = [40, 40, 40, 500, 10, 100, 0]
    const all = costs.map(async (cost, at) => turns.next(cost).then(() => order.push(at)))
    const after: number[] = []
    for (let turn = 0; turn < 6; turn += 1) {
      await nextTurn()
      after.push(order.length)
    }
    await Promise.all(all)
    expect(order).toEqual([0, 1, 2, 3, 4, 5, 6])
    expect(after).toEqual([2, 3, 4, 5, 7, 7])
  })

  it("put a stream of single bytes together, to the byte, with its end and its break", async () => {
    const stream = new PassThrough()
    const sent = Buffer.from(Array.from({ length: 50_000 }, (_, at) => at & 255))
    const feed = async (): Promise<void> => {
      for (let at = 0; at < sent.length; at += 1) {
        stream.write(sent.subarray(at, at + 1))
        if (at % 5_000 === 0) await nextTurn()
      }
      stream.end()
    }
    void feed()
    const got: Buffer[] = []
    for await (const bytes of inTurns(stream, createTurns(turnBytes))) got.push(bytes)
    expect(Buffer.concat(got).equals(sent)).toBe(true)
    expect(got.length).toBeLessThan(200)
    const broken = new Readable({ read: () => {} })
    broken.push("part")
    const read = (async (): Promise<string> => {
      let text = ""
      for await (const bytes of inTurns(broken, createTurns(turnBytes))) {
        text += String(bytes)
        broken.destroy()
      }
      return text
    })()
    await expect(read).rejects.toThrow("broken off")
  })
})

describe("pace", () => {
  const start = (perSecond: number, saved: number) => {
    const clock = { ms: 0 }
    return { clock, pace: createPace(perSecond, saved, () => clock.ms) }
  }

  it("holds nobody up who is alone, however much was done, and counts none of it afterwards", () => {
    const { clock, pace } = start(1_000, 100)
    const [one, other] = [pace.join(), pace.join()]
    one.come()
    for (let count = 0; count < 50; count += 1) {
      expect(one.wait()).toBe(0)
      one.spend(100_000)
    }
    expect(one.wait()).toBe(0)
    clock.ms = 1
    other.come()
    one.spend(1)
    expect(one.wait()).toBeLessThanOrEqual(1)
  })

  it("lets one that has company work on so much a second, beside what it saved", () => {
    const { clock, pace } = start(1_000, 100)
    const [one, other] = [pace.join(), pace.join()]
    one.come()
    other.come()
    let done = 0
    for (clock.ms = 0; clock.ms < 10_000; clock.ms += 1)
      while (one.wait() === 0) {
        one.spend(10)
        done += 10
      }
    expect(done).toBeGreaterThan(9_900)
    expect(done).toBeLessThanOrEqual(10_000 + 100 + 10)
    expect(other.wait()).toBe(0)
  })

  it("divides that among those who want more, and leaves alone one who asks for little", () => {
    const { clock, pace } = start(1_000, 100)
    const [a, b, calm] = [pace.join(), pace.join(), pace.join()]
    for (const place of [a, b, calm]) place.come()
    const done = new Map([
      [a, 0],
      [b, 0],
    ])
    for (clock.ms = 0; clock.ms < 10_000; clock.ms += 1) {
      for (const place of [a, b])
        while (place.wait() === 0) {
          place.spend(10)
          done.set(place, (done.get(place) ?? 0) + 10)
        }
      if (clock.ms % 100 === 0) {
        expect(calm.wait()).toBe(0)
        calm.spend(20)
      }
    }
    for (const amount of done.values()) {
      expect(amount).toBeGreaterThan(4_500)
      expect(amount).toBeLessThan(5_700)
    }
  })

  it("takes one whose last connection went a moment ago for company, and forgets it after a second", () => {
    const { clock, pace } = start(1_000, 100)
    const [one, other] = [pace.join(), pace.join()]
    other.come()
    one.come()
    one.spend(200)
    expect(one.wait()).toBeGreaterThan(0)
    other.go()
    expect(one.wait()).toBeGreaterThan(0)
    clock.ms = 50
    expect(one.wait()).toBeGreaterThan(0)
    clock.ms = 1_001
    one.spend(2_000)
    expect(one.wait()).toBe(0)
  })

  it("is kept by turns: what is not due waits, and nothing of it is lost", async () => {
    let [held, spent] = [0, 0]
    const place = { ...unhurried, wait: () => held, spend: (cost: number) => void (spent += cost) }
    const turns = createTurns(100, place)
    held = 5
    let granted = 0
    const all = [10, 20, 30].map((cost) => turns.next(cost).then(() => (granted += 1)))
    for (let turn = 0; turn < 3; turn += 1) await nextTurn()
    expect([granted, spent, turns.waiting]).toEqual([0, 0, 3])
    held = 0
    await Promise.all(all)
    expect([granted, spent, turns.waiting]).toEqual([3, 60, 0])
  })

  it("counts connections from when they come until they are gone, and looks at others' from any proxy", async () => {
    const [come, go] = [vi.fn(), vi.fn()]
    using _ = { [Symbol.dispose]: () => vi.restoreAllMocks() }
    vi.spyOn(processPace, "join").mockReturnValue({ ...unhurried, come, go })
    await using upstream = await startUpstream(echo)
    await using test = await rig(upstream)
    const client = test.client()
    client.send("GET http://evil.test/ HTTP/1.1\r\nHost: evil.test\r\n\r\n")
    await client.closed
    await until(() => go.mock.calls.length === 1, "it is gone")
    expect(come).toHaveBeenCalledOnce()
  })
})

describe("refusals", () => {
  it("drop what else was sent in turns", async () => {
    const reads = Array.from({ length: 20 }, () => Buffer.alloc(65_536))
    const costs: number[] = []
    const source = {
      socket: { end() {}, destroy() {} },
      read: async () => reads.shift() ?? "end",
    } as unknown as ByteSource
    const turns = { waiting: 0, next: async (cost: number) => void costs.push(cost) }
    await linger(source, Buffer.alloc(0), { limits: defaultLimits, turns })
    expect(costs).toEqual(Array.from({ length: 16 }, () => 65_536))
  })

  it("end the connection: a thousand requests sent ahead are one verdict", async () => {
    await using upstream = await startUpstream(echo)
    await using test = await rig(upstream)
    const client = test.client()
    client.send("GET http://evil.test/ HTTP/1.1\r\nHost: evil.test\r\n\r\n".repeat(1_000))
    expect((await client.closed).text.match(/HTTP\/1\.1 403/g)).toHaveLength(1)
    expect(test.verdicts).toHaveLength(1)
  })

  it.each([
    ["tunnels", tunnel("evil.test:443")],
    ["requests", "GET http://evil.test/ HTTP/1.1\r\nHost: evil.test\r\n\r\n"],
    ["SOCKS", "\x05\x01\x00\x05\x01\x00\x03\x09evil.test\x01\xbb"],
  ])("of %s on hundreds of connections at once are spread over turns", async (_, bytes) => {
    await using upstream = await startUpstream(echo)
    await using test = await rig(upstream)
    const first = test.client()
    first.send(bytes)
    await first.closed
    const clients = Array.from({ length: 200 }, () => test.client())
    await Promise.all(clients.map(({ socket }) => once(socket, "connect")))
    const most = await mostInATurn(
      () => test.verdicts.length,
      () => {
        for (const client of clients) client.send(bytes)
        return Promise.all(clients.map(({ closed }) => closed))
      },
    )
    expect(test.verdicts).toHaveLength(201)
    expect(most).toBeLessThanOrEqual(perTurn)
  })
})

describe("a flood of DNS", () => {
  const query = Buffer.from([1, 2, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 4, ...Buffer.from("evil"), 0, 0, 1, 0, 1])
  const start = async () => {
    const proxy = await createEgressProxy({ egress: [] })
    const [server, dnsTcp, dnsUdp] = [createServer(), createServer(), createSocket("udp4")]
    dnsUdp.bind(0, "127.0.0.1")
    await once(dnsUdp, "listening")
    const port = await listening(dnsTcp)
    proxy.serve({ proxy: server, transparent: new Map(), dnsTcp, dnsUdp })
    return {
      proxy,
      port,
      dnsUdp,
      async [Symbol.asyncDispose]() {
        await proxy.close()
        dnsTcp.close()
        dnsUdp.close()
      },
    }
  }

  it("over TCP is answered in portions", async () => {
    await using test = await start()
    const client = rawClient(test.port)
    const framed = Buffer.concat([Buffer.from([0, query.length]), query])
    const denied = (): number => test.proxy.counters().denied
    const most = await mostInATurn(denied, async () => {
      client.socket.end(Buffer.concat(Array.from({ length: 2_000 }, () => framed)))
      await client.closed
    })
    expect(denied()).toBe(2_000)
    expect(most).toBeLessThanOrEqual(perTurn)
  })

  it("over UDP is left to the kernel while some wait", async () => {
    await using test = await start()
    let read = 0
    test.dnsUdp.on("message", () => (read += 1))
    const client = createSocket("udp4")
    const most = await mostInATurn(
      () => read,
      async () => {
        for (let count = 0; count < 100; count += 1) client.send(query, test.dnsUdp.address().port, "127.0.0.1")
        await until(() => read === 100, "all are read in the end")
      },
    )
    client.close()
    expect(most).toBeLessThanOrEqual(defaultLimits.queriesAhead)
    expect(test.proxy.counters().denied).toBeGreaterThan(0)
  })

  it("over UDP is answered in portions, and what does not fit the line is dropped and said once", async () => {
    await using test = await start()
    const denied = (): number => test.proxy.counters().denied
    const most = await mostInATurn(denied, async () => {
      for (let count = 0; count < 1_000; count += 1)
        test.dnsUdp.emit("message", query, { address: "127.0.0.1", port: 9, family: "IPv4", size: query.length })
      await until(() => denied() === defaultLimits.queriesWaiting + 1, "all that waited is answered")
    })
    expect(most).toBeLessThanOrEqual(perTurn + 1)
    expect(test.proxy.denials()).toContainEqual(expect.objectContaining({ reason: "budget", count: 1 }))
  })
})

describe("bytes that cost nothing to send", () => {
  it("WebSocket pings, empty or of one byte, take no memory each", () => {
    for (const frame of [
      [0x89, 0x80, 1, 2, 3, 4],
      [0x89, 0x81, 1, 2, 3, 4, 5],
      [0x82, 0x81, 1, 2, 3, 4, 5],
      [0x02, 0x80, 1, 2, 3, 4],
    ]) {
      const flood = Buffer.concat(Array.from({ length: 9_000 }, () => Buffer.from(frame)))
      const scanner = createWebSocketScanner(placeholders)
      expect(scanner.push(flood)).toEqual({ state: "clean" })
      expect(allocations(() => scanner.push(flood))).toBeLessThan(20)
    }
  })

  it("a ClientHello in records, or segments, of one byte takes no memory for each", () => {
    const record = (byte: number): Buffer => Buffer.from([22, 3, 1, 0, 1, byte])
    const start = [1, 0, 0xf0, 0].map(record)
    const records = Array.from({ length: 9_000 }, () => record(0))
    const whole = createClientHelloReader({ maxBytes: 65_536 })
    const together = Buffer.concat([...start, ...records])
    expect(allocations(() => whole.push(together))).toBeLessThan(20)
    const apart = createClientHelloReader({ maxBytes: 65_536 })
    for (const one of start) apart.push(one)
    const pushed = (): void => {
      for (const one of records) expect(apart.push(one).state).toBe("more")
    }
    expect(allocations(pushed)).toBeLessThan(40)
  })

  it("a body full of percent signs is decoded in one piece", () => {
    for (const text of ["%", "%4", "%41", "%%2", "%25"]) {
      const scanner = createPlaceholderScanner(placeholders)
      const bytes = Buffer.alloc(65_536, text)
      scanner.push(bytes)
      expect(allocations(() => scanner.push(bytes))).toBeLessThan(20)
    }
  })

  it("a header full of percent signs is searched once for each spelling", () => {
    const prepared = prepareSubstitutions(
      placeholders.map((placeholder) => ({ placeholder, value: "value", hosts: ["a.test"], headers: ["x"] })),
    )
    if (!prepared.ok) throw new Error(prepared.reason)
    const { substitutions } = prepared
    const needles = needlesForAll(placeholders).length
    for (const [text, layers] of [
      ["%", 1],
      ["%41", 2],
      ["%2541", 3],
      ["%252541", 4],
      ["%25252541", 4],
    ] as const) {
      const value = text.repeat(10_000)
      const request = { method: "GET", target: "/", host: "a.test", headers: [["X", value]] as const }
      const searches = vi.spyOn(Buffer.prototype, "includes")
      expect(substitutions.apply(request)).toMatchObject({ ok: true, headers: [["X", value]] })
      const count = searches.mock.calls.filter(([needle]) => typeof needle === "object").length
      searches.mockRestore()
      expect(count).toBe(layers * needles)
    }
  })

  it("chunks of one byte become one piece for each read", async () => {
    const reads: Buffer[] = Array.from({ length: 4 }, () => Buffer.from("1\r\na\r\n".repeat(10_000)))
    reads.push(Buffer.from("0\r\n\r\nnext"))
    const source = {
      read: async () => reads.shift() ?? "end",
      unread: (bytes: Buffer) => bytes.length > 0 && reads.unshift(bytes),
    } as unknown as ByteSource
    const body = createBodyReader(source, { kind: "chunked" }, defaultLimits)
    for (let count = 0; count < 4; count += 1) {
      let piece: unknown
      const pending = body.next(1_000).then((next) => (piece = next))
      await pending
      expect(piece).toMatchObject({ state: "bytes", bytes: { length: 10_000 } })
      // Taking them apart is what costs.
      expect((piece as { cost: number }).cost).toBeGreaterThan(200_000)
    }
    expect(await body.next(1_000)).toEqual({ state: "end" })
    expect(String(reads[0])).toBe("next")
  })

  it("chunks of one byte from an upstream reach the client put together", async () => {
    const many = "1\r\na\r\n".repeat(20_000)
    await using upstream = await startUpstream(
      respond(`HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n${many}0\r\n\r\n`),
    )
    await using test = await rig(upstream)
    const client = test.client()
    client.send("GET http://plain.good.test/ HTTP/1.1\r\nHost: plain.good.test\r\nConnection: close\r\n\r\n")
    const { text } = await client.closed
    const body = text.slice(text.indexOf("\r\n\r\n") + 4)
    expect(body.replace(/[^a\n]/g, "").match(/\n/g)?.length).toBeLessThan(1_000)
    expect(body.match(/(?<=^|\n)a+(?=\r)/g)?.join("")).toHaveLength(20_000)
  })
})

describe("on a proxy that many clients share", () => {
  /** A client at another address of this machine. */
  const from = (localAddress: string, port: number): Promise<Socket> => {
    const socket = connect({ port, host: "127.0.0.1", localAddress, allowHalfOpen: true }).on("error", () => {})
    return once(socket, "connect").then(() => socket)
  }
  const answer = async (socket: Socket, bytes: string): Promise<string> => {
    socket.write(bytes)
    return String((await Promise.race([once(socket, "data"), once(socket, "close")]))[0])
  }
  const plenty = (make: () => Promise<Socket>, count: number): Promise<Socket[]> =>
    Promise.all(Array.from({ length: count }, make))

  it.each([true, false])("one client's silent connections keep no other out (lines: %s)", async (bare) => {
    await using upstream = await startUpstream(echo)
    await using proxy = await createProxyWith(
      {
        egress: ["tcp://db.good.test:5432"],
        services: { "db.good.test": { address: "127.0.0.1", port: upstream.port } },
        listen: "127.0.0.1:0",
        limits: { openConnections: 8 },
      },
      { bare },
    )
    const port = proxy.port ?? 0
    const silent = await plenty(() => from("127.0.0.2", port), 8)
    await until(() => proxy.counters().connections === 8, "the proxy is full")
    const others = await plenty(() => from("127.0.0.3", port), 3)
    for (const other of others) expect(await answer(other, tunnel("db.good.test:5432"))).toContain(" 200 ")
    expect(proxy.counters()).toMatchObject({ connections: 8, passages: 3 })
    // Nor does the one that has the most push others out: its own makes way, or nobody's.
    const more = await plenty(() => from("127.0.0.2", port), 4)
    expect(await answer(more[0] as Socket, tunnel("db.good.test:5432"))).toContain("too_many_connections")
    expect(others.map(({ closed }) => closed)).toEqual([false, false, false])
    for (const socket of [...silent, ...others, ...more]) socket.destroy()
  })

  it("one client's slow names keep no other's from being resolved", async () => {
    await using upstream = await startUpstream(echo)
    const asked: string[] = []
    await using proxy = await createEgressProxy({
      egress: ["*.slow.test:5432", "tcp://db.good.test:5432"],
      listen: "127.0.0.1:0",
      resolve: (name) => {
        asked.push(name)
        return name.endsWith("slow.test") ? new Promise(() => {}) : ["93.184.216.34"]
      },
      dial: () => connect(upstream.port, "127.0.0.1"),
      limits: { resolving: 6, resolvingOfOne: 4 },
    })
    const port = proxy.port ?? 0
    const slow = await plenty(() => from("127.0.0.2", port), 20)
    slow.forEach((socket, at) => socket.write(tunnel(`n${at}.slow.test:5432`)))
    await until(() => proxy.counters().pending === 20, "all wait")
    expect(asked).toHaveLength(4)
    for (let count = 0; count < 3; count += 1)
      expect(await answer(await from("127.0.0.3", port), tunnel("db.good.test:5432"))).toContain(" 200 ")
    expect(proxy.counters().pending).toBe(20)
    for (const socket of slow) socket.destroy()
  })

  it("those who wait for names take turns, client by client, and leave the line when their time is up", async () => {
    const turnstile = createTurnstile(2, 1)
    const order: string[] = []
    const enter = async (client: string, name: string, deadline = new Deadline(60_000)): Promise<void> => {
      if (await turnstile.enter(deadline, client)) order.push(name)
      else order.push(`not ${name}`)
      deadline.settle()
    }
    const late = new Deadline(60_000)
    const all = [enter("a", "a1"), enter("b", "b1"), enter("a", "a2"), enter("a", "a3"), enter("b", "b2", late)]
    all.push(enter("c", "c1"))
    late.expire()
    for (const client of ["b", "a", "c", "a", "a"]) {
      await nextTurn()
      turnstile.leave(client)
    }
    await Promise.all(all)
    expect(order).toEqual(["a1", "b1", "not b2", "c1", "a2", "a3"])
    expect(turnstile.enter(new Deadline(0), "d")).toBe(true)
  })
})
