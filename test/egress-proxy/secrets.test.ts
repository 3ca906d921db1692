/** Secrets substituted at the proxy, through whole tunnels: the sandbox holds a placeholder, the upstream gets the value. */
import { createServer as createHttps } from "node:https"
import type { IncomingMessage } from "node:http"
import { connect as connectTls, type TLSSocket } from "node:tls"
import { gzipSync } from "node:zlib"
import { describe, expect, it } from "vitest"
import type { EgressProxyOptions } from "../../src/egress-proxy/proxy.ts"
import { createCallAuthority } from "../../src/egress-proxy/tls/authority.ts"
import {
  established,
  listening,
  respond,
  rig,
  type Rig,
  startUpstream,
  tunnel,
  type Upstream,
  until,
} from "./harness.ts"

const placeholder = "$$SECRET[API_TOKEN]$$"
const value = "s3cr3t-value"
const substitutions = [{ placeholder, value, hosts: ["api.good.test"] }]

interface TlsUpstream extends Upstream {
  readonly caPem: string
  /** ends the connections that are open */
  hangUp(): void
  readonly requests: { readonly url: string; readonly authorization: string | undefined; readonly body: string }[]
}

async function tlsUpstream(certifiedFor = "api.good.test"): Promise<TlsUpstream> {
  const authority = createCallAuthority({ names: [certifiedFor] })
  const leaf = authority.leafFor(certifiedFor)
  const requests: { url: string; authorization: string | undefined; body: string }[] = []
  const server = createHttps({ cert: leaf.cert, key: leaf.key }, (request: IncomingMessage, response) => {
    let body = ""
    request.on("data", (chunk) => {
      body += String(chunk)
    })
    request.on("end", () => {
      requests.push({ url: request.url ?? "", authorization: request.headers.authorization, body })
      response.end("answer")
    })
    request.on("error", () => {})
  })
  const port = await listening(server)
  return {
    port,
    sockets: new Set(),
    caPem: authority.caPem,
    hangUp: () => server.closeAllConnections(),
    requests,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
      authority.dispose()
    },
  }
}

const withSecrets = (upstream: TlsUpstream, more: Partial<EgressProxyOptions> = {}) =>
  rig(upstream, { substitutions, upstreamCa: [upstream.caPem], ...more })

/** A tunnel with TLS inside it that trusts the proxy's authority. */
async function secured(test: Rig, host = "api.good.test"): Promise<TLSSocket> {
  const client = test.client()
  client.send(tunnel(`${host}:443`))
  await client.sees(established)
  client.socket.removeAllListeners("data")
  client.socket.removeAllListeners("end")
  const socket = connectTls({ socket: client.socket, servername: host, ca: test.proxy.caPem })
  socket.on("error", () => {})
  await new Promise((resolve, reject) => socket.once("secureConnect", resolve).once("error", reject))
  return socket
}

async function exchange(socket: TLSSocket, request: string | Buffer, end = /\r\n\r\n[^]+/): Promise<string> {
  let text = ""
  const done = new Promise<string>((resolve) => {
    socket.on("data", (chunk) => {
      text += chunk.toString("latin1")
      if (end.test(text)) resolve(text)
    })
    socket.on("close", () => resolve(text))
  })
  socket.write(request)
  return done
}

const request = (headers: string, path = "/", body: string | Buffer = "") =>
  Buffer.concat([
    Buffer.from(`POST ${path} HTTP/1.1\r\nHost: api.good.test\r\nContent-Length: ${body.length}\r\n${headers}\r\n`),
    Buffer.from(body),
  ])

describe("a secret bound to a host", () => {
  it("reaches that host in a header and never the sandbox", async () => {
    await using upstream = await tlsUpstream()
    await using test = await withSecrets(upstream)
    const socket = await secured(test)
    const answer = await exchange(socket, request(`Authorization: Bearer ${placeholder}\r\n`))
    expect(answer).toMatch(/^HTTP\/1\.1 200 OK[^]*answer/)
    expect(upstream.requests).toMatchObject([{ authorization: `Bearer ${value}` }])
    expect(JSON.stringify(test.verdicts)).not.toContain(value)
    socket.destroy()
    await until(() => test.proxy.counters().passages === 0, "the tunnel is over")
    expect(test.proxy.counters().bytesOut).toBeGreaterThan(0)
  })

  it("leaves a verdict when a method changes things, and when the program does not trust the authority", async () => {
    await using upstream = await tlsUpstream()
    await using test = await withSecrets(upstream)
    const trusting = await secured(test)
    await exchange(trusting, request(`Authorization: Bearer ${placeholder}\r\n`))
    expect(test.verdicts.at(-1)).toMatchObject({ decision: "allow", protocol: "http", report: "read_only" })
    const client = test.client()
    client.send(tunnel("api.good.test:443"))
    await client.sees(established)
    client.socket.removeAllListeners("data")
    client.socket.removeAllListeners("end")
    const wary = connectTls({ socket: client.socket, servername: "api.good.test" })
    await new Promise((resolve) => wary.once("error", resolve))
    client.socket.destroy()
    await until(() => test.verdicts.at(-1)?.reason === "client_tls", "the refused certificate is a verdict")
    expect(test.verdicts.at(-1)).toMatchObject({ decision: "infrastructure", host: "api.good.test", port: 443 })
  })

  it("is not guessed about: a body in the clear that cannot be searched is refused as that", async () => {
    await using upstream = await startUpstream(respond("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"))
    await using test = await rig(upstream, { substitutions })
    const client = test.client()
    client.send(
      "POST http://plain.good.test/ HTTP/1.1\r\nHost: plain.good.test\r\nContent-Encoding: x-own\r\nContent-Length: 1\r\n\r\na",
    )
    expect((await client.closed).text).toContain("x-caisson-denied: unsearchable_body")
  })

  it("is counted exactly where there is a byte budget", async () => {
    await using upstream = await tlsUpstream()
    await using test = await withSecrets(upstream, { budgets: { bytesOut: 6_000 } })
    const socket = await secured(test)
    expect(await exchange(socket, request(`Authorization: Bearer ${placeholder}\r\n`))).toContain("200 OK")
    await exchange(socket, request("", "/", "x".repeat(20_000)), /never/)
    expect(test.proxy.counters().bytesOut).toBeLessThanOrEqual(6_000)
    expect(test.verdicts.some(({ rule }) => rule === "budgets.bytesOut")).toBe(true)
    expect(upstream.requests).toHaveLength(1)
  })

  it.each([
    ["the path", request("", `/?token=${placeholder}`)],
    ["an encoded path", request("", `/?token=${encodeURIComponent(placeholder)}`)],
    ["a body", request("", "/", `token=${placeholder}`)],
    ["a compressed body", request("Content-Encoding: gzip\r\n", "/", gzipSync(`token=${placeholder}`))],
    [
      "chunks that split it",
      Buffer.from(
        `POST / HTTP/1.1\r\nHost: api.good.test\r\nTransfer-Encoding: chunked\r\n\r\n9\r\n${placeholder.slice(0, 9)}\r\n${(placeholder.length - 9).toString(16)}\r\n${placeholder.slice(9)}\r\n0\r\n\r\n`,
      ),
    ],
  ])("row 114: in %s it is misuse, and the request does not complete upstream", async (_where, bytes) => {
    await using upstream = await tlsUpstream()
    await using test = await withSecrets(upstream)
    const answer = await exchange(await secured(test), bytes)
    expect(answer).toMatch(/^HTTP\/1\.1 403 [^]*x-caisson-denied: secret_misuse/)
    expect(upstream.requests).toEqual([])
    expect(test.verdicts.at(-1)).toMatchObject({ decision: "deny", reason: "secret_misuse" })
  })

  it("row 76: is not sent when the Host inside is another", async () => {
    await using upstream = await tlsUpstream()
    await using test = await withSecrets(upstream)
    const answer = await exchange(
      await secured(test),
      `GET / HTTP/1.1\r\nHost: evil.test\r\nAuthorization: ${placeholder}\r\n\r\n`,
    )
    expect(answer).toContain("x-caisson-denied: authority_mismatch")
    expect(upstream.requests).toEqual([])
  })

  it("row 77: is not sent to an upstream with a certificate for another name", async () => {
    await using upstream = await tlsUpstream("other.test")
    await using test = await withSecrets(upstream)
    const answer = await exchange(await secured(test), request(`Authorization: ${placeholder}\r\n`))
    expect(answer).toMatch(/^HTTP\/1\.1 502 [^]*upstream_tls/)
    expect(upstream.requests).toEqual([])
  })

  it("leaves TLS to other hosts untouched", async () => {
    await using upstream = await tlsUpstream("x.cdn.good.test")
    await using test = await withSecrets(upstream)
    const client = test.client()
    client.send(tunnel("x.cdn.good.test:443"))
    await client.sees(established)
    client.socket.removeAllListeners("data")
    client.socket.removeAllListeners("end")
    const socket = connectTls({ socket: client.socket, servername: "x.cdn.good.test", ca: upstream.caPem })
    await new Promise((resolve, reject) => socket.once("secureConnect", resolve).once("error", reject))
    expect(socket.authorized).toBe(true)
    socket.destroy()
  })

  it("closes intercepted tunnels of an older generation", async () => {
    await using upstream = await tlsUpstream()
    await using test = await withSecrets(upstream)
    const socket = await secured(test)
    expect(await exchange(socket, request(""))).toContain("200 OK")
    const closed = new Promise((resolve) => socket.once("close", resolve))
    test.proxy.update({ egress: ["api.good.test:443"] })
    await closed
    expect(() =>
      test.proxy.update({ egress: [], substitutions: [{ placeholder, value, hosts: ["new.test"] }] }),
    ).toThrow("new.test")
  })
})

describe("an intercepted connection between two requests", () => {
  it("is closed with its generation: the next request gets neither an old secret nor an old rule", async () => {
    await using upstream = await tlsUpstream()
    await using test = await withSecrets(upstream)
    const socket = await secured(test)
    await exchange(socket, request(`Authorization: Bearer ${placeholder}\r\n`))
    upstream.hangUp()
    await until(() => test.proxy.counters().passages === 0, "the upstream's connection is gone")
    const closed = new Promise((resolve) => socket.once("close", resolve))
    test.proxy.update({ egress: ["api.good.test:443"], readOnlyHttp: "enforce" })
    socket.write(request(`Authorization: Bearer ${placeholder}\r\n`, "/later"))
    await closed
    expect(upstream.requests.map(({ url }) => url)).toEqual(["/"])
  })
})

describe("a placeholder in the clear", () => {
  it("row 114: is misuse in a plain request, wherever it stands", async () => {
    await using upstream = await startUpstream(respond("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"))
    await using test = await rig(upstream, { substitutions })
    const plain = (head: string, body = "") =>
      `POST http://plain.good.test/${head}Host: plain.good.test\r\nContent-Length: ${body.length}\r\n\r\n${body}`
    for (const text of [
      plain(`?${placeholder} HTTP/1.1\r\n`),
      plain(` HTTP/1.1\r\nAuthorization: Bearer ${placeholder}\r\n`),
      plain(" HTTP/1.1\r\n", `a=${placeholder}`),
    ]) {
      const client = test.client()
      client.send(text)
      expect((await client.closed).text).toMatch(/^HTTP\/1\.1 403 [^]*secret_misuse/)
    }
    expect(test.proxy.denials()).toEqual([
      { layer: "egress", reason: "secret_misuse", target: "plain.good.test:80", count: 3 },
    ])
  })

  it("row 114: ends a tcp:// tunnel before it is whole upstream", async () => {
    let received = ""
    await using upstream = await startUpstream((socket) =>
      socket.on("data", (chunk) => (received += chunk.toString("latin1"))),
    )
    await using test = await rig(upstream, { substitutions })
    const client = test.client()
    client.send(tunnel("db.good.test:5432"))
    await client.sees(established)
    client.send(`password=${placeholder.slice(0, 10)}`)
    await until(() => received.length > 0, "the first half arrived")
    client.send(`${placeholder.slice(10)};`)
    await client.closed
    expect(received).not.toContain(placeholder)
    expect(test.verdicts.at(-1)).toMatchObject({ reason: "secret_misuse" })
  })
})
