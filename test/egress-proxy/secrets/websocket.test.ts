import fc from "fast-check"
import { describe, expect, it } from "vitest"
import type { BodyStep } from "../../../src/egress-proxy/secrets/body.ts"
import { createWebSocketScanner } from "../../../src/egress-proxy/secrets/websocket.ts"
import { clientFrame } from "./websocket-frame.ts"

const token = "$$SECRET[GITHUB_TOKEN]$$"

function scan(bytes: Buffer, sizes: readonly number[]): BodyStep {
  const scanner = createWebSocketScanner([token])
  let step: BodyStep = { state: "clean" }
  for (let at = 0, turn = 0; at < bytes.length && step.state === "clean"; turn += 1) {
    const size = sizes[turn % sizes.length] as number
    step = scanner.push(bytes.subarray(at, at + size))
    at += size
  }
  return step
}
const cuts = fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 10 })

describe("what a WebSocket client sends", () => {
  it("is searched through its mask, over frames of every length form, however it is cut", () => {
    const before = fc.constantFrom(0, 1, 100, 125, 126, 70_000)
    fc.assert(
      fc.property(before, fc.uint8Array({ minLength: 4, maxLength: 4 }), cuts, (size, mask, sizes) => {
        const frame = clientFrame(Buffer.concat([Buffer.alloc(size, "x"), Buffer.from(token)]), {
          mask: Buffer.from(mask),
        })
        expect(scan(frame, sizes)).toEqual({ state: "misuse", placeholder: token })
      }),
      { numRuns: 60 },
    )
  })

  it("is searched over fragments with a control frame in between, and in control frames", () => {
    const parts = [
      clientFrame(Buffer.from(token.slice(0, 9)), { final: false }),
      clientFrame(Buffer.from("ping"), { opcode: 9 }),
      clientFrame(Buffer.from(token.slice(9)), { opcode: 0 }),
    ]
    expect(scan(Buffer.concat(parts), [5])).toMatchObject({ state: "misuse" })
    expect(scan(clientFrame(Buffer.from(token), { opcode: 9 }), [1])).toMatchObject({ state: "misuse" })
  })

  it("is clean where there is no placeholder", () => {
    const frames = [
      clientFrame(Buffer.from("hello")),
      clientFrame(Buffer.alloc(0)),
      clientFrame(Buffer.alloc(300, "y")),
      clientFrame(Buffer.alloc(0), { opcode: 8 }),
    ]
    expect(scan(Buffer.concat(frames), [1])).toEqual({ state: "clean" })
  })

  it("cannot be searched when it is not masked or is extended", () => {
    expect(scan(Buffer.from([0x81, 1, 97]), [1])).toMatchObject({ state: "unscannable" })
    expect(scan(clientFrame(Buffer.from("x"), { reserved: 0x40 }), [1])).toMatchObject({ state: "unscannable" })
    expect(scan(Buffer.concat([Buffer.from([0x82, 0xff]), Buffer.alloc(12, 0xff)]), [1])).toMatchObject({
      state: "unscannable",
    })
  })

  it("never crashes the scanner, and is judged the same however it is cut", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), cuts, (bytes, sizes) => {
        const input = Buffer.from(bytes)
        expect(scan(input, sizes)).toEqual(scan(input, [Math.max(1, input.length)]))
      }),
      { numRuns: Number(process.env["CAISSON_FUZZ_RUNS"] ?? 1000) },
    )
  })
})
