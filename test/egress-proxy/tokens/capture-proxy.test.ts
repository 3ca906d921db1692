/** What a whole proxy does with token endpoints: its policy, plain HTTP, and its own end. */
import { once } from "node:events"
import { createServer as createHttp, request as httpRequest, type ServerResponse } from "node:http"
import { connect } from "node:net"
import { connect as tlsConnect } from "node:tls"
import { expect, it } from "vitest"
import { createEgressProxy, type EgressProxyOptions, PolicyError } from "../../../src/egress-proxy/index.ts"
import { closing, listening, name, testCa, upstreamServer } from "../tls/intercept-world.ts"
import { memoryKeep, tokensIn } from "./memory-keep.ts"

const path = "/oauth/token"
const capture = { endpoints: [{ host: name, port: 443, path }], hosts: [], idToken: "replace" } as const
const body = "grant_type=authorization_code&code=one"
const tokens = `{"access_token":"access-real-1","refresh_token":"refresh-real-1"}`

const proxyWith = async (options: Partial<EgressProxyOptions>) => {
  const keep = memoryKeep()
  const proxy = await createEgressProxy({
    egress: [`${name}:443`, `${name}:80`],
    listen: "127.0.0.1:0",
    upstreamCa: [testCa.caPem],
    capture,
    tokens: keep,
    ...options,
  })
  closing.push(() => proxy.close())
  return { proxy, keep, port: proxy.port ?? 0 }
}

const tunnel = async (port: number, ca: string) => {
  const socket = connect(port, "127.0.0.1")
  socket.on("error", () => undefined)
  socket.write(`CONNECT ${name}:443 HTTP/1.1\r\nHost: ${name}:443\r\n\r\n`)
  await once(socket, "data")
  const secured = tlsConnect({ socket, servername: name, ca })
  secured.on("error", () => undefined)
  await once(secured, "secureConnect")
  return secured
}

it("a proxy that is closed while an answer is under way waits for it and keeps what it brings", async () => {
  const asked = Promise.withResolvers<ServerResponse>()
  const upstream = await upstreamServer((_request, response) => asked.resolve(response))
  const { proxy, keep, port } = await proxyWith({ services: { [name]: `127.0.0.1:${upstream.port}` } })
  const socket = await tunnel(port, proxy.caPem ?? "")
  socket.write(
    `POST ${path} HTTP/1.1\r\nHost: ${name}\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
  )
  const response = await asked.promise
  const closed = proxy.close()
  response.end(tokens)
  await closed
  expect(tokensIn(keep, "refresh")).toEqual(["refresh-real-1"])
})

it("plain HTTP does not reach the host of a token endpoint", async () => {
  let reached = 0
  const plain = createHttp((_request, response) => {
    reached += 1
    response.end(tokens)
  })
  const plainPort = await listening(plain)
  const { proxy, port } = await proxyWith({ services: { [name]: `127.0.0.1:${plainPort}` } })
  const status = await new Promise((resolve, reject) => {
    const asking = httpRequest({
      host: "127.0.0.1",
      port,
      method: "POST",
      path: `http://${name}${path}`,
      headers: { host: name },
    })
    asking.on("response", (response) => resolve(response.resume().headers["x-caisson-denied"]))
    asking.on("error", reject)
    asking.end(body)
  })
  expect([status, reached, proxy.denials().map(({ reason }) => reason)]).toEqual([
    "protocol_mismatch",
    0,
    ["protocol_mismatch"],
  ])
})

it.each<[string, Partial<EgressProxyOptions>]>([
  ["an endpoint that would be passed on unseen", { egress: [`tcp://${name}:443`] }],
  ["one under a wildcard that is", { egress: [`${name}:443`, "tcp://*.good.test:5432"] }],
  [
    "a path that can be written in two ways",
    { capture: { ...capture, endpoints: [{ host: name, port: 443, path: "/a/../b" }] } },
  ],
  ["a host that is no name", { capture: { ...capture, hosts: ["Good Test"] } }],
])("a policy that captures is refused with %s", async (_what, options) => {
  await expect(proxyWith(options)).rejects.toThrow(PolicyError)
})

it("a policy that captures is refused without a place where tokens are kept", async () => {
  await expect(createEgressProxy({ egress: [`${name}:443`], capture })).rejects.toThrow(PolicyError)
})
