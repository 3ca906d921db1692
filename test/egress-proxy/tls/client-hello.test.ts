import { spawn } from "node:child_process"
import { once } from "node:events"
import { type AddressInfo, createServer } from "node:net"
import { connect as tlsConnect } from "node:tls"
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { type ClientHelloStep, createClientHelloReader } from "../../../src/egress-proxy/tls/client-hello.ts"
import { alpn, extension, fragmented, handshakeMessage, hello, record, serverName } from "./hello-bytes.ts"

const maxBytes = 16_384

function read(bytes: Buffer, sizes: readonly number[] = [bytes.length], cap = maxBytes): ClientHelloStep {
  const reader = createClientHelloReader({ maxBytes: cap })
  let step: ClientHelloStep = { state: "more" }
  let at = 0
  for (let turn = 0; at < bytes.length && step.state === "more"; turn += 1) {
    const size = Math.max(1, sizes[turn % sizes.length] ?? 1)
    step = reader.push(bytes.subarray(at, at + size))
    at += size
  }
  return step
}

const grease = extension(0x1a1a, Buffer.alloc(0))
const typical = [grease, serverName("api.good.test"), alpn("h2", "http/1.1"), extension(0x2a2a, Buffer.from([0]))]

describe("a ClientHello that is well formed", () => {
  it("yields its name, protocols and exact bytes", () => {
    const bytes = hello({ extensions: typical })
    expect(read(bytes)).toEqual({
      state: "hello",
      sni: "api.good.test",
      alpn: ["h2", "http/1.1"],
      ech: false,
      raw: bytes,
    })
  })

  it("reads the same in one-byte segments", () => {
    const bytes = hello({ extensions: typical })
    expect(read(bytes, [1])).toEqual(read(bytes))
  })

  it("reads the same over several records, down to one byte a record", () => {
    const message = handshakeMessage({ extensions: typical })
    for (const size of [1, 2, 3, 4, 5, 63, message.length - 1]) {
      const bytes = fragmented(message, size)
      expect(read(bytes, [1])).toMatchObject({ state: "hello", sni: "api.good.test", raw: bytes })
    }
  })

  it("keeps early data behind the hello in the raw bytes", () => {
    const bytes = Buffer.concat([hello({ extensions: typical }), record(Buffer.from("early"), 23, 0x0303)])
    expect(read(bytes)).toMatchObject({ state: "hello", raw: bytes })
  })

  it("reports an encrypted hello together with the outer name", () => {
    const ech = extension(0xfe0d, Buffer.from([0, 0, 1, 0, 1, 5, 0, 0, 0, 0]))
    expect(read(hello({ extensions: [serverName("outer.test"), ech] }))).toMatchObject({ sni: "outer.test", ech: true })
    expect(read(hello({ extensions: [extension(0xffce, Buffer.alloc(4))] }))).toMatchObject({
      sni: undefined,
      ech: true,
    })
  })

  const names: readonly (readonly [string, Buffer[] | undefined, object])[] = [
    ["upper case", [serverName("API.Good.TEST")], { sni: "api.good.test" }],
    ["a trailing dot, kept", [serverName("api.good.test.")], { sni: "api.good.test." }],
    ["an underscore", [serverName("_x.good.test")], { sni: "_x.good.test" }],
    ["no extensions at all", undefined, { sni: undefined, sniIssue: "absent" }],
    ["no server name", [alpn("h2")], { sni: undefined, sniIssue: "absent" }],
    ["an empty extension", [extension(0, Buffer.alloc(0))], { sni: undefined, sniIssue: "empty" }],
    ["an empty list", [extension(0, Buffer.from([0, 0]))], { sni: undefined, sniIssue: "empty" }],
    ["an empty name", [serverName("")], { sni: undefined, sniIssue: "empty" }],
    ["an IPv4 address", [serverName("127.0.0.1")], { sni: undefined, sniIssue: "address" }],
    ["an IPv6 address", [serverName("::1")], { sni: undefined, sniIssue: "address" }],
    ["a short IPv4 spelling", [serverName("127.1")], { sni: undefined, sniIssue: "address" }],
    ["a hexadecimal address", [serverName("0x7f.1.0x1")], { sni: undefined, sniIssue: "address" }],
    ["an address with a trailing dot", [serverName("127.0.0.1.")], { sni: undefined, sniIssue: "address" }],
  ]
  it.each(names)("reports a server name with %s", (_, extensions, expected) => {
    expect(read(hello({ extensions }))).toMatchObject({ state: "hello", ...expected })
  })
})

describe("a ClientHello that servers could read differently", () => {
  const raw = (type: number, ...bytes: number[]): Buffer => extension(type, Buffer.from(bytes))
  const bad: readonly (readonly [string, Buffer])[] = [
    ["a repeated extension", hello({ extensions: [grease, serverName("a.test"), grease] })],
    ["two server name extensions", hello({ extensions: [serverName("a.test"), serverName("b.test")] })],
    ["two server names in one extension", hello({ extensions: [serverName("a.test", "b.test")] })],
    ["the same server name twice", hello({ extensions: [serverName("a.test", "a.test")] })],
    ["a server name of an unknown type", hello({ extensions: [raw(0, 0, 4, 1, 0, 1, 97)] })],
    ["a NUL in the name", hello({ extensions: [serverName("a.test\0.evil.test")] })],
    ["a space in the name", hello({ extensions: [serverName("a test")] })],
    ["a byte above ASCII in the name", hello({ extensions: [serverName(Buffer.from([0x61, 0xe9]))] })],
    ["a name whose lower case would be ASCII", hello({ extensions: [serverName(Buffer.from("\u212a.test", "utf8"))] })],
    ["an empty label", hello({ extensions: [serverName("a..test")] })],
    ["a leading dot", hello({ extensions: [serverName(".a.test")] })],
    ["only a dot", hello({ extensions: [serverName(".")] })],
    ["a label that is too long", hello({ extensions: [serverName(`${"a".repeat(64)}.test`)] })],
    ["a name that is too long", hello({ extensions: [serverName("a.".repeat(130))] })],
    ["a server name list longer than its extension", hello({ extensions: [raw(0, 0, 9, 0, 0, 1, 97)] })],
    ["a server name list shorter than its extension", hello({ extensions: [raw(0, 0, 4, 0, 0, 1, 97, 98)] })],
    ["a server name longer than its list", hello({ extensions: [raw(0, 0, 4, 0, 0, 9, 97)] })],
    ["an empty protocol list", hello({ extensions: [raw(16, 0, 0)] })],
    ["an empty protocol name", hello({ extensions: [raw(16, 0, 1, 0)] })],
    ["bytes after the protocol list", hello({ extensions: [raw(16, 0, 2, 1, 97, 98)] })],
    ["bytes after the extensions", hello({ extensions: typical, after: Buffer.from([0]) })],
    ["half an extension", hello({ extensions: [Buffer.from([0, 0, 0])] })],
    ["an odd number of cipher suite bytes", hello({ suites: Buffer.from([1, 2, 3]), extensions: typical })],
    ["no cipher suites", hello({ suites: Buffer.alloc(0), extensions: typical })],
    ["no null compression", hello({ compression: Buffer.from([1]), extensions: typical })],
    ["a session id that is too long", hello({ session: Buffer.alloc(33), extensions: typical })],
    ["the version of SSL 3", hello({ version: 0x0300, extensions: typical })],
    ["a version from the future", hello({ version: 0x0304, extensions: typical })],
    ["an unknown record version", record(handshakeMessage({ extensions: typical }), 22, 0x0305)],
    ["an empty record", Buffer.concat([record(Buffer.alloc(0)), hello({ extensions: typical })])],
    ["a record over the limit", Buffer.from([22, 3, 1, 0x40, 0x01])],
    ["another handshake message first", record(Buffer.from([2, 0, 0, 0]))],
    [
      "bytes after the hello in its record",
      record(Buffer.concat([handshakeMessage({ extensions: typical }), Buffer.from([0])])),
    ],
    [
      "another record type in between",
      Buffer.concat([
        record(handshakeMessage({ extensions: typical }).subarray(0, 9)),
        record(Buffer.from([1, 0]), 21),
      ]),
    ],
    ["a length over the cap", record(Buffer.from([1, 0xff, 0xff, 0xff]))],
  ]
  it.each(bad)("is bad: %s, whole and in one-byte segments", (_, bytes) => {
    expect(read(bytes)).toMatchObject({ state: "bad" })
    expect(read(bytes, [1])).toEqual(read(bytes))
  })

  it("is bad once the cap is reached without a whole hello, and good one byte below", () => {
    const bytes = hello({ extensions: typical })
    expect(read(bytes, [1], bytes.length)).toMatchObject({ state: "hello" })
    expect(read(bytes, [1], bytes.length - 1)).toMatchObject({ state: "bad" })
    expect(read(bytes, [bytes.length], bytes.length - 1)).toMatchObject({ state: "bad" })
  })

  it("stays refused, and does not take bytes after a hello", () => {
    const refused = createClientHelloReader({ maxBytes })
    const first = refused.push(Buffer.from("GET /"))
    expect(refused.push(hello({ extensions: typical }))).toEqual(first)
    const finished = createClientHelloReader({ maxBytes })
    finished.push(hello({ extensions: typical }))
    expect(() => finished.push(Buffer.from([1]))).toThrow()
  })
})

describe("another protocol", () => {
  it.each([
    "SSH-2.0-OpenSSH_9.2\r\n",
    "GET / HTTP/1.1\r\n",
    "EHLO x\r\n",
    "\x80\x2e\x01\x00\x02",
    "\x16\x02\x00\x00\x00",
    "PRI * HTTP/2.0",
  ])("is known from its first bytes: %j", (text) => {
    const bytes = Buffer.from(text, "latin1")
    expect(read(bytes)).toMatchObject({ state: "not-tls" })
    expect(read(bytes, [1])).toEqual(read(bytes))
  })
})

describe("hostile bytes", () => {
  const cuts = fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 20 })

  it("never crash the reader, and decide the same however they are cut", () => {
    const bytes = fc.oneof(
      fc.uint8Array({ maxLength: 400 }),
      fc.uint8Array({ maxLength: 400 }).map((tail) => Buffer.concat([Buffer.from([22, 3, 1]), tail])),
      fc
        .uint8Array({ maxLength: 300 })
        .map((tail) => record(Buffer.concat([Buffer.from([1, 0, 0, tail.length]), tail]))),
    )
    fc.assert(
      fc.property(bytes, cuts, (input, sizes) => {
        const whole = read(Buffer.from(input))
        const parts = read(Buffer.from(input), sizes)
        // A hello ends the reading, so the raw bytes may stop at another cut.
        expect({ ...parts, raw: undefined }).toEqual({ ...whole, raw: undefined })
      }),
      { numRuns: Number(process.env["CAISSON_FUZZ_RUNS"] ?? 2000) },
    )
  })

  it("never turn one valid hello into another name by changing one byte elsewhere", () => {
    const bytes = hello({ extensions: typical })
    const nameAt = bytes.indexOf("api.good.test")
    fc.assert(
      fc.property(fc.nat({ max: bytes.length - 1 }), fc.integer({ min: 0, max: 255 }), (at, byte) => {
        fc.pre(at < nameAt || at >= nameAt + "api.good.test".length)
        const changed = Buffer.from(bytes)
        changed[at] = byte
        const step = read(changed)
        if (step.state === "hello") expect([undefined, "api.good.test"]).toContain(step.sni)
      }),
      { numRuns: Number(process.env["CAISSON_FUZZ_RUNS"] ?? 3000) },
    )
  })

  it("hold no more than the cap and one chunk", () => {
    const reader = createClientHelloReader({ maxBytes: 1024 })
    const endless = record(Buffer.concat([Buffer.from([1, 0, 3, 0xf0]), Buffer.alloc(16_000)]))
    let pushed = 0
    while (reader.push(endless.subarray(pushed, pushed + 7)).state === "more") pushed += 7
    expect(pushed).toBeLessThanOrEqual(1024)
  })
})

describe("hellos of real clients", () => {
  async function captured(dial: (port: number) => { stop(): void }): Promise<ClientHelloStep> {
    const server = createServer()
    server.listen(0, "127.0.0.1")
    await once(server, "listening")
    const client = dial((server.address() as AddressInfo).port)
    const [socket] = await once(server, "connection")
    const reader = createClientHelloReader({ maxBytes: 65_536 })
    try {
      for await (const chunk of socket) {
        for (const byte of chunk as Buffer) {
          const step = reader.push(Buffer.from([byte]))
          if (step.state !== "more") return step
        }
      }
      return { state: "more" }
    } finally {
      socket.destroy()
      client.stop()
      server.close()
    }
  }

  it("are read from node:tls, with and without a name", async () => {
    const dial = (options: object) => (port: number) => {
      const socket = tlsConnect({ host: "127.0.0.1", port, ...options })
      socket.on("error", () => undefined)
      return { stop: () => void socket.destroy() }
    }
    const named = { servername: "Real.Good.test", ALPNProtocols: ["h2", "http/1.1"] }
    expect(await captured(dial(named))).toMatchObject({
      state: "hello",
      sni: "real.good.test",
      alpn: ["h2", "http/1.1"],
    })
    expect(await captured(dial({}))).toMatchObject({ state: "hello", sni: undefined })
  })

  it.each([[], ["-tls1_2"], ["-noservername"]])("are read from openssl s_client %j", async (...flags: string[]) => {
    const step = await captured((port) => {
      const name = flags.includes("-noservername") ? [] : ["-servername", "api.good.test"]
      const child = spawn("openssl", ["s_client", "-connect", `127.0.0.1:${port}`, ...name, ...flags], {
        stdio: "ignore",
      })
      return { stop: () => void child.kill() }
    })
    expect(step).toMatchObject({ state: "hello", sni: flags.includes("-noservername") ? undefined : "api.good.test" })
  })
})
