/** Connections for code of this process: the way of a sandbox's, decided, counted, recorded and cut the same. */
import { once } from "node:events"
import type { Duplex } from "node:stream"
import { describe, expect, it } from "vitest"
import type { EgressProxyOptions } from "../../../src/egress-proxy/proxy.ts"
import type { Dialled, HostedDial } from "../../../src/egress-proxy/serve/hosted.ts"
import { echo, type Rig, rig, startUpstream, until } from "../harness.ts"

const connected = (dialled: Dialled): Duplex => {
  if (!dialled.ok) throw new Error(dialled.verdict.reason)
  return dialled.connection
}
const good: HostedDial = { host: "api.good.test", port: 443 }
const post = { method: "POST", path: "/", headers: [] }

const withRig = async (
  use: (test: Rig, sockets: ReadonlySet<unknown>) => Promise<void>,
  options: Partial<EgressProxyOptions> = {},
): Promise<void> => {
  await using upstream = await startUpstream(echo)
  await using test = await rig(upstream, options)
  await use(test, upstream.sockets)
}

describe("a connection for the host's own code", () => {
  it("carries bytes both ways, counts them, and is on record as allowed", () =>
    withRig(async ({ proxy, verdicts }) => {
      const connection = connected(await proxy.dial(good))
      connection.write("hello")
      const [bytes] = (await once(connection, "data")) as [Buffer]
      expect(bytes.toString()).toBe("hello")
      expect(verdicts).toMatchObject([{ decision: "allow", host: "api.good.test", port: 443 }])
      expect(proxy.counters()).toMatchObject({ bytesOut: 5, bytesIn: 5, connections: 1, passages: 1, allowed: 1 })
      connection.end()
      await once(connection, "close")
      await until(() => proxy.counters().passages === 0, "the passage to be over")
      expect(proxy.counters().connections).toBe(0)
    }))

  it("is refused without a question to the resolver where the host is not declared, and that is a denial", () =>
    withRig(async ({ proxy, resolved }) => {
      const dialled = await proxy.dial({ host: "evil.test", port: 443 })
      expect(dialled).toMatchObject({ ok: false, verdict: { decision: "deny", reason: "host_not_allowed" } })
      expect(await proxy.dial({ host: "api.good.test", port: 8443 })).toMatchObject({
        verdict: { reason: "port_not_allowed" },
      })
      expect(resolved).toEqual([])
      expect(proxy.denials()).toHaveLength(2)
      await until(() => proxy.counters().connections === 0, "the places to be free")
      expect(proxy.counters()).toMatchObject({ passages: 0, pending: 0 })
    }))

  it.each<[HostedDial, string]>([
    [{ host: "127.0.0.1", port: 443 }, "loopback"],
    [{ host: "::1", port: 443 }, "loopback"],
    [{ host: "169.254.169.254", port: 80 }, "metadata"],
    [{ host: "localhost", port: 443 }, "reserved_name"],
    [{ host: "api.good.test\r\nx", port: 443 }, "bad_byte"],
    [{ host: "api.good.test", port: 0 }, "bad_port"],
    [{ host: "api.good.test", port: Number.NaN }, "bad_port"],
    [{ host: "", port: 1 }, "bad_authority"],
  ])("to %j is refused as %s", (to, reason) =>
    withRig(async ({ proxy }) => {
      expect(await proxy.dial(to)).toMatchObject({ ok: false, verdict: { reason } })
    }),
  )

  it("is refused where the name resolves to this machine", () =>
    withRig(
      async ({ proxy }) => {
        expect(await proxy.dial(good)).toMatchObject({ ok: false, verdict: { reason: "resolved_loopback" } })
      },
      { resolve: () => ["127.0.0.1"] },
    ))

  it("for a request that does more than read is refused, or reported, as the policy says", async () => {
    await withRig(
      async ({ proxy, resolved }) => {
        expect(await proxy.dial({ ...good, sends: post })).toMatchObject({ verdict: { reason: "read_only" } })
        const disguised = { ...post, method: "GET", headers: [["X-HTTP-Method-Override", "DELETE"]] as const }
        expect(await proxy.dial({ ...good, sends: disguised })).toMatchObject({ verdict: { reason: "read_only" } })
        expect(resolved).toEqual([])
        connected(await proxy.dial({ ...good, sends: { ...post, method: "GET" } })).destroy()
      },
      { readOnlyHttp: "enforce" },
    )
    await withRig(
      async ({ proxy, verdicts }) => {
        connected(await proxy.dial({ ...good, sends: post })).destroy()
        expect(verdicts).toMatchObject([{ decision: "allow", report: "read_only" }])
      },
      { readOnlyHttp: "report" },
    )
  })

  it("ends with an error when a budget is used up, and that is a denial", () =>
    withRig(
      async ({ proxy }) => {
        const connection = connected(await proxy.dial(good))
        const broken = once(connection, "error")
        connection.write("x".repeat(100))
        expect(await broken).toMatchObject([{ code: "ECONNRESET" }])
        expect(proxy.denials()).toMatchObject([{ reason: "budget" }])
        expect(await proxy.dial(good)).toMatchObject({ ok: true })
      },
      { budgets: { bytesOut: 10 } },
    ))

  it("counts against the budget of connections", () =>
    withRig(
      async ({ proxy }) => {
        connected(await proxy.dial(good)).destroy()
        expect(await proxy.dial(good)).toMatchObject({ verdict: { reason: "budget" } })
      },
      { budgets: { connections: 1 } },
    ))

  it("takes the upstream with it when it is dropped", () =>
    withRig(async ({ proxy }, sockets) => {
      const connection = connected(await proxy.dial(good))
      await until(() => sockets.size === 1, "the upstream's connection")
      connection.destroy()
      await until(() => sockets.size === 0, "the upstream's connection to be gone")
      await until(() => proxy.counters().connections === 0, "the place to be free")
    }))

  it("is an error, not an end, where the upstream breaks off", async () => {
    await using upstream = await startUpstream((socket) =>
      socket.once("data", () => {
        socket.resetAndDestroy()
      }),
    )
    await using test = await rig(upstream)
    const connection = connected(await test.proxy.dial(good))
    connection.resume()
    let ended = false
    connection.on("end", () => (ended = true))
    const broken = once(connection, "error")
    connection.write("x")
    expect(await broken).toMatchObject([{ code: "ECONNRESET" }])
    expect(ended).toBe(false)
  })

  it("is not made when nobody waits for it any longer", async () => {
    const cancel = new AbortController()
    await withRig(
      async ({ proxy }) => {
        const dialling = proxy.dial({ ...good, signal: cancel.signal })
        await until(() => proxy.counters().pending === 1, "the question to the resolver")
        cancel.abort()
        expect(await dialling).toMatchObject({ ok: false })
        await until(() => proxy.counters().connections === 0, "the place to be free")
        expect(proxy.counters().pending).toBe(0)
        expect(await proxy.dial({ ...good, signal: cancel.signal })).toMatchObject({ ok: false })
      },
      { resolve: () => new Promise(() => undefined) },
    )
  })

  it("is cut when the proxy closes, and none is made after it", () =>
    withRig(async ({ proxy }) => {
      const connection = connected(await proxy.dial(good))
      const broken = once(connection, "error")
      await proxy.close()
      await broken
      expect(await proxy.dial(good)).toMatchObject({ ok: false, verdict: { reason: "closing" } })
    }))

  it("is turned away where there is no room", () =>
    withRig(
      async ({ proxy }) => {
        connected(await proxy.dial(good))
        expect(await proxy.dial(good)).toMatchObject({ verdict: { reason: "too_many_connections" } })
      },
      { limits: { openConnections: 1 } },
    ))
})
