/** What the proxy makes of a `resolve`, `dial` or `onVerdict` that misbehaves: an outcome, never a crash or a leak. */
import { connect, Socket } from "node:net"
import { describe, expect, it } from "vitest"
import { attemptWith, createConnector } from "../../src/egress-proxy/dial/connector.ts"
import { parseIp } from "../../src/egress-proxy/policy/address.ts"
import { Deadline } from "../../src/egress-proxy/connection/deadline.ts"
import type { EgressProxyOptions } from "../../src/egress-proxy/proxy.ts"
import type { Dial, Resolve } from "../../src/egress-proxy/types.ts"
import { echo, established, rig, startUpstream, tunnel } from "./harness.ts"

const ask = async (options: Partial<EgressProxyOptions>): Promise<{ text: string; pending: number }> => {
  await using upstream = await startUpstream(echo)
  await using test = await rig(upstream, options)
  const client = test.client()
  client.send(tunnel("db.good.test:5432"))
  const { text } = await Promise.race([client.closed, client.sees(established).then((seen) => ({ text: seen }))])
  return { text, pending: test.proxy.counters().pending }
}
const denied = (text: string): string | undefined => /x-caisson-denied: (\S+)/.exec(text)?.[1]

describe("a resolver", () => {
  it("may answer as dns.lookup does, with objects", async () => {
    const { text } = await ask({ resolve: () => [{ address: "93.184.216.34", family: 4 }] })
    expect(text).toMatch(established)
    expect(denied((await ask({ resolve: () => [{ address: "127.0.0.1" }] })).text)).toBe("resolved_loopback")
  })

  it.each<[string, unknown]>([
    ["a blank behind an address", ["127.0.0.1 "]],
    ["a number", [2_130_706_433]],
    ["a nested list", [["93.184.216.34"]]],
    ["one address that is none among good ones", ["93.184.216.34", "localhost"]],
    ["an object without an address", [{ family: 4 }]],
    ["an object with a number for an address", [{ address: 2_130_706_433 }]],
    ["null in a list", [null]],
    ["null", null],
    ["a plain string", "93.184.216.34"],
  ])("that answers %s is a DNS failure", async (_, answer) => {
    const { text, pending } = await ask({ resolve: (() => answer) as Resolve })
    expect([denied(text), pending]).toEqual(["dns_failure", 0])
  })
})

describe("a dial", () => {
  it.each<[string, () => unknown]>([
    ["nothing", () => undefined],
    ["null", () => null],
    ["no socket", () => ({})],
    ["a promise of nothing", async () => undefined],
    ["a socket that nobody connects", () => new Socket()],
    ["a destroyed socket", () => new Socket().destroy()],
    [
      "an exception",
      () => {
        throw new Error("dial")
      },
    ],
    [
      "a rejection",
      async () => {
        throw new Error("dial")
      },
    ],
  ])("that gives %s is a failed connection", async (_, dial) => {
    const { text, pending } = await ask({ dial: dial as Dial })
    expect([denied(text), pending]).toEqual(["connect_failed", 0])
  })

  it("may give any thenable of a socket, connected or not", async () => {
    await using upstream = await startUpstream(echo)
    const thenable: unknown = { then: (done: (socket: Socket) => void) => done(connect(upstream.port, "127.0.0.1")) }
    expect((await ask({ dial: () => thenable as Promise<Socket> })).text).toMatch(established)
  })

  it("that ends too late with nothing leaves no rejection behind", async () => {
    let late: ((value: never) => void) | undefined
    const dial = (() => new Promise((resolve) => (late = resolve))) as Dial
    const { text } = await ask({ dial, budgets: { connectTimeoutMs: 20 } })
    late?.(undefined as never)
    await new Promise((resolve) => setImmediate(resolve))
    expect(denied(text)).toBe("connect_timeout")
  })

  it("to an address that does not answer leaves time for the next one", async () => {
    await using upstream = await startUpstream(echo)
    const addresses = ["2606:4700::1111", "93.184.216.34"].map((text) => parseIp(text) ?? expect.unreachable())
    const dial = ((address: string) =>
      address.includes(":") ? new Promise(() => {}) : connect(upstream.port, "127.0.0.1")) as Dial
    const deadline = new Deadline(400)
    const reached = await createConnector(addresses, 443, attemptWith(dial), 4).dial(deadline)
    deadline.settle()
    expect(reached).toMatchObject({ ok: true, value: { address: "93.184.216.34" } })
    if (reached.ok) reached.value.socket.destroy()
  })
})

describe("a hook for verdicts", () => {
  it("that rejects is no unhandled rejection, and nothing passes from then on", async () => {
    await using upstream = await startUpstream(echo)
    const onVerdict = (): unknown => Promise.reject(new Error("hook"))
    await using test = await rig(upstream, { onVerdict })
    const first = test.client()
    first.send(tunnel("db.good.test:5432"))
    await first.closed
    const second = test.client()
    second.send(tunnel("db.good.test:5432"))
    expect(denied((await second.closed).text)).toBe("verdict_log_failed")
  })
})
