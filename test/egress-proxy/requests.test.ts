/** Requests and their responses over time, and clients that dribble, flood, or go away. */
import type { Socket } from "node:net"
import { describe, expect, it } from "vitest"
import { echo, established, respond, rig, startUpstream, tunnel, until } from "./harness.ts"

const idle = { connections: 0, passages: 0, pending: 0 }
const get = "GET http://plain.good.test/ HTTP/1.1\r\nHost: plain.good.test\r\n\r\n"

/** Answers once forty bytes of a body have come. */
const respondAfterBody = (socket: Socket): void => {
  let body = 0
  socket.on("data", (chunk) => {
    const text = chunk.toString("latin1")
    body += text.includes("\r\n\r\n") ? text.length - text.indexOf("\r\n\r\n") - 4 : text.length
    if (body === 40) socket.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
  })
}

describe("requests", () => {
  it("forwards the 100 that the client asked for, and the body after it", async () => {
    await using upstream = await startUpstream((socket) => {
      let seen = ""
      socket.on("data", (chunk) => {
        const before = seen
        seen += chunk.toString("latin1")
        if (!before.includes("\r\n\r\n") && seen.includes("\r\n\r\n")) socket.write("HTTP/1.1 100 Continue\r\n\r\n")
        if (seen.endsWith("body!")) socket.write("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ndone")
      })
    })
    await using test = await rig(upstream)
    const client = test.client()
    client.send(
      "POST http://plain.good.test/ HTTP/1.1\r\nHost: plain.good.test\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n",
    )
    await client.sees(/^HTTP\/1\.1 100 Continue\r\n\r\n$/)
    client.send("body!")
    await client.sees(/200 OK[^]*done$/)
  })

  it("answers a HEAD without a body and goes on with the next request", async () => {
    await using upstream = await startUpstream(respond("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n"))
    await using test = await rig(upstream)
    const client = test.client()
    client.send(get.replace("GET", "HEAD"))
    await client.sees(/content-length: 1000[^]*\r\n\r\n$/)
    client.send("GET http://evil.test/ HTTP/1.1\r\nHost: evil.test\r\n\r\n")
    await client.sees(/HTTP\/1\.1 403 /)
  })

  it("goes on with pipelined requests in order, and ends the connection with the first refusal", async () => {
    await using upstream = await startUpstream(
      respond("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"),
    )
    await using test = await rig(upstream)
    const client = test.client()
    client.send(`${get}${get}GET http://evil.test/ HTTP/1.1\r\nHost: evil.test\r\n\r\n${get}`)
    const { text } = await client.closed
    expect(text).toMatch(
      /200 OK[^]*0\r\n\r\nHTTP\/1\.1 200 OK[^]*0\r\n\r\nHTTP\/1\.1 403 [^]*connection: close[^]*\}\n$/,
    )
    expect(test.verdicts.map(({ reason }) => reason)).toEqual(["allowed", "allowed", "host_not_allowed"])
  })

  it("closes after a response without a length to an HTTP/1.0 client", async () => {
    await using upstream = await startUpstream((socket) =>
      socket.once("data", () => socket.end("HTTP/1.1 200 OK\r\n\r\nuntil the end")),
    )
    await using test = await rig(upstream)
    const client = test.client()
    client.send("GET http://plain.good.test/ HTTP/1.0\r\n\r\n")
    expect((await client.closed).text).toMatch(/^HTTP\/1\.1 200 OK\r\nconnection: close\r\n\r\nuntil the end$/)
  })

  it("resets the client when a response breaks off", async () => {
    await using upstream = await startUpstream((socket) =>
      socket.once("data", () => socket.end("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort")),
    )
    await using test = await rig(upstream)
    const client = test.client()
    client.send(get)
    expect(await client.closed).toMatchObject({ reset: true })
    await until(() => test.proxy.counters().connections === 0, "the client is gone")
    expect(test.proxy.counters()).toMatchObject(idle)
  })

  it("carries a WebSocket both ways", async () => {
    await using upstream = await startUpstream((socket) =>
      socket.once("data", () => {
        socket.write(
          "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n",
        )
        echo(socket)
      }),
    )
    await using test = await rig(upstream)
    const client = test.client()
    client.send(
      "GET http://plain.good.test/ HTTP/1.1\r\nHost: plain.good.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
    )
    await client.sees(/101 Switching/)
    client.send("frame")
    await client.sees(/frame$/)
    expect(test.verdicts).toMatchObject([{ decision: "allow", protocol: "websocket" }])
  })

  it("bounds an upstream that never answers", async () => {
    await using upstream = await startUpstream(() => {})
    await using test = await rig(upstream, { limits: { responseHeadMs: 30 } })
    const client = test.client()
    client.send(get)
    expect((await client.closed).text).toMatch(/^HTTP\/1\.1 504 [^]*upstream_timeout/)
    expect(test.proxy.counters()).toMatchObject({ passages: 0, pending: 0 })
  })

  it("bounds an upstream that sends interim responses for ever", async () => {
    await using upstream = await startUpstream((socket) =>
      socket.once("data", () => socket.write("HTTP/1.1 103 Early Hints\r\n\r\n".repeat(100))),
    )
    await using test = await rig(upstream)
    const client = test.client()
    client.send(get)
    expect((await client.closed).text).toMatch(/^HTTP\/1\.1 502 /)
  })

  it("answers a client whose upstream answers before the body is sent", async () => {
    await using upstream = await startUpstream((socket) =>
      socket.once("data", () => socket.write("HTTP/1.1 413 Content Too Large\r\nContent-Length: 0\r\n\r\n")),
    )
    await using test = await rig(upstream)
    const client = test.client()
    client.send("POST http://plain.good.test/ HTTP/1.1\r\nHost: plain.good.test\r\nContent-Length: 500000\r\n\r\nbegin")
    expect((await client.closed).text).toMatch(/^HTTP\/1\.1 413 [^]*connection: close/)
  })
})

describe("a response of very many headers", () => {
  it("arrives with all of them", async () => {
    const many = "a: b\r\n".repeat(1_500)
    await using upstream = await startUpstream(
      respond(`HTTP/1.1 200 OK\r\n${many}X-Last: here\r\nContent-Length: 2\r\n\r\nok`),
    )
    await using test = await rig(upstream)
    const client = test.client()
    client.send(get)
    expect(await client.sees(/ok$/)).toContain("X-Last: here")
  })
})

describe("hostile clients", () => {
  it("row 108: a head that dribbles in is cut off", async () => {
    await using upstream = await startUpstream(echo)
    await using test = await rig(upstream, { limits: { headMs: 40 } })
    const client = test.client()
    client.send("GET http://plain.good.test/ HTTP/1.1\r\nX: ")
    const drip = setInterval(() => client.send("a"), 5)
    const { text } = await client.closed
    clearInterval(drip)
    expect(text).toMatch(/^HTTP\/1\.1 408 [^]*head_timeout/)
  })

  it("row 108: a ClientHello that dribbles in is cut off", async () => {
    await using upstream = await startUpstream(echo)
    await using test = await rig(upstream, { limits: { headMs: 40 } })
    const client = test.client()
    client.send(tunnel("api.good.test:443"))
    await client.sees(established)
    client.send("\x16\x03\x01\x02\x00\x01")
    await client.closed
    expect(test.verdicts.at(-1)).toMatchObject({ reason: "bad_client_hello" })
    expect(test.proxy.counters()).toMatchObject({ passages: 0 })
  })

  it("row 108: a connection that says nothing is closed", async () => {
    await using upstream = await startUpstream(echo)
    await using test = await rig(upstream, { limits: { silentMs: 20 } })
    expect((await test.client().closed).text).toBe("")
  })

  it("row 108: chunks without end stop at the byte budget", async () => {
    await using upstream = await startUpstream((socket) => socket.resume())
    await using test = await rig(upstream, { budgets: { bytesOut: 100_000 } })
    const client = test.client()
    client.send("POST http://plain.good.test/ HTTP/1.1\r\nHost: plain.good.test\r\nTransfer-Encoding: chunked\r\n\r\n")
    const pour = setInterval(() => client.send(`4000\r\n${"x".repeat(0x4000)}\r\n`), 1)
    await client.closed
    clearInterval(pour)
    expect(test.verdicts.at(-1)).toMatchObject({ decision: "deny", reason: "budget", rule: "budgets.bytesOut" })
    expect(test.proxy.counters().bytesOut).toBeLessThanOrEqual(100_000)
  })

  it("counts what goes to each host and comes from it, to the byte, whatever came to nothing", async () => {
    await using upstream = await startUpstream(
      respond("HTTP/1.1 200 OK\r\nContent-Length: 3000\r\n\r\n" + "x".repeat(3000)),
    )
    await using test = await rig(upstream)
    for (const text of [
      get,
      `POST http://plain.good.test/ HTTP/1.1\r\nHost: plain.good.test\r\nContent-Length: 700\r\n\r\n${"y".repeat(700)}`,
    ]) {
      const client = test.client()
      client.send(text)
      await client.sees(/x{3000}$/)
    }
    const refused = test.client()
    refused.send("GET http://evil.test/ HTTP/1.1\r\nHost: evil.test\r\n\r\n")
    await refused.sees(/403/)
    const [only, ...others] = test.proxy.carried()
    expect(others).toEqual([])
    const { bytesOut, bytesIn } = test.proxy.counters()
    expect(only).toEqual({ target: "plain.good.test:80", bytesOut, bytesIn })
    expect([bytesIn > 6000, bytesIn < 6600, bytesOut > 700, bytesOut < 1300]).toEqual([true, true, true, true])
  })

  it("counts the bytes of a tunnel, and none of one that was refused", async () => {
    await using upstream = await startUpstream(echo)
    await using test = await rig(upstream)
    const first = test.client()
    first.send("CONNECT db.good.test:5432 HTTP/1.1\r\nHost: db.good.test:5432\r\n\r\n")
    await first.sees(/200/)
    first.send("d".repeat(500))
    await first.sees(/d{500}$/)
    const refused = test.client()
    refused.send("CONNECT db.good.test:5433 HTTP/1.1\r\nHost: db.good.test:5433\r\n\r\n")
    await refused.sees(/403/)
    expect(test.proxy.carried()).toEqual([{ target: "db.good.test:5432", bytesOut: 500, bytesIn: 500 }])
  })

  it("row 108: connections over the cap are refused, and the oldest idle tunnel is shed first", async () => {
    await using upstream = await startUpstream(echo)
    await using test = await rig(upstream, { limits: { openConnections: 2, shedIdleMs: 0 } })
    const [first, second] = [test.client(), test.client()]
    first.send(tunnel("db.good.test:5432"))
    await first.sees(established)
    second.send(tunnel("db.good.test:5432"))
    await second.sees(established)
    const third = test.client()
    await first.closed
    third.send(tunnel("db.good.test:5432"))
    await third.sees(established)

    await using strict = await rig(upstream, { limits: { openConnections: 1, shedIdleMs: 60_000 } })
    const holder = strict.client()
    holder.send(tunnel("db.good.test:5432"))
    await holder.sees(established)
    await strict.client().closed
    expect(strict.verdicts.at(-1)).toMatchObject({ decision: "infrastructure", reason: "too_many_connections" })
  })

  it("row 108: a connection over the cap hears why, in its own protocol, and few enough are told at once", async () => {
    await using upstream = await startUpstream(echo)
    await using test = await rig(upstream, { limits: { openConnections: 0, turnedAway: 2, lingerMs: 200 } })
    const web = test.client()
    web.send(tunnel("db.good.test:5432"))
    expect((await web.closed).text).toMatch(/^HTTP\/1\.1 503 [^]*x-caisson-denied: too_many_connections/)
    const socks = test.client()
    socks.send("\x05\x01\x00")
    expect((await socks.closed).text).toBe("\x05\xff")
    const crowd = Array.from({ length: 8 }, () => test.client())
    const ends = await Promise.all(crowd.map(({ closed }) => closed))
    expect(ends.filter(({ reset }) => reset).length).toBeGreaterThanOrEqual(6)
    expect(test.proxy.counters()).toMatchObject({ connections: 0, passages: 0 })
  })

  it("a body that ends before its length is bad framing, and never complete upstream", async () => {
    let seen = ""
    await using upstream = await startUpstream((socket) => socket.on("data", (chunk) => (seen += String(chunk))))
    await using test = await rig(upstream)
    const client = test.client()
    client.send("POST http://plain.good.test/ HTTP/1.1\r\nHost: plain.good.test\r\nContent-Length: 10\r\n\r\nabc")
    client.socket.end()
    expect((await client.closed).text).toMatch(/^HTTP\/1\.1 400 [^]*bad_framing/)
    expect(seen.length === 0 || seen.endsWith("\r\n\r\nabc") || seen.endsWith("\r\n\r\n")).toBe(true)
  })

  it("a long upload is not taken for a slow answer", async () => {
    await using upstream = await startUpstream(respondAfterBody)
    await using test = await rig(upstream, { limits: { responseHeadMs: 1_000 } })
    const client = test.client()
    client.send("POST http://plain.good.test/ HTTP/1.1\r\nHost: plain.good.test\r\nContent-Length: 40\r\n\r\n")
    for (let sent = 0; sent < 40; sent += 4) {
      client.send("abcd")
      await new Promise((resolve) => setTimeout(resolve, 120))
    }
    expect(await client.sees(/ok$/)).toMatch(/^HTTP\/1\.1 200 /)
  })

  it("a client that goes away while its upstream is dialled leaves nothing behind", async () => {
    await using upstream = await startUpstream(echo)
    await using test = await rig(upstream, { resolve: () => new Promise(() => {}) })
    const client = test.client()
    client.send(tunnel("db.good.test:5432"))
    await until(() => test.proxy.counters().pending === 1, "the dial is pending")
    client.socket.resetAndDestroy()
    await until(() => test.proxy.counters().pending === 0, "the dial is given up")
    await until(() => test.proxy.counters().connections === 0, "the client is gone")
  })
})
