/** The default resolver against a DNS server and a hosts file of the test's own. */
import { createSocket } from "node:dgram"
import { once } from "node:events"
import { mkdtemp, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { answer, parseQuery } from "../../../src/egress-proxy/dns/message.ts"
import { createSystemResolve, parseHosts } from "../../../src/egress-proxy/dial/resolve.ts"
import { echo, established, rig, startUpstream, tunnel } from "../harness.ts"

const wireName = (name: string): number[] => [
  ...name.split(".").flatMap((label) => [label.length, ...Buffer.from(label)]),
  0,
]

/** The reply to a question of type CNAME: this alias. */
function aliasReply(message: Buffer, name: string, alias: string): Buffer {
  const data = wireName(alias)
  return Buffer.from([
    ...message.subarray(0, 2),
    ...[0x81, 0x80, 0, 1, 0, 1, 0, 0, 0, 0],
    ...[...wireName(name), 0, 5, 0, 1],
    ...[...wireName(name), 0, 5, 0, 1, 0, 0, 0, 60, 0, data.length, ...data],
  ])
}

async function dnsServer(known: Readonly<Record<string, string>>, aliases: Readonly<Record<string, string>> = {}) {
  const socket = createSocket("udp4")
  const asked: string[] = []
  socket.on("message", (message, from) => {
    const parsed = parseQuery(message)
    if (!parsed.ok) return
    const { name = "" } = parsed.query
    asked.push(name)
    const isAliasQuestion = message.readUInt16BE(12 + name.length + 2) === 5
    const alias = isAliasQuestion ? aliases[name] : undefined
    if (alias === "(silence)") return
    if (alias !== undefined) return socket.send(aliasReply(message, name, alias), from.port, from.address)
    const address = known[name]
    socket.send(
      answer(parsed.query, address === undefined ? { kind: "undeclared" } : { kind: "declared", address }),
      from.port,
      from.address,
    )
  })
  socket.bind(0, "127.0.0.1")
  await once(socket, "listening")
  return {
    asked,
    server: `127.0.0.1:${socket.address().port}`,
    [Symbol.asyncDispose]: () => new Promise<void>((resolve) => socket.close(() => resolve())),
  }
}

describe("the default resolver", () => {
  it("asks the DNS servers for the name as it is, and for nothing else", async () => {
    await using dns = await dnsServer({ "api.good.test": "93.184.216.34" })
    const resolve = createSystemResolve({ hostsFile: "/nonexistent", servers: [dns.server] })
    expect(await resolve("api.good.test")).toEqual(["93.184.216.34"])
    await expect(async () => resolve("nobody.good.test")).rejects.toThrow("nobody.good.test")
    expect(new Set(dns.asked)).toEqual(new Set(["api.good.test", "nobody.good.test"]))
  })

  it("row 57: tells the chain of aliases behind a name, without going round in circles", async () => {
    await using dns = await dnsServer(
      { "api.good.test": "93.184.216.34", "loop.good.test": "93.184.216.35" },
      {
        "api.good.test": "edge.cdn.test",
        "edge.cdn.test": "Evil.test",
        "loop.good.test": "other.good.test",
        "other.good.test": "loop.good.test",
      },
    )
    const resolve = createSystemResolve({ hostsFile: "/nonexistent", servers: [dns.server] })
    expect(await resolve("api.good.test")).toEqual({
      addresses: ["93.184.216.34"],
      aliases: ["edge.cdn.test", "Evil.test"],
    })
    expect(await resolve("loop.good.test")).toEqual({ addresses: ["93.184.216.35"], aliases: ["other.good.test"] })
  })

  it("does not wait for a server that has nothing to say of aliases", async () => {
    await using dns = await dnsServer({ "api.good.test": "93.184.216.34" }, { "api.good.test": "(silence)" })
    const resolve = createSystemResolve({ hostsFile: "/nonexistent", servers: [dns.server] })
    expect(await resolve("api.good.test")).toEqual(["93.184.216.34"])
  })

  it("takes the hosts file first, all its addresses, and notices when it changes", async () => {
    const folder = await mkdtemp(join(tmpdir(), "caisson-hosts-"))
    const hostsFile = join(folder, "hosts")
    await using dns = await dnsServer({ "api.good.test": "93.184.216.34" })
    const resolve = createSystemResolve({ hostsFile, servers: [dns.server] })
    await writeFile(hostsFile, "10.0.0.1 API.good.test other # api.good.test 10.0.0.9\n::1 api.good.test\n")
    expect(await resolve("api.good.test")).toEqual(["10.0.0.1", "::1"])
    await writeFile(hostsFile, "# nothing\n")
    expect(await resolve("api.good.test")).toEqual(["93.184.216.34"])
    await rm(folder, { recursive: true })
  })

  it("skips lines of a hosts file that begin with no address", () => {
    expect([...parseHosts("\n\t \nnonsense a\n0x7f.1 b\n1.2.3.4\n1.2.3.4\tc\td\r\n").keys()]).toEqual(["c", "d"])
  })
})

describe("row 57: a name that is an alias", () => {
  const aliases = ["edge.cdn.test", "Evil.TEST.", "bad name\u0000", "127.0.0.1", "x".repeat(300)]
  const ask = async (address: string) => {
    await using upstream = await startUpstream(echo)
    await using test = await rig(upstream, { resolve: () => ({ addresses: [address], aliases }) })
    const client = test.client()
    client.send(tunnel("db.good.test:5432"))
    await Promise.race([client.closed, client.sees(established)])
    return test.verdicts
  }

  it("is allowed by its own name, and the verdict names the chain, in our spelling", async () => {
    expect(await ask("93.184.216.34")).toMatchObject([{ decision: "allow", aliases: ["edge.cdn.test", "evil.test"] }])
  })

  it("is denied where the chain ends in a reserved address, and the verdict names the chain", async () => {
    expect(await ask("10.0.0.1")).toMatchObject([
      { decision: "deny", reason: "resolved_private", aliases: ["edge.cdn.test", "evil.test"] },
    ])
  })
})
