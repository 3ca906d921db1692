/** A sandbox's channel: transparent connections, the resolver, and the proxy's port on other addresses. */
import { createSocket } from "node:dgram"
import { once } from "node:events"
import { connect, createServer, type Socket } from "node:net"
import { describe, expect, it } from "vitest"
import { createEgressProxy, type EgressProxy } from "../../src/egress-proxy/index.ts"
import type { Verdict } from "../../src/egress-proxy/types.ts"
import { publicAddress } from "../corpus/egress-cases.ts"
import { alpn, hello, serverName } from "./tls/hello-bytes.ts"
import { echo, listening, rawClient, startUpstream, until, type Client, type Upstream } from "./harness.ts"

interface Sandbox extends AsyncDisposable {
  readonly proxy: EgressProxy
  readonly verdicts: Verdict[]
  /** A connection that the program made to this address and port, both local in its network. */
  dial(address: string, port: number): Promise<Client>
  ask(name: string, type?: number): Promise<{ readonly code: number; readonly address: string | undefined }>
}

const proxyPort = 3128

async function sandbox(upstream: Upstream): Promise<Sandbox> {
  const verdicts: Verdict[] = []
  const proxy = await createEgressProxy({
    egress: [
      "api.good.test:443",
      "plain.good.test:80",
      "tcp://db.good.test:5432",
      "93.184.216.34:443",
      "*.cdn.good.test:443",
    ],
    resolve: () => [publicAddress],
    dial: () => connect(upstream.port, "127.0.0.1"),
    onVerdict: (verdict) => verdicts.push(verdict),
    limits: { lingerMs: 20 },
  })
  // The kernel gives an accepted socket the address that was dialled; here a wrapper does.
  const [proxyServer, transparent] = [createServer(), new Map([80, 443, 5432].map((port) => [port, createServer()]))]
  const dnsUdp = createSocket("udp4")
  dnsUdp.bind(0, "127.0.0.1")
  await once(dnsUdp, "listening")
  const serving = proxy.serve({ proxy: proxyServer, transparent, dnsUdp })
  const clients: Client[] = []
  return {
    proxy,
    verdicts,
    async dial(address, port) {
      const outer = createServer((socket) => {
        Object.defineProperties(socket, { localAddress: { value: address }, localPort: { value: port } })
        ;(transparent.get(port) ?? proxyServer).emit("connection", socket as Socket)
        outer.close()
      })
      const client = rawClient(await listening(outer))
      clients.push(client)
      return client
    },
    async ask(name, type = 1) {
      const asker = createSocket("udp4")
      const labels = name.split(".").flatMap((label) => [label.length, ...Buffer.from(label)])
      asker.send(
        Buffer.from([1, 2, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, ...labels, 0, 0, type, 0, 1]),
        dnsUdp.address().port,
        "127.0.0.1",
      )
      const [reply] = (await once(asker, "message")) as [Buffer]
      asker.close()
      return {
        code: (reply[3] ?? 0) & 15,
        address: reply.readUInt16BE(6) === 0 ? undefined : [...reply.subarray(-4)].join("."),
      }
    },
    async [Symbol.asyncDispose]() {
      await serving[Symbol.asyncDispose]()
      for (const client of clients) client.socket.destroy()
      await proxy.close()
      await new Promise<void>((resolve) => dnsUdp.close(() => resolve()))
    },
  }
}

describe("the resolver of a sandbox", () => {
  it("hands out one synthetic address for each declared name, and none for others", async () => {
    await using upstream = await startUpstream(echo)
    await using box = await sandbox(upstream)
    const db = await box.ask("db.good.test")
    expect(db).toMatchObject({ code: 0, address: expect.stringMatching(/^198\.1[89]\./) })
    expect(await box.ask("DB.good.test")).toEqual(db)
    expect((await box.ask("x.cdn.good.test")).address).not.toBe(db.address)
    expect(await box.ask("db.good.test", 28)).toEqual({ code: 0, address: undefined })
    expect(await box.ask("evil.test")).toEqual({ code: 3, address: undefined })
    expect(await box.ask("cdn.good.test")).toEqual({ code: 3, address: undefined })
    expect(await box.ask("localhost")).toEqual({ code: 3, address: undefined })
    expect(box.verdicts).toMatchObject([
      { decision: "deny", reason: "host_not_allowed", protocol: "dns", host: "evil.test" },
      { decision: "deny", reason: "host_not_allowed", host: "cdn.good.test" },
      { decision: "deny", reason: "reserved_name", host: "localhost" },
    ])
  })

  it("answers reverse lookups with no, and does not call them an attempt to get out", async () => {
    await using upstream = await startUpstream(echo)
    await using box = await sandbox(upstream)
    expect(await box.ask("2.0.18.198.in-addr.arpa", 12)).toEqual({ code: 3, address: undefined })
    expect(box.proxy.denials()).toEqual([])
  })
})

describe("programs that ignore proxy variables", () => {
  it("row 98: reach a tcp:// entry by the address they were given", async () => {
    await using upstream = await startUpstream(echo)
    await using box = await sandbox(upstream)
    const { address } = await box.ask("db.good.test")
    for (const spelled of [address ?? "", `::ffff:${address}`]) {
      const client = await box.dial(spelled, 5432)
      client.send("startup")
      await client.sees(/startup$/)
    }
    expect(box.verdicts.at(-1)).toMatchObject({
      decision: "allow",
      protocol: "tcp",
      host: "db.good.test",
      port: 5432,
      address: publicAddress,
    })
  })

  it("reach a web entry by TLS with its name, and not with another", async () => {
    await using upstream = await startUpstream(echo)
    await using box = await sandbox(upstream)
    const { address = "" } = await box.ask("api.good.test")
    const good = await box.dial(address, 443)
    good.send(hello({ extensions: [serverName("api.good.test"), alpn("h2")] }).toString("latin1"))
    await good.sees(/api\.good\.test/)
    const bad = await box.dial(address, 443)
    bad.send(hello({ extensions: [serverName("evil.test")] }).toString("latin1"))
    await bad.closed
    expect(box.verdicts.at(-1)).toMatchObject({ reason: "sni_mismatch", protocol: "tcp" })
  })

  it("reach a listed literal, which needs no name", async () => {
    await using upstream = await startUpstream(echo)
    await using box = await sandbox(upstream)
    const client = await box.dial("93.184.216.34", 443)
    client.send(hello({ extensions: [alpn("h2")] }).toString("latin1"))
    await client.sees(/h2/)
    expect(box.verdicts).toMatchObject([{ decision: "allow", host: "93.184.216.34", port: 443 }])
  })

  it("row 99: are refused at an address that was never handed out", async () => {
    await using upstream = await startUpstream(echo)
    await using box = await sandbox(upstream)
    for (const [address, reason] of [
      ["8.8.8.8", "no_binding"],
      ["169.254.169.254", "metadata"],
      ["127.0.0.1", "loopback"],
      ["198.18.200.200", "stale_binding"],
    ] as const) {
      const client = await box.dial(address, 443)
      await client.closed
      expect(box.verdicts.at(-1)).toMatchObject({ decision: "deny", reason, host: address, port: 443 })
    }
    expect(upstream.sockets.size).toBe(0)
  })

  it("row 26: are refused at a port that the name is not declared with", async () => {
    await using upstream = await startUpstream(echo)
    await using box = await sandbox(upstream)
    const { address = "" } = await box.ask("api.good.test")
    await (await box.dial(address, 5432)).closed
    expect(box.verdicts.at(-1)).toMatchObject({ reason: "port_not_allowed", host: "api.good.test", port: 5432 })
  })

  it("row 100: are refused at an address of an older generation", async () => {
    await using upstream = await startUpstream(echo)
    await using box = await sandbox(upstream)
    const { address = "" } = await box.ask("db.good.test")
    box.proxy.update({ egress: ["tcp://other.good.test:5432", "tcp://db.good.test:5432"] })
    await box.ask("other.good.test")
    await (await box.dial(address, 5432)).closed
    expect(box.verdicts.at(-1)).toMatchObject({ decision: "deny", reason: "stale_binding" })
  })
})

describe("the proxy's port in a sandbox", () => {
  it("is the proxy on loopback, for HTTP and SOCKS5", async () => {
    await using upstream = await startUpstream(echo)
    await using box = await sandbox(upstream)
    const http = await box.dial("127.0.0.1", proxyPort)
    http.send("GET http://evil.test/ HTTP/1.1\r\nHost: evil.test\r\n\r\n")
    await http.sees(/^HTTP\/1\.1 403 /)
    const socks = await box.dial("127.0.0.1", proxyPort)
    socks.send("\x05\x01\0\x05\x01\0\x03\x09evil.test\x01\xbb")
    await socks.sees(/^\x05\0\x05\x02/)
    await until(() => box.proxy.denials().length === 2, "both are denied")
  })

  it("row 103: is taken for what it is on any other address", async () => {
    await using upstream = await startUpstream(echo)
    await using box = await sandbox(upstream)
    const client = await box.dial("8.8.8.8", proxyPort)
    client.send("GET http://plain.good.test/ HTTP/1.1\r\nHost: plain.good.test\r\n\r\n")
    await client.closed
    expect(box.verdicts).toMatchObject([{ decision: "deny", reason: "no_binding", host: "8.8.8.8", port: proxyPort }])
  })
})

describe("a listener that cannot accept", () => {
  it("for want of a descriptor ends neither the process nor the channel", async () => {
    await using upstream = await startUpstream(echo)
    const proxy = await createEgressProxy({
      egress: ["tcp://db.good.test:5432"],
      services: { "db.good.test": { address: "127.0.0.1", port: upstream.port } },
    })
    const server = createServer()
    const port = await listening(server)
    proxy.serve({ proxy: server, transparent: new Map() })
    const { _handle: handle } = server as unknown as { _handle: { onconnection(status: number): void } }
    const outOfDescriptors = -24
    expect(() => handle.onconnection(outOfDescriptors)).not.toThrow()
    const client = rawClient(port)
    client.send("CONNECT db.good.test:5432 HTTP/1.1\r\n\r\n")
    await client.sees(/^HTTP\/1\.1 200 /)
    client.socket.destroy()
    await proxy.close()
    server.close()
  })
})
