import type { Duplex } from "node:stream"
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { createRecordCutter } from "../../../src/egress-proxy/tls/records.ts"
import { createTurns } from "../../../src/egress-proxy/connection/turns.ts"
import { name, upstreamServer, world } from "./intercept-world.ts"

const record = (size: number): Buffer =>
  Buffer.concat([Buffer.from([23, 3, 3, size >> 8, size & 255]), Buffer.alloc(size, 7)])

describe("TLS records", () => {
  it("are cut into portions of a few, and each byte is in one of them, however they arrive", () => {
    const sizes = fc.array(fc.integer({ min: 0, max: 700 }), { minLength: 1, maxLength: 60 })
    const cuts = fc.array(fc.integer({ min: 1, max: 900 }), { minLength: 1, maxLength: 8 })
    fc.assert(
      fc.property(sizes, cuts, fc.integer({ min: 1, max: 9 }), (lengths, steps, most) => {
        const bytes = Buffer.concat(lengths.map(record))
        const cutter = createRecordCutter(most, 1_000)
        const portions = []
        for (let at = 0, step = 0; at < bytes.length; step += 1) {
          const size = steps[step % steps.length] as number
          portions.push(...cutter(bytes.subarray(at, at + size)))
          at += size
        }
        expect(Buffer.concat(portions.map((portion) => portion.bytes))).toEqual(bytes)
        expect(Math.max(...portions.map(({ records }) => records))).toBeLessThanOrEqual(most)
        // Its last record may go beyond, and the one that had begun before it.
        expect(Math.max(...portions.map(({ bytes: { length } }) => length))).toBeLessThan(1_000 + 2 * 705)
        expect(portions.reduce((sum, { records }) => sum + records, 0)).toBe(lengths.length)
      }),
    )
  })

  it.each(["client", "upstream"])(
    "from the %s wait their turn at a price each, however little they hold",
    async (from) => {
      const many = 400
      const pieces = (small: boolean, sign: string): readonly string[] =>
        small ? Array.from({ length: many }, () => sign) : [sign.repeat(many)]
      /** Each in a record of its own: what is written before the last has left is put together. */
      const write = async (to: Duplex, texts: readonly string[]): Promise<void> => {
        for (const text of texts) await new Promise<void>((resolve) => to.write(text, () => resolve()))
      }
      const upstream = await upstreamServer(({ socket }) => {
        const head = `HTTP/1.1 200 OK\r\nContent-Length: ${many}\r\n\r\n`
        void write(socket, [head, ...pieces(from === "upstream", "z")])
      })
      const turns = createTurns(65_536)
      let granted = 0
      const counting = { waiting: 0, next: (cost: number) => ((granted += cost), turns.next(cost)) }
      const { open } = await world({ upstreamPort: upstream.port, options: { turns: counting } })
      const socket = await open()
      const head = `POST / HTTP/1.1\r\nHost: ${name}\r\nContent-Length: ${many}\r\nConnection: close\r\n\r\n`
      await write(socket, [head, ...pieces(from === "client", "a")])
      let text = ""
      for await (const chunk of socket) text += String(chunk)
      expect(text).toMatch(/^HTTP\/1\.1 200 [^]*z{400}$/)
      expect(granted).toBeGreaterThan(many * 1_024)
    },
  )
})
