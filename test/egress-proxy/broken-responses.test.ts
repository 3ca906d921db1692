/** Responses without a length that break off: a client must never take a part of one for the whole. */
import { once } from "node:events"
import type { Server, Socket } from "node:net"
import { connect as connectTls, createServer as createTls, type TLSSocket } from "node:tls"
import { describe, expect, it } from "vitest"
import { createCallAuthority } from "../../src/egress-proxy/tls/authority.ts"
import { established, listening, type Rig, rig, startUpstream, tunnel, type Upstream, until } from "./harness.ts"

const begun = "HTTP/1.1 200 OK\r\n\r\nthe first half"
const asked = {
  "1.1": "GET http://plain.good.test/ HTTP/1.1\r\nHost: plain.good.test\r\n\r\n",
  "1.0": "GET http://plain.good.test/ HTTP/1.0\r\n\r\n",
} as const

describe("a response without a length, in the clear", () => {
  it.each(["1.1", "1.0"] as const)("that the upstream resets is reset to an HTTP/%s client", async (version) => {
    let upstreamSocket: Socket | undefined
    await using upstream = await startUpstream((socket) => {
      upstreamSocket = socket
      socket.once("data", () => socket.write(begun))
    })
    await using test = await rig(upstream)
    const client = test.client()
    client.send(asked[version])
    await client.sees(/the first half/)
    upstreamSocket?.resetAndDestroy()
    const { reset, text } = await client.closed
    expect(reset).toBe(true)
    expect(text).not.toMatch(/0\r\n\r\n$/)
    await until(() => test.proxy.counters().connections === 0, "the client is gone")
    expect(test.proxy.counters()).toMatchObject({ passages: 0, pending: 0 })
  })

  it.each(["1.1", "1.0"] as const)("that the upstream ends is whole for an HTTP/%s client", async (version) => {
    await using upstream = await startUpstream((socket) => socket.once("data", () => socket.end(begun)))
    await using test = await rig(upstream)
    const client = test.client()
    client.send(asked[version])
    if (version === "1.1") await client.sees(/the first half\r\n0\r\n\r\n$/)
    else expect(await client.closed).toMatchObject({ reset: false, text: expect.stringMatching(/the first half$/) })
  })
})

const name = "api.good.test"
type Ending = "close_notify" | "fin" | "reset"

/** A TLS server that answers each request with the first half, and then ends as it is told. */
async function tlsUpstream(ending: Ending): Promise<Upstream & { readonly caPem: string }> {
  const authority = createCallAuthority({ names: [name] })
  const sockets = new Set<Socket>()
  let raw: Socket | undefined
  const server = createTls({ ...authority.leafFor(name) }, (secured) => {
    sockets.add(secured)
    secured.on("error", () => {})
    secured.on("close", () => sockets.delete(secured))
    secured.once("data", () => {
      if (ending === "close_notify") return void secured.end(begun)
      secured.write(begun, () => {
        const socket = raw as Socket
        if (ending === "reset") return void socket.resetAndDestroy()
        // Ends TCP beneath TLS: what an attacker on the way can do.
        socket.destroy()
      })
    })
  })
  server.on("connection", (socket: Socket) => {
    raw = socket
    socket.on("error", () => {})
  })
  const port = await listening(server as unknown as Server)
  return {
    port,
    sockets,
    caPem: authority.caPem,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy()
      await new Promise((resolve) => server.close(resolve))
      authority.dispose()
    },
  }
}

async function secured(test: Rig): Promise<TLSSocket> {
  const client = test.client()
  client.send(tunnel(`${name}:443`))
  await client.sees(established)
  client.socket.removeAllListeners("data")
  client.socket.removeAllListeners("end")
  const socket = connectTls({ socket: client.socket, servername: name, ca: test.proxy.caPem })
  socket.on("error", () => {})
  await once(socket, "secureConnect")
  return socket
}

async function answerTo(test: Rig, request: string): Promise<{ text: string; broken: boolean }> {
  const socket = await secured(test)
  let text = ""
  let broken = false
  socket.on("data", (chunk) => (text += String(chunk)))
  socket.on("error", () => (broken = true))
  const closed = new Promise<void>((resolve) => socket.on("close", resolve).on("end", resolve))
  const whole = new Promise<void>((resolve) =>
    socket.on("data", () => {
      if (text.endsWith("0\r\n\r\n")) resolve()
    }),
  )
  socket.write(request)
  await Promise.race([closed, whole])
  socket.destroy()
  return { text, broken }
}

describe("a response without a length, over TLS that is ended at the proxy", () => {
  const substitutions = [{ placeholder: "$$SECRET[API_TOKEN]$$", value: "s3cr3t-value", hosts: [name] }]
  for (const budgets of [{}, { bytesIn: 1_000_000 }]) {
    const how = "bytesIn" in budgets ? "with a byte budget" : "without one"
    it.each(["fin", "reset"] as const)(`that ends by %s alone is broken off to the client, ${how}`, async (ending) => {
      await using upstream = await tlsUpstream(ending)
      await using test = await rig(upstream, { substitutions, upstreamCa: [upstream.caPem], budgets })
      const one = await answerTo(test, `GET / HTTP/1.1\r\nHost: ${name}\r\n\r\n`)
      expect(one.text).not.toMatch(/0\r\n\r\n$/)
      const zero = await answerTo(test, `GET / HTTP/1.0\r\nHost: ${name}\r\n\r\n`)
      expect(zero.broken).toBe(true)
    })

    it(`that ends with a close_notify is whole, ${how}`, async () => {
      await using upstream = await tlsUpstream("close_notify")
      await using test = await rig(upstream, { substitutions, upstreamCa: [upstream.caPem], budgets })
      const one = await answerTo(test, `GET / HTTP/1.1\r\nHost: ${name}\r\n\r\n`)
      expect(one.text).toMatch(/the first half\r\n0\r\n\r\n$/)
      const zero = await answerTo(test, `GET / HTTP/1.0\r\nHost: ${name}\r\n\r\n`)
      expect(zero).toMatchObject({ broken: false, text: expect.stringMatching(/the first half$/) })
    })
  }
})
