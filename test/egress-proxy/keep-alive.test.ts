/** Many requests on one client connection, in the clear: one upstream connection, each request judged by itself. */
import { connect, type Socket } from "node:net"
import { describe, expect, it } from "vitest"
import { established, rig, startUpstream, tunnel, until } from "./harness.ts"

const get = (host = "plain.good.test", path = "/") => `GET http://${host}${path} HTTP/1.1\r\nHost: ${host}\r\n\r\n`
const ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

/** Answers each request with its number, and counts its connections. */
function numbered(answer: (number: number, socket: Socket) => string = () => ok) {
  const seen = { connections: 0, requests: 0, heads: [] as string[] }
  const serve = (socket: Socket): void => {
    seen.connections += 1
    socket.on("end", () => socket.end())
    let text = ""
    socket.on("data", (chunk) => {
      text += chunk.toString("latin1")
      for (let end = text.indexOf("\r\n\r\n"); end >= 0; end = text.indexOf("\r\n\r\n")) {
        seen.requests += 1
        seen.heads.push(text.slice(0, end))
        text = text.slice(end + 4)
        socket.write(answer(seen.requests, socket))
      }
    })
  }
  return { seen, serve }
}

describe("a client that keeps its connection", () => {
  it("sends a thousand requests over one upstream connection, within a budget of 256 connections", async () => {
    const { seen, serve } = numbered()
    await using upstream = await startUpstream(serve)
    await using test = await rig(upstream, { budgets: { connections: 256 } })
    const client = test.client()
    let answers = 0
    client.socket.on("data", (chunk) => {
      answers += chunk.toString("latin1").split("200 OK").length - 1
    })
    for (let sent = 1; sent <= 1_000 && !client.socket.destroyed; sent += 1) {
      client.send(get())
      while (answers < sent && !client.socket.destroyed)
        await new Promise((resolve) => client.socket.once("data", resolve))
    }
    expect(answers).toBe(1_000)
    expect(seen).toMatchObject({ connections: 1, requests: 1_000 })
    expect(test.verdicts.filter(({ decision }) => decision === "allow")).toHaveLength(1_000)
    expect(test.resolved).toHaveLength(1)
    expect(test.proxy.counters()).toMatchObject({ requests: 1_000, passages: 0 })
    client.socket.destroy()
    await until(() => upstream.sockets.size === 0, "the upstream connection went with the client's")
  }, 60_000)

  it("pipelines a thousand requests likewise, also inside a tunnel, and posts among them", async () => {
    const { seen, serve } = numbered()
    await using upstream = await startUpstream(serve)
    await using test = await rig(upstream, { egress: ["plain.good.test:8080"], budgets: { connections: 2 } })
    const client = test.client()
    client.send(tunnel("plain.good.test:8080"))
    await client.sees(established)
    const one = "GET / HTTP/1.1\r\nHost: plain.good.test:8080\r\n\r\n"
    const two = "POST / HTTP/1.1\r\nHost: plain.good.test:8080\r\nContent-Length: 0\r\n\r\n"
    client.send((one + two).repeat(500))
    await until(() => client.text().split("200 OK").length === 1_001, "all are answered")
    expect(seen).toMatchObject({ connections: 1, requests: 1_000 })
  }, 60_000)

  it("keeps a connection for each host, and gives neither the other's", async () => {
    const { seen, serve } = numbered()
    await using upstream = await startUpstream(serve)
    await using test = await rig(upstream, { egress: ["one.good.test:80", "two.good.test:80"] })
    const client = test.client()
    for (let turn = 1; turn <= 3; turn += 1) {
      client.send(get("one.good.test") + get("two.good.test"))
      await until(() => client.text().split("200 OK").length === 1 + 2 * turn, `turn ${turn}`)
    }
    expect(seen.connections).toBe(2)
    expect(test.resolved).toEqual(["one.good.test", "two.good.test"])
  })

  it("is judged anew each time: a new policy holds for the next request, and the kept connection is not used", async () => {
    const { seen, serve } = numbered()
    await using upstream = await startUpstream(serve)
    await using test = await rig(upstream)
    const client = test.client()
    client.send(get())
    await client.sees(/ok$/)
    test.proxy.update({ egress: ["plain.good.test:80"] })
    client.send(get())
    await until(() => client.text().split("200 OK").length === 3, "the second answer")
    expect(seen.connections).toBe(2)
    test.proxy.update({ egress: [] })
    client.send(get())
    await client.sees(/x-caisson-denied: host_not_allowed/)
    expect(seen.requests).toBe(2)
    await until(() => upstream.sockets.size === 0, "no upstream connection is left")
  })

  it("counts each request: the n-th passes, the next is refused and its connection closed", async () => {
    const { serve } = numbered()
    await using upstream = await startUpstream(serve)
    await using test = await rig(upstream, { budgets: { requests: 3 } })
    const client = test.client()
    client.send(get().repeat(4))
    await client.sees(/x-caisson-denied: budget/)
    expect(client.text().split("200 OK")).toHaveLength(4)
    await until(() => upstream.sockets.size === 0, "the kept connection is closed")
  })

  it("is answered when the kept connection has died, and a POST is never sent twice", async () => {
    const { seen, serve } = numbered((number, socket) => {
      if (number % 2 === 0) socket.destroy()
      return number % 2 === 0 ? "" : ok
    })
    await using upstream = await startUpstream(serve)
    await using test = await rig(upstream)
    const client = test.client()
    client.send(get() + get())
    await until(() => client.text().split("200 OK").length === 3, "both are answered")
    expect(seen).toMatchObject({ requests: 3, connections: 2 })
    expect(test.verdicts.map(({ reason }) => reason)).toEqual(["allowed", "allowed"])
    client.send("POST http://plain.good.test/ HTTP/1.1\r\nHost: plain.good.test\r\n\r\n")
    await client.sees(/502 Bad Gateway/)
    expect(seen).toMatchObject({ requests: 4, connections: 2 })
  })

  it.each([
    ["speaks out of turn", `${ok}HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil`],
    ["says that it closes", ok.replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n")],
    ["speaks HTTP/1.0", ok.replace("HTTP/1.1", "HTTP/1.0")],
  ])("gets a new connection to an upstream that %s", async (_, answer) => {
    const { seen, serve } = numbered(() => answer)
    await using upstream = await startUpstream(serve)
    await using test = await rig(upstream)
    const client = test.client()
    client.send(get())
    await client.sees(/ok/)
    client.send(get())
    await until(() => seen.connections === 2, "a second connection").catch(() => {})
    expect(client.text()).not.toContain("evil")
    expect(seen.connections).toBe(2)
  })

  it("does not keep a connection for a client that will not", async () => {
    const { seen, serve } = numbered()
    await using upstream = await startUpstream(serve)
    await using test = await rig(upstream)
    const client = test.client()
    client.send(get().replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n"))
    await client.closed
    expect(seen.heads[0]).toContain("Connection: close")
    await until(() => upstream.sockets.size === 0, "it is closed")
  })

  it("lets a kept connection go after a while, and one that the upstream ends at once", async () => {
    await using upstream = await startUpstream(numbered().serve)
    await using test = await rig(upstream, { limits: { keptMs: 20 }, dial: () => connect(upstream.port, "127.0.0.1") })
    const client = test.client()
    client.send(get())
    await client.sees(/ok$/)
    await until(() => upstream.sockets.size === 0, "it is let go")
    client.send(get())
    await until(() => client.text().split("200 OK").length === 3, "the next is answered all the same")
  })
})
