import { brotliCompressSync, deflateSync, gzipSync, zstdCompressSync } from "node:zlib"
import { describe, expect, it } from "vitest"
import { type BodyStep, createBodyScanner } from "../../../src/egress-proxy/secrets/body.ts"
import { createDecodingRoom } from "../../../src/egress-proxy/secrets/decoding-room.ts"
import { createTurns } from "../../../src/egress-proxy/connection/turns.ts"

const token = "$$SECRET[GITHUB_TOKEN]$$"
const text = Buffer.from(`{"a":"${"x".repeat(3000)}","t":"${token}","b":"${"y".repeat(3000)}"}`)
const harmless = Buffer.from("0032want 0123456789\n".repeat(500))

const turns = createTurns(65_536)
const room = createDecodingRoom(1 << 26)

async function scan(
  bytes: Buffer,
  encoding: string | undefined,
  size: number,
  maxDecodedBytes = 1_000_000,
): Promise<BodyStep> {
  using scanner = createBodyScanner({ placeholders: [token], encoding, maxDecodedBytes, turns, room })
  for (let at = 0; at < bytes.length; at += size) {
    const step = await scanner.push(bytes.subarray(at, at + size))
    if (step.state !== "clean") return step
  }
  return await scanner.end()
}

const encodings: readonly (readonly [string | undefined, (bytes: Buffer) => Buffer])[] = [
  [undefined, (bytes) => bytes],
  ["identity", (bytes) => bytes],
  ["gzip", gzipSync],
  ["GZIP", gzipSync],
  ["x-gzip", gzipSync],
  ["deflate", deflateSync],
  ["br", brotliCompressSync],
  ["zstd", zstdCompressSync],
]

describe("a request body", () => {
  it.each(encodings)("encoded as %s is searched, whole and in small parts", async (encoding, encode) => {
    for (const size of [1, 7, 100_000]) {
      expect(await scan(encode(text), encoding, size)).toEqual({ state: "misuse", placeholder: token })
      expect(await scan(encode(harmless), encoding, size)).toEqual({ state: "clean" })
    }
  })

  it.each(["gzip, br", "compress", "gzip,gzip", "constructor", "aes128gcm"])(
    "encoded as %s cannot be searched",
    async (encoding) => {
      expect(await scan(harmless, encoding, 100)).toMatchObject({ state: "unscannable" })
    },
  )

  it("that does not decode, is cut off, or goes on after its end cannot be searched", async () => {
    const packed = gzipSync(harmless)
    for (const size of [1, 100_000]) {
      expect(await scan(harmless, "gzip", size)).toMatchObject({ state: "unscannable" })
      expect(await scan(packed.subarray(0, -9), "gzip", size)).toMatchObject({ state: "unscannable" })
      expect(await scan(Buffer.concat([packed, Buffer.from("tail")]), "gzip", size)).toMatchObject({
        state: "unscannable",
      })
    }
  })

  it.each([
    ["br", brotliCompressSync],
    ["deflate", deflateSync],
    ["zstd", zstdCompressSync],
  ] as const)(
    "in %s with bytes after its end cannot be searched, also when they come in one piece",
    async (encoding, encode) => {
      const bytes = Buffer.concat([encode(harmless), Buffer.from("tail")])
      expect(await scan(bytes, encoding, bytes.length)).toMatchObject({ state: "unscannable" })
      expect(await scan(bytes, encoding, 1)).toMatchObject({ state: "unscannable" })
    },
  )

  it.each(["gzip", "br", "x-own"])("without a byte is clean in any encoding: %s", async (encoding) => {
    expect(await scan(Buffer.alloc(0), encoding, 1)).toEqual({ state: "clean" })
  })

  it("is searched over concatenated gzip members", async () => {
    expect(await scan(Buffer.concat([gzipSync(harmless), gzipSync(text)]), "gzip", 50)).toMatchObject({
      state: "misuse",
    })
  })

  it("that decodes to more than the cap is refused", async () => {
    expect(await scan(gzipSync(Buffer.alloc(5_000_000)), "gzip", 100_000)).toMatchObject({ state: "unscannable" })
    expect(await scan(gzipSync(Buffer.alloc(1_000_000)), "gzip", 100_000)).toMatchObject({ state: "clean" })
  })
})
