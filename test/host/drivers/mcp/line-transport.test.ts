/** What a server writes is a stranger's word: whatever it is, the transport stays within its bounds and closes once. */
import { PassThrough, Writable } from "node:stream"
import { parseJSONRPCMessage } from "@modelcontextprotocol/client"
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { LineTransport } from "../../../../src/host/drivers/mcp/line-transport.ts"

type Limits = ConstructorParameters<typeof LineTransport>[2]

const opened = async (limits: Limits = {}, toServer: Writable = new PassThrough()) => {
  const fromServer = new PassThrough()
  const transport = new LineTransport({ toServer, fromServer }, parseJSONRPCMessage, limits)
  const heard: unknown[] = []
  const { promise: closed, resolve } = Promise.withResolvers<void>()
  let closes = 0
  transport.onmessage = (message) => void heard.push(message)
  transport.onclose = () => {
    closes += 1
    resolve()
  }
  await transport.start()
  return { transport, toServer, fromServer, heard, closed, closes: () => closes }
}
const note = (method: string) => ({ jsonrpc: "2.0" as const, method })
const lineOf = (value: unknown): string => `${JSON.stringify(value)}\n`

describe("the transport over a server's streams", () => {
  it("hears the messages that are there, however they are cut, and passes over other lines", async () => {
    const { fromServer, heard, closed } = await opened()
    const text = `starting…\n${lineOf(note("a"))}{"jsonrpc":"1.0"}\n[]\n${lineOf(note("b"))}`
    for (const byte of Buffer.from(text)) fromServer.write(Buffer.of(byte))
    fromServer.end()
    await closed
    expect(heard).toEqual([note("a"), note("b")])
  })
  it("hears all that a server said before it left, in one piece", async () => {
    const { fromServer, heard, closed } = await opened()
    fromServer.end(["a", "b", "c"].map((name) => lineOf(note(name))).join(""))
    await closed
    expect(heard).toEqual([note("a"), note("b"), note("c")])
  })
  it.each<[string, Limits, string, RegExp]>([
    ["a message over its size", { messageBytes: 64 }, "x".repeat(65), /more than 64 bytes/],
    ["more bytes than all may have", { bytes: 100 }, `${"x".repeat(50)}\n${"x".repeat(50)}\n`, /more than 100 bytes/],
    ["too many messages", { messages: 2 }, lineOf(note("a")).repeat(3), /more than 2 messages/],
    ["too many lines that are none", { oddLines: 2 }, "x\n".repeat(3), /more than 2 lines/],
    ["a message nested too deep", { depth: 8 }, `${"[".repeat(9)}${"]".repeat(9)}\n`, /nested more than 8 deep/],
  ])("leaves a server that writes %s", async (_what, limits, text, why) => {
    const { transport, fromServer, closed } = await opened(limits)
    fromServer.write(text)
    await closed
    expect(transport.fault).toMatch(why)
  })
  it.each<[string, Limits, string]>([
    ["one of its size", { messageBytes: 64 }, `${"x".repeat(64)}\n`],
    ["as many messages as it may", { messages: 2 }, lineOf(note("a")).repeat(2)],
    ["one nested as deep as it may", { depth: 8 }, `${"[".repeat(8)}${"]".repeat(8)}\n`],
    ["brackets in a text", { depth: 2 }, lineOf({ ...note("a"), params: { x: '[[[[{{{{"' } })],
  ])("stays with a server that writes %s", async (_what, limits, text) => {
    const { transport, fromServer, closed } = await opened(limits)
    fromServer.end(text)
    await closed
    expect(transport.fault).toBeUndefined()
  })
  it("leaves a server that asks and does not read", async () => {
    const { transport, closed } = await opened({ unsentBytes: 1_000 }, new Writable({ write: () => undefined }))
    for (let i = 0; i < 20; i += 1)
      transport.send({ ...note("x"), params: { text: "y".repeat(1_000) } }).catch(() => undefined)
    await closed
    expect(transport.fault).toMatch(/does not read/)
  })
  it("says nothing to a server that is gone", async () => {
    const { transport, toServer } = await opened()
    toServer.destroy()
    await expect(transport.send(note("x"))).rejects.toThrow(/reads no more/)
  })
  it("survives any bytes, in any pieces: it hears only messages, keeps its bounds, and closes once", async () => {
    const word = fc.oneof(
      fc.string().map((text) => `${text}\n`),
      fc.json().map((text) => `${text}\n`),
      fc.constantFrom(
        lineOf(note("a")),
        lineOf({ jsonrpc: "2.0", id: 1, result: {} }),
        '{"__proto__":{"x":1}}\n',
        "\n",
      ),
      fc.uint8Array().map((bytes) => Buffer.from(bytes).toString("latin1")),
    )
    await fc.assert(
      fc.asyncProperty(fc.array(word, { maxLength: 40 }), fc.integer({ min: 1, max: 97 }), async (words, size) => {
        const { fromServer, heard, closed, closes } = await opened({ messageBytes: 400, bytes: 4_000, oddLines: 30 })
        const bytes = Buffer.from(words.join(""), "utf8")
        for (let at = 0; at < bytes.length; at += size) fromServer.write(bytes.subarray(at, at + size))
        fromServer.end()
        await closed
        expect(closes()).toBe(1)
        for (const message of heard) expect(message).toMatchObject({ jsonrpc: "2.0" })
        expect(({} as { x?: unknown }).x).toBeUndefined()
      }),
      { numRuns: Number(process.env["CAISSON_FUZZ_RUNS"]) || 300 },
    )
  })
})
