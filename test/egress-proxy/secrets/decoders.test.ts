/** Compressed bodies that cost little to send: what they may take, and for how long. */
import { brotliCompressSync, constants, gzipSync } from "node:zlib"
import { describe, expect, it } from "vitest"
import { createBodyScanner } from "../../../src/egress-proxy/secrets/body.ts"
import { decodingOf } from "../../../src/egress-proxy/secrets/decoders.ts"
import { createDecodingRoom } from "../../../src/egress-proxy/secrets/decoding-room.ts"
import { createTurns } from "../../../src/egress-proxy/connection/turns.ts"
import { rig, startUpstream, until } from "../harness.ts"

const placeholder = "$$SECRET[API_TOKEN]$$"
const placeholders = [placeholder]
const mib = 1_048_576

/** A zstd frame that asks for a window of two to this power, and fills it with blocks of four bytes each. */
function zstdFrame(windowLog: number, blocks: number): Buffer {
  const block = (131_072 << 3) | 2
  const run = [block & 0xff, (block >> 8) & 0xff, block >> 16, 0x61]
  return Buffer.from([
    0x28,
    0xb5,
    0x2f,
    0xfd,
    0,
    (windowLog - 10) << 3,
    ...Array.from({ length: blocks }, () => run).flat(),
  ])
}

describe("the memory for decoding", () => {
  it("is handed out up to its capacity, then in the order of the line, to those that still wait", async () => {
    const room = createDecodingRoom(10)
    const seen: string[] = []
    const enter = (name: string, bytes: number) => {
      const place = room.enter(bytes)
      void place.ready.then((there) => seen.push(`${name} ${there}`))
      return place
    }
    const first = enter("first", 10)
    const second = enter("second", 4)
    const third = enter("third", 7)
    const fourth = enter("fourth", 6)
    await Promise.resolve()
    expect([seen, room.taken]).toEqual([["first true"], 10])
    third.leave()
    first.leave()
    first.leave()
    await until(() => seen.length === 4, "all but the one that left are in")
    expect([seen.toSorted(), room.taken]).toEqual([["first true", "fourth true", "second true", "third false"], 10])
    second.leave()
    fourth.leave()
    expect(room.taken).toBe(0)
  })

  it("is given to one that wants more than there is, when it is alone", async () => {
    const room = createDecodingRoom(10)
    expect(await room.enter(11).ready).toBe(true)
  })

  it("bounds what a zstd body may ask for: 8 MiB as on the web, and not a window more", async () => {
    const scan = async (bytes: Buffer) => {
      using scanner = createBodyScanner({
        placeholders,
        encoding: "zstd",
        turns: createTurns(65_536),
        room: createDecodingRoom(1),
      })
      return await scanner.push(bytes)
    }
    expect(await scan(zstdFrame(23, 100))).toEqual({ state: "clean" })
    expect(await scan(zstdFrame(24, 1))).toMatchObject({ state: "unscannable" })
    expect(await scan(zstdFrame(27, 1))).toMatchObject({ state: "unscannable" })
  })

  it.each(["gzip", "br", "zstd"])("is given back however a body in %s ends", async (encoding) => {
    const room = createDecodingRoom(64 * mib)
    const turns = createTurns(65_536)
    const open = () => createBodyScanner({ placeholders, encoding, turns, room })
    const left = open()
    await left.push(Buffer.from("x"))
    left.dispose()
    const broken = open()
    await broken.push(Buffer.alloc(100_000, 0xff))
    await broken.end()
    broken.dispose()
    expect(room.taken).toBe(0)
  })
})

describe("a compressed body", () => {
  it("is looked at in turns as it swells", async () => {
    const turns = createTurns(65_536)
    let granted = 0
    const counting = { waiting: 0, next: (cost: number) => ((granted += cost), turns.next(cost)) }
    using scanner = createBodyScanner({
      placeholders,
      encoding: "gzip",
      turns: counting,
      room: createDecodingRoom(64 * mib),
    })
    expect(await scanner.push(gzipSync(Buffer.alloc(4 * mib)))).toEqual({ state: "clean" })
    expect(granted).toBe(4 * mib)
  })

  it("that waits for memory is forgotten with its client, and those that are there take no more than the room", async () => {
    const params = { [constants.BROTLI_PARAM_LGWIN]: 24, [constants.BROTLI_PARAM_QUALITY]: 1 }
    const begun = brotliCompressSync(Buffer.alloc(4 * mib, "a"), { params }).subarray(0, -1)
    const capacity = 2 * (decodingOf("br")?.bytes ?? 0)
    await using upstream = await startUpstream((socket) => socket.resume())
    await using test = await rig(upstream, {
      substitutions: [{ placeholder, value: "s3cr3t-value", hosts: ["api.good.test"] }],
      limits: { decodingBytes: capacity },
    })
    const post = (): ReturnType<typeof test.client> => {
      const client = test.client()
      client.send(
        "POST http://plain.good.test/ HTTP/1.1\r\nHost: plain.good.test\r\nContent-Encoding: br\r\nContent-Length: 99999\r\n\r\n",
      )
      client.socket.write(begun)
      return client
    }
    const clients = Array.from({ length: 6 }, post)
    await until(() => test.proxy.counters().passages === 6, "all are let through to be looked at")
    await until(() => upstream.sockets.size === 6, "their upstreams are there")
    for (const client of clients) client.socket.destroy()
    await until(() => test.proxy.counters().passages === 0, "none of them is left")
    const last = post()
    last.socket.end()
    expect((await last.closed).text).toMatch(/^HTTP\/1\.1 400 /)
  })
})
