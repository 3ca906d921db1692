import { createServer, type Server } from "node:net"
import { once } from "node:events"
import { afterAll, beforeEach, expect, it } from "vitest"
import type { Channel } from "../../../src/sandbox/backend.ts"
import { acquireEngine } from "../../support/docker-engine.ts"
import { engineSuite } from "./engine-suite.ts"
import { leftovers, openPlace, type Place } from "./support.ts"

const engine = await acquireEngine()
const socket = engine.ok ? engine.socket : ""
let place: Place

const spec = { proxyPort: 3128, transparentPorts: [80, 443], dns: true } as const
const dial = (address: string, port: number): string[] => [
  "/usr/bin/perl",
  "-e",
  `use IO::Socket::INET; my $s = IO::Socket::INET->new(PeerAddr => "${address}", PeerPort => ${port}, Timeout => 5) or do { print "refused: $!"; exit }; print $s "hello\\n"; print scalar(<$s>)`,
]
const runWith = async (argv: readonly string[], serve: (channel: Channel) => void) => {
  const prepared = await place.prepare({ network: spec })
  if (prepared.channel === "none") throw new Error("no channel")
  serve(prepared.channel)
  const exited = await prepared.run({ argv, workspace: place.workspace })
  if (!exited.ok) throw new Error(exited.message)
  return { exited, out: Buffer.from(exited.stdout.bytes).toString() }
}
const answerWith = (server: Server, text: (peer: { readonly localAddress: string }) => string): void => {
  server.on("connection", (connection) => {
    connection.on("error", () => undefined)
    connection.once("data", () => connection.end(`${text({ localAddress: connection.localAddress ?? "" })}\n`))
  })
}

engineSuite("the way out of a container", engine, () => {
  beforeEach(() => {
    place = openPlace(socket)
    return async () => {
      await place[Symbol.asyncDispose]()
      expect(await leftovers(socket, place.folder)).toMatchObject({ mounts: [], containers: 0 })
    }
  })
  afterAll(async () => {
    if (engine.ok) await engine[Symbol.asyncDispose]()
  })

  it("reaches the host's proxy on its loopback port", async () => {
    const { out, exited } = await runWith(dial("127.0.0.1", 3128), (channel) =>
      answerWith(channel.proxy, () => "proxied"),
    )
    expect(out).toBe("proxied\n")
    expect(exited.denied).toEqual([])
  })

  it("lands on a transparent listener whatever the address, which the listener sees", async () => {
    const seen: string[] = []
    const serve = (channel: Channel): void => {
      const listener = channel.transparent.get(80)
      if (listener === undefined) throw new Error("no listener on 80")
      answerWith(listener, ({ localAddress }) => {
        seen.push(localAddress)
        return "captured"
      })
    }
    expect((await runWith(dial("198.18.7.9", 80), serve)).out).toBe("captured\n")
    expect((await runWith(dial("93.184.216.34", 80), serve)).out).toBe("captured\n")
    expect(seen).toEqual(["198.18.7.9", "93.184.216.34"])
  })

  it("asks the host for names, and only the host", async () => {
    const questions: string[] = []
    const { out } = await runWith(
      ["/usr/bin/perl", "-e", "my @a = gethostbyname('api.good.test'); print join('.', unpack('C4', $a[4]))"],
      (channel) => {
        channel.dnsUdp?.on("message", (message, peer) => {
          questions.push(message.subarray(12).toString("latin1"))
          const header = Buffer.from(message.subarray(0, 12))
          header.writeUInt16BE(0x8180, 2)
          header.writeUInt16BE(1, 6)
          header.writeUInt16BE(0, 10)
          const end = message.indexOf(0, 12) + 5
          const answer = Buffer.from([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 198, 18, 0, 77])
          channel.dnsUdp?.send(Buffer.concat([header, message.subarray(12, end), answer]), peer.port, peer.address)
        })
      },
    )
    expect(out).toBe("198.18.0.77")
    expect(questions[0]).toContain("api")
  })

  it("refuses and names everything else", async () => {
    const { out, exited } = await runWith(dial("192.0.2.1", 8443), () => undefined)
    expect(out).toContain("refused")
    expect(exited.denied).toContainEqual({
      layer: "egress",
      reason: "address_not_allowed",
      target: "192.0.2.1:8443",
      count: 1,
    })
  })

  it("has no listener at all where the profile has no network", async () => {
    const { out, exited } = await place.run(dial("198.18.0.5", 443))
    expect(out).toContain("refused")
    expect(exited.denied).toContainEqual({
      layer: "egress",
      reason: "address_not_allowed",
      target: "198.18.0.5:443",
      count: 1,
    })
  })

  it("does not reach listeners of the host or of another call", async () => {
    const outside = createServer(() => reached.push("host")).listen(0, "127.0.0.1")
    const reached: string[] = []
    await once(outside, "listening")
    const address = outside.address()
    const port = typeof address === "object" && address !== null ? address.port : 0
    const other = await place.prepare({ network: { proxyPort: 4555, transparentPorts: [], dns: false } })
    if (other.channel === "none") throw new Error("no channel")
    other.channel.proxy.on("connection", () => reached.push("other call"))
    expect((await place.run(dial("127.0.0.1", port))).out).toContain("refused")
    expect((await place.run(dial("127.0.0.1", 4555))).out).toContain("refused")
    expect(reached).toEqual([])
    await other[Symbol.asyncDispose]()
    outside.close()
  })
})
