/**
 * Bytes of every protocol, bent, cut and strung together, against a proxy in a process of its own, whose upstreams
 * answer bent bytes too: whatever arrives, the process lives and serves the next request.
 */
import fc from "fast-check"
import { afterAll, beforeAll, expect, it } from "vitest"
import { runs, seeded } from "../arbitraries.ts"
import { clientFrame } from "../secrets/websocket-frame.ts"
import { type Besieged, besieged, ways } from "./besieged.ts"

let proxy: Besieged
beforeAll(async () => {
  proxy = await besieged()
})
afterAll(() => proxy[Symbol.asyncDispose]())

const key = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n"
const query = (name: string): string =>
  `\x01\x02\x01\0\0\x01\0\0\0\0\0\0${name
    .split(".")
    .map((label) => String.fromCharCode(label.length) + label)
    .join("")}\0\0\x01\0\x01`
const framed = (message: string): string => String.fromCharCode(message.length >> 8, message.length & 255) + message

/** What clients say that speak these protocols. */
const said = [
  "GET / HTTP/1.1\r\nHost: api.good.test\r\n\r\n",
  "GET http://plain.good.test/ HTTP/1.1\r\nHost: plain.good.test\r\n\r\n",
  "HEAD /x HTTP/1.0\r\nHost: api.good.test\r\nConnection: keep-alive\r\n\r\n",
  "POST / HTTP/1.1\r\nHost: api.good.test\r\nContent-Length: 4\r\n\r\nbody",
  "POST / HTTP/1.1\r\nHost: api.good.test\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n",
  "POST / HTTP/1.1\r\nHost: api.good.test\r\nExpect: the-unexpected\r\n\r\n",
  "POST / HTTP/1.1\r\nHost: api.good.test\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nx: y\r\n\r\n",
  "PUT / HTTP/1.1\r\nHost: api.good.test\r\nContent-Encoding: gzip\r\nContent-Length: 3\r\n\r\n\x1f\x8b\x08",
  `GET / HTTP/1.1\r\nHost: api.good.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n${key}\r\n`,
  "GET / HTTP/1.1\r\nHost: api.good.test\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: A\r\n\r\n",
  `GET http://plain.good.test/ HTTP/1.1\r\nHost: plain.good.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n${key}\r\n`,
  "CONNECT api.good.test:443 HTTP/1.1\r\nHost: api.good.test\r\n\r\n",
  "CONNECT db.good.test:5432 HTTP/1.1\r\n\r\n",
  "OPTIONS * HTTP/1.1\r\nHost: api.good.test\r\n\r\n",
  "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
  "GET / HTTP/1.1\r\nHost: api.good.test\r\nAuthorization: Bearer $$SECRET[GITHUB_TOKEN]$$\r\n\r\n",
  "$$SECRET[GITHUB_TOKEN]$$",
  "\x05\x01\0",
  "\x05\x01\0\x03\x0cdb.good.test\x15\x38",
  "\x04\x01\0\x50\x7f\0\0\x01x\0",
  "\x16\x03\x01\0\x05\x01\0\0\x01\0",
  framed(query("db.good.test")),
  framed(query("evil.test")),
  query("db.good.test"),
  clientFrame(Buffer.from("hello")).toString("latin1"),
  "\x89\x80abcd",
  "\x88\xff\xff\xff\xff\xff\xff\xff\xff\xffabcd",
]
/** What upstreams answer. */
const answers = [
  "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
  "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
  "HTTP/1.1 200 OK\r\n\r\nuntil the end",
  "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
  "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n\x81\x02hi",
  "HTTP/1.1 204 No Content\r\n\r\n",
  "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n",
  "HTTP/1.1 999 \r\nx\x01: y\r\n\r\n",
  "HTTP/1.0 200 \xff\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
  "\x15\x03\x01\0\x02\x02\x28",
  "",
]

const edit = fc.record({
  at: fc.double({ min: 0, max: 1, noNaN: true }),
  kind: fc.constantFrom("replace", "insert", "drop", "cut"),
  byte: fc.oneof(
    fc.integer({ min: 0, max: 255 }),
    fc.constantFrom(0, 9, 10, 13, 32, 35, 37, 46, 47, 58, 64, 127, 128, 255),
  ),
})
const bend = (text: string, edits: readonly { at: number; kind: string; byte: number }[]): string =>
  edits.reduce((whole, { at, kind, byte }) => {
    const index = Math.floor(at * whole.length)
    if (kind === "cut") return whole.slice(0, index)
    const middle = kind === "drop" ? "" : String.fromCharCode(byte)
    return whole.slice(0, index) + middle + whole.slice(kind === "insert" ? index : index + 1)
  }, text)
const words = (from: readonly string[], maxLength: number): fc.Arbitrary<string> =>
  fc
    .tuple(
      fc.array(fc.oneof({ weight: 9, arbitrary: fc.constantFrom(...from) }, { weight: 1, arbitrary: noise }), {
        minLength: 1,
        maxLength,
      }),
      fc.array(edit, { maxLength: 3 }),
    )
    .map(([parts, edits]) => bend(parts.join(""), edits))
const noise = fc.uint8Array({ maxLength: 60 }).map((bytes) => Buffer.from(bytes).toString("latin1"))

const siege = fc.record({
  way: fc.constantFrom(...ways, "tls" as const, "plain" as const),
  bytes: words(said, 5),
  cuts: fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { maxLength: 3 }),
  answer: words(answers, 2),
  then: fc.constantFrom("end" as const, "reset" as const, "stay" as const),
  datagram: fc.option(words([query("db.good.test"), query("evil.test")], 1), { freq: 4 }),
})

it("lives through bent bytes from clients and upstreams, and serves on", async () => {
  let count = 0
  await fc.assert(
    fc.asyncProperty(fc.array(siege, { minLength: 8, maxLength: 8 }), async (wave) => {
      await Promise.all(
        wave.map(async ({ way, bytes, cuts, answer, then, datagram }) => {
          proxy.answer = { bytes: Buffer.from(answer, "latin1"), then }
          const whole = Buffer.from(bytes, "latin1")
          const at = [0, ...cuts.map((cut) => Math.floor(cut * whole.length)).sort((a, b) => a - b), whole.length]
          const pieces = at.slice(1).map((end, index) => whole.subarray(at[index], end))
          if (datagram !== null) await proxy.datagram(Buffer.from(datagram, "latin1"))
          await proxy.send(way, pieces, 25)
        }),
      )
      count += wave.length
      await proxy.serves()
    }),
    { ...seeded, numRuns: Math.max(40, Math.floor(runs / 200)), endOnFailure: true },
  )
  expect(count).toBeGreaterThanOrEqual(320)
})
