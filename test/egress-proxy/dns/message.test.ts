import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { answer, dnsTypes, parseQuery } from "../../../src/egress-proxy/dns/message.ts"
import { createDnsStreamReader, frameDnsMessage } from "../../../src/egress-proxy/dns/tcp-framing.ts"

const wireName = (name: string): Buffer =>
  Buffer.concat([
    ...name
      .split(".")
      .filter(Boolean)
      .flatMap((label) => [Buffer.from([label.length]), Buffer.from(label, "latin1")]),
    Buffer.from([0]),
  ])

interface Parts {
  flags?: number
  counts?: readonly [number, number, number, number]
  name?: Buffer
  type?: number
  class?: number
  tail?: Buffer
}
const u16 = (n: number): Buffer => Buffer.from([(n >> 8) & 0xff, n & 0xff])
const query = (parts: Parts = {}): Buffer =>
  Buffer.concat([
    u16(0x1234),
    u16(parts.flags ?? 0x0100),
    ...(parts.counts ?? [1, 0, 0, 0]).map(u16),
    parts.name ?? wireName("api.good.test"),
    u16(parts.type ?? 1),
    u16(parts.class ?? 1),
    parts.tail ?? Buffer.alloc(0),
  ])
const opt = (version = 0, options = Buffer.alloc(0)): Buffer =>
  Buffer.concat([Buffer.from([0]), u16(41), u16(1232), Buffer.from([0, version, 0, 0]), u16(options.length), options])

const parsed = (bytes: Buffer) => {
  const result = parseQuery(bytes)
  if (!result.ok) throw new Error(result.reason)
  return result.query
}
const codeOf = (reply: Buffer | undefined): number | undefined => reply && reply.readUInt16BE(2) & 0xf
const declared = { kind: "declared", address: "198.18.0.2" } as const

describe("a query", () => {
  it("is read with its name in lower case", () => {
    expect(parsed(query({ name: wireName("API.Good.test") }))).toMatchObject({
      id: 0x1234,
      name: "api.good.test",
      type: 1,
      class: 1,
      edns: false,
    })
  })

  it("may carry EDNS with options", () => {
    const cookie = Buffer.concat([u16(10), u16(8), Buffer.alloc(8)])
    expect(parsed(query({ counts: [1, 0, 0, 1], tail: opt(0, cookie) }))).toMatchObject({ edns: true })
  })

  it.each(["evil\0.good.test", "a b.test", "a/b.test", "\xe9.test"])(
    "has no name where a byte is none of a host name's: %j",
    (name) => {
      const read = parsed(query({ name: wireName(name) }))
      expect(read.name).toBeUndefined()
      expect(read.display).toMatch(/^[\x21-\x7e]+$/)
    },
  )

  it("has no name where a label holds a dot", () => {
    expect(parsed(query({ name: Buffer.from([6, 97, 46, 116, 101, 115, 116, 0]) }))).toMatchObject({
      name: undefined,
      display: "a\\046test",
    })
  })

  it("has no name for the root", () => {
    expect(parsed(query({ name: Buffer.from([0]) }))).toMatchObject({ name: undefined, display: "." })
  })

  const malformed: readonly (readonly [string, Buffer, number | undefined])[] = [
    ["no header", Buffer.alloc(11), undefined],
    ["a response", query({ flags: 0x8180 }), undefined],
    ["another opcode", query({ flags: 0x2800 }), 4],
    ["no question", query({ counts: [0, 0, 0, 0] }), 1],
    ["two questions", query({ counts: [2, 0, 0, 0] }), 1],
    ["an answer", query({ counts: [1, 1, 0, 0] }), 1],
    ["an authority", query({ counts: [1, 0, 1, 0] }), 1],
    ["a truncation flag", query({ flags: 0x0300 }), 1],
    ["compression in the name", query({ name: Buffer.from([0xc0, 0x0c]) }), 1],
    ["a pointer to itself after a label", query({ name: Buffer.from([1, 97, 0xc0, 0x0c]) }), 1],
    [
      "a label over 63 bytes",
      query({ name: Buffer.concat([Buffer.from([64]), Buffer.alloc(64, "a"), Buffer.from([0])]) }),
      1,
    ],
    [
      "a pointer that could be a long label",
      query({ name: Buffer.concat([Buffer.from([0xc0]), Buffer.alloc(0xc0, "a"), Buffer.from([0])]) }),
      1,
    ],
    ["a reserved label form", query({ name: Buffer.from([0x40, 0]) }), 1],
    ["a name over 255 bytes", query({ name: wireName(`${"a".repeat(63)}.`.repeat(4)) }), 1],
    ["a cut-off question", query().subarray(0, -1), 1],
    ["a cut-off name", query().subarray(0, 16), 1],
    ["bytes after the question", query({ tail: Buffer.from([0]) }), 1],
    [
      "an additional record that is not EDNS",
      query({ counts: [1, 0, 0, 1], tail: Buffer.concat([Buffer.from([0]), u16(250), Buffer.alloc(8)]) }),
      1,
    ],
    ["a missing additional record", query({ counts: [1, 0, 0, 1] }), 1],
    ["two additional records", query({ counts: [1, 0, 0, 2], tail: Buffer.concat([opt(), opt()]) }), 1],
    ["EDNS options that do not add up", query({ counts: [1, 0, 0, 1], tail: opt(0, Buffer.from([0, 1, 0, 9])) }), 1],
  ]
  it.each(malformed)("is malformed with %s", (_, bytes, code) => {
    const result = parseQuery(bytes)
    expect(result.ok).toBe(false)
    if (!result.ok) {
      expect(codeOf(result.reply)).toBe(code)
      if (result.reply !== undefined) expect(result.reply.readUInt16BE(0)).toBe(0x1234)
    }
  })

  it("of an unknown EDNS version is answered BADVERS", () => {
    const result = parseQuery(query({ counts: [1, 0, 0, 1], tail: opt(1) }))
    expect(result).toMatchObject({ ok: false })
    if (!result.ok) expect([codeOf(result.reply), result.reply?.at(-6)]).toEqual([0, 1])
  })
})

describe("an answer", () => {
  it("gives a declared name its address, and echoes the question byte for byte", () => {
    const asked = query({ name: wireName("aPi.GOOD.test") })
    const reply = answer(parsed(asked), declared)
    expect(reply.readUInt16BE(2)).toBe(0x8580)
    expect([4, 6, 8, 10].map((at) => reply.readUInt16BE(at))).toEqual([1, 1, 0, 0])
    expect(reply.subarray(12, asked.length)).toEqual(asked.subarray(12))
    expect(reply.subarray(asked.length).toString("hex")).toBe("c00c00010001000000050004c6120002")
  })

  it.each([dnsTypes.aaaa, dnsTypes.https, dnsTypes.svcb, 15, 16, 33, 6])(
    "of type %d for a declared name is an empty success",
    (type) => {
      const reply = answer(parsed(query({ type })), declared)
      expect([codeOf(reply), reply.readUInt16BE(6)]).toEqual([0, 0])
    },
  )

  it.each([dnsTypes.a, dnsTypes.aaaa, dnsTypes.https])("of type %d for an undeclared name is NXDOMAIN", (type) => {
    const reply = answer(parsed(query({ type })), { kind: "undeclared" })
    expect([codeOf(reply), reply.readUInt16BE(6)]).toEqual([3, 0])
  })

  it("of another class is refused, and a failure is SERVFAIL", () => {
    expect(codeOf(answer(parsed(query({ class: 3 })), declared))).toBe(5)
    expect(codeOf(answer(parsed(query()), { kind: "failure" }))).toBe(2)
  })

  it("carries EDNS exactly when the query did", () => {
    const reply = answer(parsed(query({ counts: [1, 0, 0, 1], tail: opt() })), declared)
    expect(reply.readUInt16BE(10)).toBe(1)
    expect(reply.subarray(-11).toString("hex")).toBe("00002904d0000000000000")
  })
})

describe("hostile DNS bytes", () => {
  it("never crash, never get an answer over 512 bytes, and never yield a name outside host characters", () => {
    const bytes = fc.oneof(
      fc.uint8Array({ maxLength: 600 }),
      fc.uint8Array({ maxLength: 300 }).map((tail) => query({ name: Buffer.from(tail) })),
      fc.uint8Array({ maxLength: 60 }).map((tail) => query({ counts: [1, 0, 0, 1], tail: Buffer.from(tail) })),
    )
    fc.assert(
      fc.property(bytes, (input) => {
        const result = parseQuery(Buffer.from(input))
        const reply = result.ok ? answer(result.query, declared) : result.reply
        if (reply !== undefined) expect(reply.length).toBeLessThanOrEqual(512)
        if (reply !== undefined) expect(parseQuery(reply)).toMatchObject({ ok: false, reply: undefined })
        if (result.ok && result.query.name !== undefined)
          expect(result.query.name).toMatch(/^[a-z0-9_-]+(\.[a-z0-9_-]+)*$/)
      }),
      { numRuns: Number(process.env["CAISSON_FUZZ_RUNS"] ?? 3000) },
    )
  })
})

describe("DNS over a stream", () => {
  it("yields the same messages however they are cut", () => {
    const messages = [query(), query({ type: 28 }), query({ name: wireName("x.test") })]
    const bytes = Buffer.concat(messages.map(frameDnsMessage))
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 1, max: 20 }), { minLength: 1 }), (sizes) => {
        const reader = createDnsStreamReader()
        const got: Buffer[] = []
        for (let at = 0, turn = 0; at < bytes.length; turn += 1) {
          const size = sizes[turn % sizes.length] as number
          const step = reader.push(bytes.subarray(at, at + size))
          if (step.state === "ok") got.push(...step.messages)
          at += size
        }
        expect(got).toEqual(messages)
      }),
    )
  })

  it.each([0, 11, 1025, 65535])("ends at a message of %d bytes", (length) => {
    const reader = createDnsStreamReader()
    expect(reader.push(u16(length))).toMatchObject({ state: "bad" })
    expect(reader.push(frameDnsMessage(query()))).toMatchObject({ state: "bad" })
  })
})
