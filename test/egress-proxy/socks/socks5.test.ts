import fc from "fast-check"
import { describe, expect, it } from "vitest"
import {
  createSocks5Reader,
  socks5Codes,
  socks5Reply,
  type Socks5Step,
} from "../../../src/egress-proxy/socks/socks5.ts"

const greeting = Buffer.from([5, 1, 0])
const named = (name: Buffer | string, port = 443, command = 1): Buffer => {
  const bytes = Buffer.from(name as string, "latin1")
  return Buffer.concat([Buffer.from([5, command, 0, 3, bytes.length]), bytes, Buffer.from([port >> 8, port & 0xff])])
}

/** what a client sees and what the proxy learns, over all pushes */
function converse(bytes: Buffer, cuts: readonly number[]): { replies: string; last: Socks5Step } {
  const reader = createSocks5Reader()
  let last: Socks5Step = { state: "more" }
  const replies: Buffer[] = []
  let at = 0
  for (let turn = 0; at < bytes.length && last.state === "more"; turn += 1) {
    const size = cuts[turn % cuts.length] ?? 1
    last = reader.push(bytes.subarray(at, at + size))
    at += size
    if (last.reply !== undefined) replies.push(last.reply)
  }
  if (last.state === "request") last = { ...last, rest: Buffer.concat([last.rest, bytes.subarray(at)]) }
  const { reply: _, ...rest } = last
  return { replies: Buffer.concat(replies).toString("hex"), last: rest as Socks5Step }
}

describe("a SOCKS5 client", () => {
  const requests: readonly (readonly [string, Buffer, object])[] = [
    [
      "a name",
      named("api.good.test"),
      { command: "connect", target: { kind: "name", bytes: Buffer.from("api.good.test") }, port: 443 },
    ],
    [
      "a name with a NUL, as raw bytes",
      named("evil.test\0.good.test"),
      { target: { kind: "name", bytes: Buffer.from("evil.test\0.good.test") } },
    ],
    ["the longest name", named("a".repeat(255)), { target: { kind: "name", bytes: Buffer.alloc(255, "a") } }],
    [
      "an IPv4 address",
      Buffer.from([5, 1, 0, 1, 127, 0, 0, 1, 0, 80]),
      { target: { kind: "ipv4", address: "127.0.0.1" }, port: 80 },
    ],
    [
      "an IPv6 address",
      Buffer.concat([Buffer.from([5, 1, 0, 4]), Buffer.alloc(15), Buffer.from([1, 0, 80])]),
      { target: { kind: "ipv6", address: "::1" } },
    ],
    ["BIND", named("a.test", 1, 2), { command: "bind" }],
    ["UDP", named("a.test", 1, 3), { command: "udp" }],
    ["port 0, for the caller to refuse", named("a.test", 0), { port: 0 }],
  ]
  it.each(requests)("asks for %s, split at every byte", (_, request, expected) => {
    const bytes = Buffer.concat([greeting, request])
    const whole = converse(bytes, [bytes.length])
    expect(whole.last).toMatchObject({ state: "request", rest: Buffer.alloc(0), ...expected })
    expect(whole.replies).toBe("0500")
    for (let cut = 1; cut < bytes.length; cut += 1) expect(converse(bytes, [cut, bytes.length])).toEqual(whole)
    expect(converse(bytes, [1])).toEqual(whole)
  })

  it("gets its method chosen before it sends the request", () => {
    expect(createSocks5Reader().push(greeting)).toEqual({ state: "more", reply: Buffer.from([5, 0]) })
  })

  it("may offer other methods beside no authentication", () => {
    expect(createSocks5Reader().push(Buffer.from([5, 3, 2, 1, 0]))).toEqual({
      state: "more",
      reply: Buffer.from([5, 0]),
    })
  })

  it("may send early data, which is handed on once", () => {
    const step = createSocks5Reader().push(Buffer.concat([greeting, named("a.test"), Buffer.from("early")]))
    expect(step).toMatchObject({ state: "request", rest: Buffer.from("early"), reply: Buffer.from([5, 0]) })
  })

  const refusals: readonly (readonly [string, Buffer, string])[] = [
    ["insists on a password", Buffer.from([5, 1, 2]), "05ff"],
    ["offers no method", Buffer.from([5, 0]), "05ff"],
    ["speaks SOCKS4", Buffer.from([4, 1, 0, 80, 1, 2, 3, 4, 0]), "005b000000000000"],
    ["speaks HTTP", Buffer.from("GET / HTTP/1.1\r\n"), ""],
    [
      "changes version in the request",
      Buffer.concat([greeting, Buffer.from([4, 1, 0, 1])]),
      `0500${socks5Reply(1).toString("hex")}`,
    ],
    [
      "sends an unknown command",
      Buffer.concat([greeting, named("a.test", 1, 9)]),
      `0500${socks5Reply(7).toString("hex")}`,
    ],
    ["sends command 0", Buffer.concat([greeting, named("a.test", 1, 0)]), `0500${socks5Reply(7).toString("hex")}`],
    [
      "sets the reserved byte",
      Buffer.concat([greeting, Buffer.from([5, 1, 1, 1])]),
      `0500${socks5Reply(1).toString("hex")}`,
    ],
    [
      "sends an unknown address type",
      Buffer.concat([greeting, Buffer.from([5, 1, 0, 2])]),
      `0500${socks5Reply(8).toString("hex")}`,
    ],
    ["sends an empty name", Buffer.concat([greeting, named("")]), `0500${socks5Reply(1).toString("hex")}`],
  ]
  it.each(refusals)("is refused when it %s, whole and byte by byte", (_, bytes, replies) => {
    expect(converse(bytes, [bytes.length])).toMatchObject({ replies, last: { state: "bad" } })
    expect(converse(bytes, [1])).toEqual(converse(bytes, [bytes.length]))
  })

  it("stays refused, without a second reply", () => {
    const reader = createSocks5Reader()
    reader.push(Buffer.from([4]))
    expect(reader.push(greeting)).toEqual({ state: "bad", reason: expect.stringContaining("SOCKS4") })
  })
})

describe("hostile SOCKS bytes", () => {
  it("never crash the reader, and decide the same however they are cut", () => {
    const bytes = fc.oneof(
      fc.uint8Array({ maxLength: 600 }),
      fc.uint8Array({ maxLength: 600 }).map((tail) => Buffer.concat([greeting, tail])),
      fc.uint8Array({ maxLength: 300 }).map((tail) => Buffer.concat([greeting, Buffer.from([5, 1, 0, 3]), tail])),
    )
    const cuts = fc.array(fc.integer({ min: 1, max: 30 }), { minLength: 1, maxLength: 10 })
    fc.assert(
      fc.property(bytes, cuts, (input, sizes) => {
        const buffer = Buffer.from(input)
        expect(converse(buffer, sizes)).toEqual(converse(buffer, [Math.max(1, buffer.length)]))
      }),
      { numRuns: Number(process.env["CAISSON_FUZZ_RUNS"] ?? 2000) },
    )
  })

  it("replies are ten bytes with the code in the second", () => {
    expect(socks5Reply(socks5Codes.notAllowed)).toEqual(Buffer.from([5, 2, 0, 1, 0, 0, 0, 0, 0, 0]))
    expect(() => socks5Reply(256)).toThrow()
  })
})
