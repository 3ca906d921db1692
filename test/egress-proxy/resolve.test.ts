/** The default resolver against a DNS server and a hosts file of the test's own. */
import { createSocket } from "node:dgram"
import { once } from "node:events"
import { mkdtemp, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { answer, parseQuery } from "../../src/egress-proxy/dns/message.ts"
import { createSystemResolve, parseHosts } from "../../src/egress-proxy/resolve.ts"

async function dnsServer(known: Readonly<Record<string, string>>) {
  const socket = createSocket("udp4")
  const asked: string[] = []
  socket.on("message", (message, from) => {
    const parsed = parseQuery(message)
    if (!parsed.ok) return
    const { name = "" } = parsed.query
    asked.push(name)
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
