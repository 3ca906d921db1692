import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { encodeFrame, FrameReader } from "../../../../src/host/drivers/runner/frames.ts"
import { RUNNER } from "../../../../src/host/drivers/runner/limits.ts"
import type { JsonObject, JsonValue } from "../../../../src/manifest/types.ts"

const nonce = "n"
const head = (length: number): Buffer => {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(length)
  return bytes
}
const raw = (text: string): Buffer => Buffer.concat([head(Buffer.byteLength(text)), Buffer.from(text)])
/** Cut at these places, whatever they are. */
const pieces = (bytes: Uint8Array, cuts: readonly number[]): Uint8Array[] => {
  const at = [...new Set(cuts.map((cut) => cut % (bytes.length + 1)))].sort((a, b) => a - b)
  return [...at, bytes.length].map((end, i) => bytes.subarray(at[i - 1] ?? 0, end))
}
const runs = Number(process.env["CAISSON_FUZZ_RUNS"]) || 300

describe("a reader of frames", () => {
  it("gives back what was sent, however it is cut", () => {
    fc.assert(
      fc.property(
        fc.array(fc.jsonValue({ maxDepth: 4 }), { maxLength: 8 }),
        fc.array(fc.nat(), { maxLength: 20 }),
        (values, cuts) => {
          const frames = values.map((value) => ({ nonce, value: value as JsonValue }))
          const reader = new FrameReader(nonce)
          const got = pieces(Buffer.concat(frames.map(encodeFrame)), cuts).flatMap((piece) => reader.push(piece))
          expect(JSON.stringify(got)).toBe(JSON.stringify(frames))
          expect(reader.fault).toBeUndefined()
          expect(reader.isWithin).toBe(false)
        },
      ),
      { numRuns: runs },
    )
  })

  it("takes any bytes without a throw, and after a fault nothing more", () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ maxLength: 64 }), { maxLength: 8 }), (chunks) => {
        const reader = new FrameReader(nonce)
        for (const chunk of chunks) {
          const wasFaulty = reader.fault !== undefined
          const frames = reader.push(chunk)
          if (wasFaulty) expect(frames).toEqual([])
          for (const frame of frames) expect(frame["nonce"]).toBe(nonce)
        }
        if (reader.fault !== undefined) expect(reader.push(encodeFrame({ nonce }))).toEqual([])
      }),
      { numRuns: runs },
    )
  })

  it("takes good frames with bytes changed for good frames, a fault, or the wait for more", () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.nat(), fc.nat(255), (value, at, byte) => {
        const bytes = Buffer.concat([encodeFrame({ nonce, value: value as JsonValue }), encodeFrame({ nonce })])
        bytes[at % bytes.length] = byte
        const reader = new FrameReader(nonce)
        for (const frame of reader.push(bytes)) expect(frame["nonce"]).toBe(nonce)
      }),
      { numRuns: runs },
    )
  })

  it.each([
    ["a length over the limit", head(RUNNER.frameBytes + 1), "too-large"],
    ["the largest length", head(0xffffffff), "too-large"],
    ["no JSON", raw("{"), "unreadable"],
    ["an empty frame", raw(""), "unreadable"],
    ["a list", raw("[]"), "unreadable"],
    ["a text", raw('"n"'), "unreadable"],
    ["broken UTF-8", Buffer.concat([head(2), Buffer.from([0xc3, 0x28])]), "unreadable"],
    ["no nonce", raw("{}"), "stray"],
    ["another nonce", raw('{"nonce":"m"}'), "stray"],
    ["a nonce that is an object", raw('{"nonce":{"toString":"n"}}'), "stray"],
    ["too deep a value", raw(`{"nonce":"n","value":${"[".repeat(200)}${"]".repeat(200)}}`), "unreadable"],
    ["a value far too deep", raw(`{"nonce":"n","value":${"[".repeat(300_000)}${"]".repeat(300_000)}}`), "unreadable"],
  ])("stops at %s", (_what, bytes, kind) => {
    const reader = new FrameReader(nonce)
    expect(reader.push(bytes)).toEqual([])
    expect(reader.fault?.kind).toBe(kind)
  })

  it("gives what stood before the fault", () => {
    const reader = new FrameReader(nonce)
    const good: JsonObject = { nonce, value: 1 }
    expect(reader.push(Buffer.concat([encodeFrame(good), raw("x")]))).toEqual([good])
    expect(reader.fault?.kind).toBe("unreadable")
  })

  it("takes a frame of exactly the limit, also byte by byte at its start", () => {
    const shell = Buffer.byteLength(JSON.stringify({ nonce, value: "" }))
    const frame = encodeFrame({ nonce, value: "x".repeat(RUNNER.frameBytes - shell) })
    const reader = new FrameReader(nonce)
    for (const byte of frame.subarray(0, 5000)) reader.push(Uint8Array.of(byte))
    expect(reader.push(frame.subarray(5000))).toHaveLength(1)
    expect(reader.fault).toBeUndefined()
  })
})
