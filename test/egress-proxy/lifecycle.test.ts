/** What happens over time: rebinding, half-closes, resets, generations, failures of the host. */
import { connect, type Socket } from "node:net"
import { statSync } from "node:fs"
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { createEgressProxy } from "../../src/egress-proxy/index.ts"
import { listen } from "../../src/egress-proxy/serve/listener.ts"
import { publicAddress } from "../corpus/egress-cases.ts"
import { echo, established, rig, startUpstream, tunnel, until } from "./harness.ts"

const idle = { connections: 0, passages: 0, pending: 0 }

describe("resolving", () => {
  it("row 56: dials the vetted address although the answer changes", async () => {
    await using upstream = await startUpstream(echo)
    const answers = [[publicAddress], ["127.0.0.1"]]
    const dialled: string[] = []
    await using test = await rig(upstream, {
      resolve: () => answers.shift() ?? [],
      dial(address) {
        dialled.push(address)
        return connect(upstream.port, "127.0.0.1")
      },
    })
    const first = test.client()
    first.send(tunnel("db.good.test:5432"))
    await first.sees(established)
    expect(dialled).toEqual([publicAddress])
    const second = test.client()
    second.send(tunnel("db.good.test:5432"))
    expect((await second.closed).text).toContain("resolved_loopback")
    expect(dialled).toEqual([publicAddress])
  })

  it("row 59: resolves once per connection and keeps no answer", async () => {
    await using upstream = await startUpstream(echo)
    await using test = await rig(upstream)
    const clients = Array.from({ length: 40 }, () => test.client())
    for (const client of clients) client.send(tunnel("db.good.test:5432"))
    await Promise.all(clients.map((client) => client.sees(established)))
    expect(test.resolved).toHaveLength(40)
  })

  it("row 60: a resolver that never answers is a DNS failure, in time", async () => {
    await using upstream = await startUpstream(echo)
    await using test = await rig(upstream, { resolve: () => new Promise(() => {}), budgets: { connectTimeoutMs: 30 } })
    const client = test.client()
    client.send(tunnel("api.good.test:443"))
    expect((await client.closed).text).toMatch(/^HTTP\/1\.1 502 [^]*x-caisson-denied: dns_failure/)
    expect(test.proxy.denials()).toEqual([])
    await until(() => test.proxy.counters().connections === 0, "the client is gone")
    expect(test.proxy.counters()).toMatchObject({ ...idle, infrastructure: 1 })
  })

  it("tries the next vetted address when one refuses", async () => {
    await using upstream = await startUpstream(echo)
    await using test = await rig(upstream, {
      resolve: () => [publicAddress, "93.184.216.35"],
      dial: (address) => connect(address === publicAddress ? 1 : upstream.port, "127.0.0.1"),
    })
    const client = test.client()
    client.send(tunnel("db.good.test:5432"))
    await client.sees(established)
    expect(test.verdicts).toMatchObject([{ decision: "allow", address: "93.184.216.35" }])
  })

  it("an upstream that never accepts is a timeout", async () => {
    await using upstream = await startUpstream(echo)
    await using test = await rig(upstream, {
      dial: () => new Promise<Socket>(() => {}),
      budgets: { connectTimeoutMs: 30 },
    })
    const client = test.client()
    client.send(tunnel("api.good.test:443"))
    expect((await client.closed).text).toMatch(/^HTTP\/1\.1 504 [^]*connect_timeout/)
    await until(() => test.proxy.counters().connections === 0, "the client is gone")
    expect(test.proxy.counters()).toMatchObject(idle)
  })

  it("takes a dialled socket that is connected already", async () => {
    await using upstream = await startUpstream(echo)
    await using test = await rig(upstream, {
      dial: () =>
        new Promise<Socket>((resolve) => {
          const socket = connect(upstream.port, "127.0.0.1", () => resolve(socket))
        }),
    })
    const client = test.client()
    client.send(`${tunnel("db.good.test:5432")}early`)
    await client.sees(/early$/)
  })
})

describe("tunnels", () => {
  it("row 109: passes a half-close on and still delivers the answer", async () => {
    await using upstream = await startUpstream((socket) => {
      let size = 0
      socket.on("data", (chunk) => {
        size += chunk.length
      })
      socket.on("end", () => socket.end(`got ${size}`))
    })
    await using test = await rig(upstream)
    const client = test.client()
    client.send(tunnel("db.good.test:5432"))
    await client.sees(established)
    client.socket.end("x".repeat(300_000))
    expect((await client.closed).text).toContain("got 300000")
    await until(() => test.proxy.counters().passages === 0, "the tunnel is over")
    await until(() => test.proxy.counters().connections === 0, "the client is gone")
    expect(test.proxy.counters()).toMatchObject({ ...idle, bytesOut: 300_000, bytesIn: 10 })
  })

  it("row 109: resets the other side when one side is reset", async () => {
    await using upstream = await startUpstream((socket) => socket.once("data", () => socket.resetAndDestroy()))
    await using test = await rig(upstream)
    const client = test.client()
    client.send(tunnel("db.good.test:5432"))
    await client.sees(established)
    client.send("go")
    expect((await client.closed).reset).toBe(true)

    await using patient = await startUpstream(() => {})
    await using other = await rig(patient)
    const second = other.client()
    second.send(tunnel("db.good.test:5432"))
    await second.sees(established)
    second.socket.resetAndDestroy()
    await until(() => patient.sockets.size === 0, "the upstream is closed")
    await until(() => other.proxy.counters().connections === 0, "the client is gone")
    expect(other.proxy.counters()).toMatchObject(idle)
  })

  it("loses no byte under back-pressure in both directions", async () => {
    await using upstream = await startUpstream(echo)
    await using test = await rig(upstream)
    const client = test.client()
    client.send(tunnel("db.good.test:5432"))
    await client.sees(established)
    const body = "0123456789abcdef".repeat(262_144)
    client.socket.end(body)
    const { text } = await client.closed
    expect(text.length - text.indexOf("\r\n\r\n") - 4).toBe(body.length)
    expect(text.endsWith(body.slice(-1_000))).toBe(true)
  })

  it("closes a tunnel that is idle for too long", async () => {
    await using upstream = await startUpstream(echo)
    await using test = await rig(upstream, { budgets: { idleTimeoutMs: 20 } })
    const client = test.client()
    client.send(tunnel("db.good.test:5432"))
    await client.sees(established)
    await client.closed
    expect(test.proxy.counters()).toMatchObject({ passages: 0, denied: 0, infrastructure: 1 })
    expect(test.verdicts.at(-1)).toMatchObject({ reason: "idle_timeout", host: "db.good.test" })
  })

  it("row 73: refuses a web entry whose upstream speaks first, and says how to declare it", async () => {
    await using upstream = await startUpstream((socket) => socket.write("SSH-2.0-OpenSSH_9.2\r\n"))
    await using test = await rig(upstream, { egress: ["ssh.good.test:22"] })
    const client = test.client()
    client.send(tunnel("ssh.good.test:22"))
    expect((await client.closed).text).not.toContain("SSH-2.0")
    expect(test.verdicts.at(-1)).toMatchObject({
      decision: "deny",
      reason: "protocol_mismatch",
      hint: expect.stringContaining('"tcp://'),
    })
  })

  it("closes a tunnel whose upstream hangs up before anything was said", async () => {
    await using upstream = await startUpstream((socket) => socket.end())
    await using test = await rig(upstream)
    const client = test.client()
    client.send(tunnel("api.good.test:443"))
    await client.closed
    expect(test.proxy.denials()).toEqual([])
  })

  it("row 110: closes tunnels of an older generation and judges by the new policy at once", async () => {
    await using upstream = await startUpstream(echo)
    await using test = await rig(upstream)
    const client = test.client()
    client.send(tunnel("db.good.test:5432"))
    await client.sees(established)
    test.proxy.update({ egress: ["api.good.test:443"] })
    await client.closed
    const second = test.client()
    second.send(tunnel("db.good.test:5432"))
    expect((await second.closed).text).toContain("host_not_allowed")
    expect(test.proxy.counters()).toMatchObject({ generation: 2, passages: 0 })
  })

  it("row 110: does not finish a dial that began under an older policy", async () => {
    await using upstream = await startUpstream(echo)
    let answer: (addresses: string[]) => void = () => {}
    await using test = await rig(upstream, {
      resolve: () =>
        new Promise((resolve) => {
          answer = resolve
        }),
    })
    const client = test.client()
    client.send(tunnel("db.good.test:5432"))
    await until(() => test.proxy.counters().pending === 1, "the dial is pending")
    test.proxy.update({ egress: ["api.good.test:443"] })
    answer([publicAddress])
    expect((await client.closed).text).toMatch(/^HTTP\/1\.1 503 [^]*policy_changed/)
    expect(upstream.sockets.size).toBe(0)
  })

  it("an invalid update changes nothing", async () => {
    await using upstream = await startUpstream(echo)
    await using test = await rig(upstream)
    const client = test.client()
    client.send(tunnel("db.good.test:5432"))
    await client.sees(established)
    expect(() => test.proxy.update({ egress: ["*"] })).toThrow("egress")
    client.send("still here")
    await client.sees(/still here$/)
    expect(test.proxy.counters().generation).toBe(1)
  })
})

describe("failures of the host", () => {
  it("row 111: passes nothing when a verdict cannot be recorded", async () => {
    await using upstream = await startUpstream(echo)
    await using test = await rig(upstream, {
      onVerdict: () => {
        throw new Error("disk full")
      },
    })
    const client = test.client()
    client.send(`${tunnel("db.good.test:5432")}secret`)
    expect((await client.closed).text).toMatch(/^HTTP\/1\.1 503 [^]*verdict_log_failed/)
    await until(() => upstream.sockets.size === 0, "the upstream socket is closed")
    expect(test.proxy.counters()).toMatchObject({ passages: 0, bytesOut: 0 })
  })

  it.each(["hook", "log"])(
    "passes nothing ever again once the %s has failed to record, and cuts what is open",
    async (sink) => {
      await using upstream = await startUpstream(echo)
      let full = false
      const told = (): void => {
        if (full) throw new Error("disk full")
      }
      await using test = await rig(
        upstream,
        sink === "hook" ? { onVerdict: told } : { logger: { info: told, warn: told } },
      )
      const open = test.client()
      open.send(tunnel("db.good.test:5432"))
      await open.sees(established)
      full = true
      const refused = test.client()
      refused.send(tunnel("evil.test:443"))
      await refused.closed
      await open.closed
      full = false
      for (const target of ["db.good.test:5432", "api.good.test:443"]) {
        const later = test.client()
        later.send(tunnel(target))
        expect((await later.closed).text).toMatch(/^HTTP\/1\.1 503 [^]*verdict_log_failed/)
      }
      expect(test.proxy.counters()).toMatchObject({ passages: 0, pending: 0, allowed: 1 })
    },
  )

  it("closing ends every tunnel and leaves no listener", async () => {
    await using upstream = await startUpstream(echo)
    await using test = await rig(upstream)
    const client = test.client()
    client.send(tunnel("db.good.test:5432"))
    await client.sees(established)
    const port = test.proxy.port ?? 0
    await test.proxy.close()
    await client.closed
    expect(test.proxy.counters()).toMatchObject(idle)
    const late = connect(port, "127.0.0.1")
    await expect(
      new Promise((resolve, reject) => late.on("connect", resolve).on("error", reject)),
    ).rejects.toMatchObject({ code: "ECONNREFUSED" })
  })
})

describe("a Unix socket", () => {
  it("serves like a port, for its owner only, and is gone afterwards", async () => {
    const folder = await mkdtemp(join(tmpdir(), "caisson-egress-"))
    const path = join(folder, "proxy.sock")
    const proxy = await createEgressProxy({ egress: [], listen: `unix:${path}` })
    expect([proxy.address, proxy.url]).toEqual([`unix:${path}`, undefined])
    const socket = connect(path)
    socket.write("GET http://evil.test/ HTTP/1.1\r\nHost: evil.test\r\n\r\n")
    const [answer] = (await new Promise<Buffer[]>((resolve) => socket.once("data", (chunk) => resolve([chunk])))) as [
      Buffer,
    ]
    expect(answer.toString()).toMatch(/^HTTP\/1\.1 403 /)
    socket.destroy()
    await proxy.close()
    expect(
      await new Promise((resolve) => connect(path).on("error", (error: NodeJS.ErrnoException) => resolve(error.code))),
    ).toBe("ENOENT")
    await rm(folder, { recursive: true })
  })

  it("is its owner's alone from the moment that it is there, whatever the process leaves to others", async () => {
    const folder = await mkdtemp(join(tmpdir(), "caisson-egress-"))
    const path = join(folder, "proxy.sock")
    const before = process.umask(0)
    try {
      let mode = 0
      const bound = await listen({ path }, () => {
        mode = statSync(path).mode & 0o777
      })
      expect(mode).toBe(0o600)
      expect(process.umask()).toBe(0)
      await bound.close()
    } finally {
      process.umask(before)
    }
    await rm(folder, { recursive: true })
  })

  it("outlives an upstream that resets, and a client that stops reading", async () => {
    const folder = await mkdtemp(join(tmpdir(), "caisson-egress-"))
    const path = join(folder, "proxy.sock")
    await using upstream = await startUpstream((socket) =>
      socket.on("data", (chunk) =>
        String(chunk) === "reset" ? socket.resetAndDestroy() : socket.write(Buffer.alloc(8_000_000)),
      ),
    )
    const proxy = await createEgressProxy({
      egress: ["tcp://db.good.test:5432"],
      services: { "db.good.test": { address: "127.0.0.1", port: upstream.port } },
      listen: `unix:${path}`,
    })
    const open = async () => {
      const socket = connect(path)
      socket.on("error", () => {})
      socket.write(tunnel("db.good.test:5432"))
      await new Promise((resolve) => socket.once("data", resolve))
      return socket
    }
    const first = await open()
    const closed = new Promise((resolve) => first.on("close", resolve))
    first.write("reset")
    await closed
    const second = await open()
    second.pause()
    second.write("pour")
    await until(() => proxy.counters().bytesIn > 100_000, "bytes are on their way")
    proxy.update({ egress: [] })
    await until(() => proxy.counters().connections === 0, "the stalled client is gone")
    second.destroy()
    await proxy.close()
    await rm(folder, { recursive: true })
  })
})
