import { describe, expect, it } from "vitest"
import { createFrames } from "../../../../src/host/drivers/database/postgres-frames.ts"

const int = (value: number, bytes: 1 | 2 | 4): Buffer => {
  const made = Buffer.alloc(bytes)
  made.writeIntBE(value, 0, bytes)
  return made
}
const message = (kind: string, ...parts: readonly (Buffer | string)[]): Buffer => {
  const body = Buffer.concat(parts.map((part) => (typeof part === "string" ? Buffer.from(part) : part)))
  return Buffer.concat([Buffer.from(kind), int(body.length + 4, 4), body])
}
const column = ["n\0", Buffer.alloc(18)] as const
const good = [
  message("R", int(0, 4)),
  message("R", int(5, 4), "salt"),
  message("R", int(10, 4), "SCRAM-SHA-256\0\0"),
  message("R", int(11, 4), "r=x,s=y,i=4096"),
  message("R", int(12, 4), "v=x"),
  message("S", "server_version\0", "18.4\0"),
  message("K", int(1, 4), int(2, 4)),
  message("N", "SNOTICE\0", "C00000\0", "Mhello\0", "\0"),
  message("E", "SERROR\0", "C42601\0", "\0"),
  message("A", int(7, 4), "channel\0", "\0"),
  message("1"),
  message("2"),
  message("n"),
  message("t", int(1, 2), int(25, 4)),
  message("T", int(2, 2), ...column, ...column),
  message("D", int(2, 2), int(-1, 4), int(3, 4), "abc"),
  message("D", int(0, 2)),
  message("C", "SELECT 1\0"),
  message("Z", "I"),
]

describe("messages of a PostgreSQL server", () => {
  it("are given on whole and unchanged, however they come", () => {
    const all = Buffer.concat(good)
    for (const size of [1, 2, 3, 7, 64, all.length]) {
      const frames = createFrames(false)
      const given: Buffer[] = []
      for (let at = 0; at < all.length; at += size) {
        const framed = frames(all.subarray(at, at + size))
        if (!framed.ok) throw new Error(framed.why)
        given.push(Buffer.from(framed.whole))
      }
      expect(Buffer.concat(given)).toEqual(all)
    }
  })

  it("are faults where a byte is missing from their end, or stands there beyond it", () => {
    for (const each of good.filter((one) => !"R12n".includes(String.fromCodePoint(one[0] ?? 0)))) {
      const body = each.subarray(5)
      const kind = String.fromCodePoint(each[0] ?? 0)
      for (const other of [body.subarray(0, -1), Buffer.concat([body, Buffer.from("x")])])
        expect([kind, other, createFrames(true)(message(kind, other)).ok]).toEqual([kind, other, false])
    }
  })

  it.each([
    ["an error without its end", message("E", "S")],
    ["an error that goes on after its end", message("E", "\0\0")],
    ["no proof", message("R")],
    ["a proof of no number", message("R", int(77, 4))],
    ["columns fewer than none", message("T", int(-1, 2))],
    ["columns that are not there", message("T", int(30_000, 2), ...column)],
    ["a row fewer than none", message("D", int(-1, 2))],
    ["a field longer than its row", message("D", int(1, 2), int(0x7fffffff, 4))],
    ["a field shorter than none", message("D", int(1, 2), int(-2, 4))],
    ["a copy", message("G", int(0, 1), int(0, 2))],
    ["a kind that is none", message("__proto__")],
    ["a length that is none", Buffer.from("Z\0\0\0\0")],
    ["a length beyond all", Buffer.from("Z\xff\xff\xff\xff", "latin1")],
    ["a wish for the password in the clear", message("R", int(3, 4))],
  ])("are faults: %s", (_what, bytes) => {
    expect(createFrames(false)(bytes).ok).toBe(false)
  })

  it("may want the password in the clear where TLS hides it", () => {
    expect(createFrames(true)(message("R", int(3, 4)))).toMatchObject({ ok: true })
  })

  it("are joined once, however many pieces a long one comes in", () => {
    const frames = createFrames(false)
    const long = message("S", "x\0", "y".repeat(4_000_000), "\0")
    let last: ReturnType<typeof frames> | undefined
    for (let at = 0; at < long.length; at += 64) last = frames(long.subarray(at, at + 64))
    expect(last?.ok === true && last.whole.equals(long)).toBe(true)
  }, 10_000)
})
