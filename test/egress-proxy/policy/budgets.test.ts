/** Budgets: the n-th unit passes, the n+1-th is refused with the budget's name. */
import { describe, expect, it } from "vitest"
import { createBudgetMeter, defaultBudgets } from "../../../src/egress-proxy/policy/budgets.ts"
import { echo, established, respond, rig, startUpstream, tunnel, until } from "../harness.ts"

const get = "GET http://plain.good.test/ HTTP/1.1\r\nHost: plain.good.test\r\n\r\n"

describe("the budget meter", () => {
  it("lets exactly as much pass as the limit says", () => {
    for (const name of ["bytesOut", "bytesIn"] as const) {
      const meter = createBudgetMeter()
      const limits = { ...defaultBudgets, [name]: 10 }
      expect([meter[name](limits, 9), meter[name](limits, 1), meter[name](limits, 1)]).toEqual([
        undefined,
        undefined,
        name,
      ])
      expect(meter.used[name]).toBe(10)
    }
  })

  it("counts a name once and a request each time", () => {
    const meter = createBudgetMeter()
    const limits = { ...defaultBudgets, distinctNames: 2, requests: 4 }
    expect(["a", "a", "b", "c", "a", "a"].map((name) => meter.request(limits, name))).toEqual([
      undefined,
      undefined,
      undefined,
      "distinctNames",
      undefined,
      "requests",
    ])
  })

  it("keeps what was used when the limits change", () => {
    const meter = createBudgetMeter()
    meter.connection({ ...defaultBudgets, connections: 5 })
    expect(meter.connection({ ...defaultBudgets, connections: 1 })).toBe("connections")
  })
})

describe("budgets of a proxy", () => {
  it("counts the head of a WebSocket's answer as it counts any other", async () => {
    const answer =
      "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n"
    const handshake = `${get.slice(0, -2)}Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n`
    const first = { [answer.length - 1]: "429", [answer.length]: "101", [answer.length + 1]: "101" }
    for (const [bytesIn, status] of Object.entries(first)) {
      await using upstream = await startUpstream(respond(answer))
      await using test = await rig(upstream, { budgets: { bytesIn: Number(bytesIn) } })
      const client = test.client()
      client.send(handshake)
      expect(await client.sees(/\r\n\r\n/), bytesIn).toContain(`HTTP/1.1 ${status} `)
    }
  })

  it("row 113: refuses the request after the last one, and says which budget", async () => {
    await using upstream = await startUpstream(respond("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"))
    await using test = await rig(upstream, { budgets: { requests: 2 } })
    const client = test.client()
    client.send(get + get + get)
    await client.sees(/ok[^]*ok[^]*HTTP\/1\.1 429 [^]*"reason":"budget"[^]*"rule":"budgets\.requests"/)
    expect(test.proxy.denials()).toEqual([
      { layer: "egress", reason: "budget", target: "plain.good.test:80", count: 1 },
    ])
  })

  it("row 113: refuses the connection after the last one", async () => {
    await using upstream = await startUpstream(echo)
    await using test = await rig(upstream, { budgets: { connections: 1 } })
    const first = test.client()
    first.send(tunnel("db.good.test:5432"))
    await first.sees(established)
    const second = test.client()
    second.send(tunnel("db.good.test:5432"))
    expect((await second.closed).text).toContain("budgets.connections")
  })

  it("row 63: cuts endless subdomains at the budget of names, before they are resolved", async () => {
    await using upstream = await startUpstream(echo)
    await using test = await rig(upstream, { budgets: { distinctNames: 3 } })
    for (const label of ["a", "b", "c"]) {
      const client = test.client()
      client.send(tunnel(`${label}.cdn.good.test:443`))
      await client.sees(established)
    }
    const client = test.client()
    client.send(tunnel("c2VjcmV0.cdn.good.test:443"))
    expect((await client.closed).text).toContain("budgets.distinctNames")
    expect(test.resolved).toEqual(["a.cdn.good.test", "b.cdn.good.test", "c.cdn.good.test"])
  })

  it("row 113: cuts a tunnel at the byte budget, in either direction, and lets exactly that much through", async () => {
    let received = 0
    await using upstream = await startUpstream((socket) => socket.on("data", (chunk) => (received += chunk.length)))
    await using test = await rig(upstream, { budgets: { bytesOut: 10 } })
    const client = test.client()
    client.send(tunnel("db.good.test:5432"))
    await client.sees(established)
    client.send("0123456789")
    await until(() => received === 10, "ten bytes arrived")
    client.send("x")
    await client.closed
    expect(received).toBe(10)
    expect(test.verdicts.at(-1)).toMatchObject({ decision: "deny", reason: "budget", rule: "budgets.bytesOut" })

    await using talker = await startUpstream((socket) => socket.write("0123456789x"))
    await using other = await rig(talker, { budgets: { bytesIn: 10 } })
    const reader = other.client()
    reader.send(tunnel("db.good.test:5432"))
    await reader.closed
    expect(other.verdicts.at(-1)).toMatchObject({ rule: "budgets.bytesIn" })
  })

  it("counts the heads of requests and responses too", async () => {
    await using upstream = await startUpstream(respond("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"))
    await using test = await rig(upstream, { budgets: { bytesOut: 2_000 } })
    const client = test.client()
    client.send(`GET http://plain.good.test/?${"secret".repeat(1_000)} HTTP/1.1\r\nHost: plain.good.test\r\n\r\n`)
    const { text } = await client.closed
    expect(text).toMatch(/^HTTP\/1\.1 429 /)
    expect(text).toContain('"rule":"budgets.bytesOut"')
    expect(test.verdicts.filter(({ reason }) => reason === "budget")).toMatchObject([{ rule: "budgets.bytesOut" }])
    expect(test.proxy.counters().passages).toBe(0)
  })

  it("answers a request whose body or whose response goes over, as long as nothing was answered yet", async () => {
    await using upstream = await startUpstream(
      respond(`HTTP/1.1 200 OK\r\nX: ${"y".repeat(500)}\r\nContent-Length: 0\r\n\r\n`),
    )
    await using out = await rig(upstream, { budgets: { bytesOut: 500 } })
    const sender = out.client()
    sender.send(
      `POST http://plain.good.test/ HTTP/1.1\r\nHost: plain.good.test\r\nContent-Length: 900\r\n\r\n${"z".repeat(900)}`,
    )
    expect((await sender.closed).text).toMatch(/^HTTP\/1\.1 429 [^]*budgets\.bytesOut/)
    await using into = await rig(upstream, { budgets: { bytesIn: 200 } })
    const reader = into.client()
    reader.send("GET http://plain.good.test/ HTTP/1.1\r\nHost: plain.good.test\r\n\r\n")
    expect((await reader.closed).text).toMatch(/^HTTP\/1\.1 429 [^]*budgets\.bytesIn/)
  })

  it("takes `Infinity` and any other long time for what it is", async () => {
    await using upstream = await startUpstream(echo)
    const resolve = (): Promise<string[]> => new Promise((done) => setTimeout(() => done(["93.184.216.34"]), 30))
    for (const ms of [Number.POSITIVE_INFINITY, 2 ** 40]) {
      await using test = await rig(upstream, { resolve, budgets: { connectTimeoutMs: ms, idleTimeoutMs: ms } })
      const client = test.client()
      client.send(tunnel("db.good.test:5432"))
      await client.sees(established)
    }
  })
})
