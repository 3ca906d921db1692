/**
 * A side that breaks off while it is not read, because the other takes nothing: nobody is told, so it is looked for.
 * Over every way but bare tunnels, which `relay/relay-bare.test.ts` has. What counts is what is still open, not how long.
 */
import type { Socket } from "node:net"
import { connect as connectTls, createServer as createTls } from "node:tls"
import { describe, expect, it } from "vitest"
import { createProxyWith, type EgressProxy } from "../../src/egress-proxy/proxy.ts"
import { createCallAuthority } from "../../src/egress-proxy/tls/authority.ts"
import { established, listening, rawClient, startUpstream, tunnel, until, type Upstream } from "./harness.ts"

const many = 10
const upload = "POST http://plain.good.test/ HTTP/1.1\r\nHost: plain.good.test\r\nContent-Length: 999999999\r\n\r\n"
const download = "GET http://plain.good.test/ HTTP/1.1\r\nHost: plain.good.test\r\n\r\n"
const endless = "HTTP/1.1 200 OK\r\nContent-Length: 999999999\r\n\r\n"

function pour(to: NodeJS.WritableStream): void {
  const more = (): void => {
    while (to.write(Buffer.alloc(65_536)));
  }
  to.on("drain", more)
  more()
}

const open = (upstream: Pick<Upstream, "port">, bare: boolean, ca?: string): Promise<EgressProxy> => {
  const service = { address: "127.0.0.1", port: upstream.port }
  return createProxyWith(
    {
      egress: ["plain.good.test:80", "tcp://db.good.test:5432", "api.good.test:443"],
      services: { "plain.good.test": service, "db.good.test": service, "api.good.test": service },
      listen: "127.0.0.1:0",
      limits: { lingerMs: 50 },
      ...(ca !== undefined && {
        upstreamCa: [ca],
        substitutions: [{ placeholder: "$$SECRET[API_TOKEN]$$", value: "v", hosts: ["api.good.test"] }],
      }),
    },
    { bare },
  )
}
/** Bytes in flight have come to rest, `count` of the exchanges open. */
async function stuck(proxy: EgressProxy, count: number): Promise<void> {
  let [before, since] = [0, 0]
  await until(() => {
    const { bytesIn, bytesOut, passages } = proxy.counters()
    since = passages === count && bytesIn + bytesOut > 1_000_000 && bytesIn + bytesOut === before ? since + 1 : 0
    before = bytesIn + bytesOut
    // Bytes of intercepted connections are counted twice a second.
    return since > 400
  }, "nothing more passes")
}
const gone = (proxy: EgressProxy): Promise<void> =>
  until(() => proxy.counters().passages + proxy.counters().connections === 0, "nothing is open")

describe.each([
  ["lines", true],
  ["sockets", false],
])("on %s", (_, bare) => {
  it("of tunnels whose upstream takes nothing a few are kept, the latest, and the others are told to be idle", async () => {
    await using upstream = await startUpstream((socket) => void socket.pause())
    const verdicts: string[] = []
    const proxy = await createProxyWith(
      {
        egress: ["tcp://db.good.test:5432"],
        services: { "db.good.test": { address: "127.0.0.1", port: upstream.port } },
        listen: "127.0.0.1:0",
        limits: { stalledPassages: 3, shedIdleMs: 1 },
        onVerdict: ({ reason }) => void verdicts.push(reason),
      },
      { bare },
    )
    const clients = Array.from({ length: many }, () => rawClient(proxy.port ?? 0))
    for (const client of clients) {
      client.send(tunnel("db.good.test:5432"))
      await client.sees(established)
      pour(client.socket)
    }
    await until(() => proxy.counters().passages === 3, "all but three are cut")
    await stuck(proxy, 3)
    expect(verdicts.filter((reason) => reason === "idle_timeout")).toHaveLength(many - 3)
    for (const client of clients) client.socket.destroy()
    await proxy.close()
  })

  it("clients that break off in the middle of uploads over plain HTTP are let go", async () => {
    await using upstream = await startUpstream((socket) => void socket.pause())
    await using proxy = await open(upstream, bare)
    const clients = Array.from({ length: many }, () => rawClient(proxy.port ?? 0))
    for (const client of clients) {
      client.send(upload)
      pour(client.socket)
    }
    await stuck(proxy, many)
    for (const client of clients) client.socket.resetAndDestroy()
    await gone(proxy)
  })

  it("upstreams that break off in the middle of downloads over plain HTTP are let go, and their clients reset", async () => {
    await using upstream = await startUpstream((socket) =>
      socket.once("data", () => {
        socket.write(endless)
        pour(socket)
      }),
    )
    await using proxy = await open(upstream, bare)
    const clients = Array.from({ length: many }, () => rawClient(proxy.port ?? 0))
    for (const client of clients) {
      client.send(download)
      client.socket.pause()
    }
    await stuck(proxy, many)
    for (const socket of upstream.sockets) socket.resetAndDestroy()
    await gone(proxy)
    for (const client of clients) {
      client.socket.resume()
      expect((await client.closed).reset).toBe(true)
    }
  })

  it("clients that break off in tunnels asked for by SOCKS are let go", async () => {
    await using upstream = await startUpstream((socket) => void socket.pause())
    await using proxy = await open(upstream, bare)
    const clients = Array.from({ length: many }, () => rawClient(proxy.port ?? 0))
    for (const client of clients) client.send("\x05\x01\x00\x05\x01\x00\x03\x0cdb.good.test\x15\x38")
    for (const client of clients) {
      await client.sees(/^\x05\x00\x05\x00/)
      pour(client.socket)
    }
    await stuck(proxy, many)
    for (const client of clients) client.socket.resetAndDestroy()
    await gone(proxy)
  })

  it("clients that break off in the middle of intercepted uploads are let go", async () => {
    const authority = createCallAuthority()
    const { cert, key } = authority.leafFor("api.good.test")
    const sockets = new Set<Socket>()
    const server = createTls({ cert, key, pauseOnConnect: false }, (socket) => {
      sockets.add(socket)
      socket.on("error", () => {})
      socket.pause()
    })
    const port = await listening(server)
    await using proxy = await open({ port }, bare, authority.caPem)
    const raw: Socket[] = []
    for (let count = 0; count < many; count += 1) {
      const client = rawClient(proxy.port ?? 0)
      raw.push(client.socket)
      client.send(tunnel("api.good.test:443"))
      await client.sees(established)
      client.socket.removeAllListeners("data").removeAllListeners("end")
      const secure = connectTls({ socket: client.socket, servername: "api.good.test", ca: proxy.caPem ?? "" })
      secure.on("error", () => {})
      secure.write("POST / HTTP/1.1\r\nHost: api.good.test\r\nContent-Length: 999999999\r\n\r\n")
      pour(secure)
    }
    await stuck(proxy, many)
    for (const socket of raw) socket.resetAndDestroy()
    await gone(proxy)
    for (const socket of sockets) socket.destroy()
    await new Promise((resolve) => server.close(resolve))
  })
})
