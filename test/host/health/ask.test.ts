/** Questions to real services, through the proxy's own way out. */
import { once } from "node:events"
import { createServer, type Server } from "node:http"
import { createServer as createTcpServer } from "node:net"
import type { AddressInfo } from "node:net"
import { afterEach, describe, expect, it } from "vitest"
import { createEgressProxy } from "../../../src/egress-proxy/index.ts"
import { ask } from "../../../src/host/health/ask.ts"

const open: { close(): unknown }[] = []
afterEach(() => {
  for (const each of open.splice(0)) each.close()
})
const listening = async (server: Server | ReturnType<typeof createTcpServer>): Promise<number> => {
  open.push(server)
  server.listen(0, "127.0.0.1")
  await once(server, "listening")
  return (server.address() as AddressInfo).port
}
const outletTo = async (port: number) => {
  const proxy = await createEgressProxy({
    egress: [`svc.test:${port}`],
    services: { "svc.test": { address: "127.0.0.1", port } },
  })
  open.push(proxy)
  return proxy
}
const inTime = (): AbortSignal => AbortSignal.timeout(20_000)

describe("a question to a service", () => {
  it("tells the status and follows nothing", async () => {
    const port = await listening(
      createServer((request, response) => {
        response.writeHead(request.url === "/moved" ? 302 : 204, { location: "http://other.test/" }).end()
      }),
    )
    const outlet = await outletTo(port)
    expect(await ask(outlet, { url: `http://svc.test:${port}/`, method: "GET" }, inTime())).toEqual({
      ok: true,
      status: 204,
    })
    expect(await ask(outlet, { url: `http://svc.test:${port}/moved`, method: "HEAD" }, inTime())).toEqual({
      ok: true,
      status: 302,
    })
    expect(outlet.denials()).toEqual([])
  })
  it("goes nowhere that was not declared", async () => {
    const outlet = await outletTo(9)
    expect(await ask(outlet, { url: "http://elsewhere.test/", method: "GET" }, inTime())).toMatchObject({ ok: false })
    expect(outlet.denials()).toMatchObject([{ target: "elsewhere.test:80" }])
  })
  it("ends in time with a service that says nothing, and with one that breaks off", async () => {
    const silent = await listening(createTcpServer((socket) => void socket.on("error", () => undefined)))
    const late = await ask(
      await outletTo(silent),
      { url: `http://svc.test:${silent}/`, method: "GET" },
      AbortSignal.timeout(50),
    )
    expect(late).toEqual({ ok: false, reason: "it did not answer in time" })
    const broken = await listening(createTcpServer((socket) => void socket.on("error", () => undefined).destroy()))
    const gone = await ask(await outletTo(broken), { url: `http://svc.test:${broken}/`, method: "GET" }, inTime())
    expect(gone).toMatchObject({ ok: false })
  })
  it("does not take a certificate that nobody vouches for", async () => {
    const port = await listening(
      createTcpServer((socket) => void socket.on("error", () => undefined).end("no TLS here")),
    )
    const outlet = await outletTo(port)
    expect(await ask(outlet, { url: `https://svc.test:${port}/`, method: "GET" }, inTime())).toMatchObject({
      ok: false,
    })
  })
})
