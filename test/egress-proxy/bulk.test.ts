/** Tunnels through the default dialler, whose buffers are used again: every byte arrives, as it was sent. */
import { createHash } from "node:crypto"
import { describe, expect, it } from "vitest"
import { createEgressProxy } from "../../src/egress-proxy/index.ts"
import { rawClient, startUpstream, tunnel, established, until } from "./harness.ts"

const block = (at: number, size: number): Buffer => Buffer.alloc(size, createHash("sha256").update(String(at)).digest())

describe("a tunnel through the default dialler", () => {
  it("delivers bytes unchanged to a reader that stops and starts", async () => {
    const sizes = Array.from({ length: 60 }, (_, at) => ((at * 7_919) % 190_000) + 1)
    const sent = Buffer.concat(sizes.map((size, at) => block(at, size)))
    await using upstream = await startUpstream((socket) => socket.once("data", () => socket.end(sent)))
    await using proxy = await createEgressProxy({
      egress: ["tcp://db.good.test:5432"],
      services: { "db.good.test": { address: "127.0.0.1", port: upstream.port } },
      listen: "127.0.0.1:0",
    })
    const client = rawClient(proxy.port ?? 0)
    client.send(tunnel("db.good.test:5432"))
    await client.sees(established)
    const stops = setInterval(() => (client.socket.isPaused() ? client.socket.resume() : client.socket.pause()), 3)
    client.send("go")
    const { text } = await client.closed
    clearInterval(stops)
    const got = Buffer.from(text.slice(text.indexOf("\r\n\r\n") + 4), "latin1")
    expect(got.length).toBe(sent.length)
    expect(got.equals(sent)).toBe(true)
    await until(() => proxy.counters().passages === 0, "the tunnel is over")
    expect(proxy.counters()).toMatchObject({ bytesIn: sent.length, bytesOut: 2, pending: 0 })
  })

  it("passes half-closes, resets and upstreams that speak first", async () => {
    await using upstream = await startUpstream((socket) => {
      socket.write("banner")
      socket.on("end", () => socket.end("bye"))
      socket.on("data", (chunk) => String(chunk) === "reset" && socket.resetAndDestroy())
    })
    await using proxy = await createEgressProxy({
      egress: ["tcp://db.good.test:5432"],
      services: { "db.good.test": { address: "127.0.0.1", port: upstream.port } },
      listen: "127.0.0.1:0",
    })
    const polite = rawClient(proxy.port ?? 0)
    polite.send(tunnel("db.good.test:5432"))
    await polite.sees(/banner$/)
    polite.socket.end()
    expect((await polite.closed).text).toMatch(/bannerbye$/)
    const rude = rawClient(proxy.port ?? 0)
    rude.send(tunnel("db.good.test:5432"))
    await rude.sees(/banner$/)
    rude.send("reset")
    expect((await rude.closed).reset).toBe(true)
    await until(() => proxy.counters().connections === 0, "nothing is open")
    expect(proxy.counters()).toMatchObject({ passages: 0, pending: 0 })
  })
})
