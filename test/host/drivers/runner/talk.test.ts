/** The host's side of the talk, over streams in which a hostile tool may say anything. */
import { once } from "node:events"
import { PassThrough } from "node:stream"
import { describe, expect, it } from "vitest"
import type { CallTool, ToolAnswer } from "../../../../src/host/drivers/kind.ts"
import { encodeFrame, FrameReader } from "../../../../src/host/drivers/runner/frames.ts"
import { RUNNER } from "../../../../src/host/drivers/runner/limits.ts"
import type { RunnerRequest } from "../../../../src/host/drivers/runner/request.ts"
import { type RunnerAnswer, talk } from "../../../../src/host/drivers/runner/talk.ts"
import type { JsonObject, JsonValue } from "../../../../src/manifest/types.ts"

const request: RunnerRequest = { do: "call", module: { path: "/x" }, ref: ["f"], args: [] }

const open = (cancel = new AbortController(), callTool?: CallTool) => {
  const toTool = new PassThrough()
  const fromTool = new PassThrough()
  const events: JsonValue[] = []
  const answer = talk({
    session: { pipes: { toTool, fromTool }, signal: cancel.signal, ...(callTool === undefined ? {} : { callTool }) },
    request,
    onEvent: (value) => events.push(value),
  })
  const asked = (): JsonObject => {
    const bytes = toTool.read() as Buffer
    return JSON.parse(bytes.subarray(4, 4 + bytes.readUInt32BE(0)).toString("utf8")) as JsonObject
  }
  const { nonce } = asked()
  const say = (body: JsonObject): void => void fromTool.write(encodeFrame({ nonce: nonce as string, ...body }))
  return { answer, toTool, fromTool, events, say, nonce }
}

describe("the talk with a shim", () => {
  it("tells each event and takes the answer", async () => {
    const { say, answer, events } = open()
    say({ type: "event", value: 1 })
    say({ type: "event", value: { two: 2 } })
    say({ type: "result", value: "done", streamed: true })
    expect(await answer).toEqual({ ok: true, value: "done", streamed: true })
    expect(events).toEqual([1, { two: 2 }])
  })

  it("hears nothing after the first answer", async () => {
    const { say, answer, events, fromTool } = open()
    say({ type: "result", value: 1 })
    say({ type: "event", value: "late" })
    say({ type: "result", value: 2 })
    fromTool.write(Buffer.alloc(100, 0xff))
    expect(await answer).toMatchObject({ ok: true, value: 1 })
    expect(events).toEqual([])
    expect(fromTool.listenerCount("data")).toBe(0)
  })

  it("takes an error with its names, message and status, within limits", async () => {
    const { say, answer } = open()
    const names = Array.from({ length: 100 }, (_, i) => `E${i}`.padEnd(1000, "x"))
    say({ type: "error", names, message: "m".repeat(100_000), status: 401, where: "call" })
    const got = (await answer) as Extract<RunnerAnswer, { kind: "thrown" }>
    expect(got.thrown).toMatchObject({ status: 401, where: "call" })
    expect(got.thrown.names).toHaveLength(RUNNER.names)
    expect(got.thrown.names[0]).toHaveLength(RUNNER.nameChars)
    expect(got.thrown.message).toHaveLength(RUNNER.messageChars)
  })

  it.each([
    [{ type: "error" }, { names: ["Error"], message: "", where: "call" }],
    [
      { type: "error", names: "E", message: 7, status: "401", where: "?" },
      { names: ["Error"], where: "call" },
    ],
    [{ type: "error", names: [null, {}, "A"], status: 1.5 }, { names: ["A"] }],
  ] as [JsonObject, object][])("reads %j as an error all the same", async (frame, thrown) => {
    const { say, answer } = open()
    say(frame)
    expect(await answer).toMatchObject({ ok: false, kind: "thrown", thrown })
  })

  it.each([
    ["a frame of no type", (t: ReturnType<typeof open>) => t.say({}), "protocol"],
    [
      "another nonce",
      (t: ReturnType<typeof open>) => t.fromTool.write(encodeFrame({ nonce: "x", type: "result" })),
      "protocol",
    ],
    ["plain text", (t: ReturnType<typeof open>) => t.fromTool.write("hello\nworld\n"), "limit"],
    ["the end", (t: ReturnType<typeof open>) => t.fromTool.end(), "silent"],
    [
      "half a frame and the end",
      (t: ReturnType<typeof open>) => t.fromTool.end(Buffer.from([0, 0, 0, 9, 1])),
      "silent",
    ],
    ["a stream that breaks", (t: ReturnType<typeof open>) => t.fromTool.destroy(new Error("gone")), "silent"],
  ])("ends at %s", async (_what, act, kind) => {
    const opened = open()
    act(opened)
    expect(await opened.answer).toMatchObject({ ok: false, kind })
  })

  it("ends at more frames than the limit, and at more bytes", async () => {
    const many = open()
    const one = Buffer.from(encodeFrame({ nonce: many.nonce as string, type: "event", value: 0 }))
    many.fromTool.write(Buffer.alloc(one.length * (RUNNER.frames + 1), one))
    expect(await many.answer).toMatchObject({ kind: "limit" })
    expect(many.events).toHaveLength(RUNNER.frames)
    const large = open()
    const half = encodeFrame({ nonce: large.nonce as string, type: "event", value: "x".repeat(RUNNER.frameBytes / 2) })
    for (let bytes = 0; bytes <= RUNNER.totalBytes; bytes += half.length) large.fromTool.write(half)
    expect(await large.answer).toMatchObject({ kind: "limit" })
  })

  it("asks for an early end when it is cancelled, and still hears the answer", async () => {
    const cancel = new AbortController()
    const { say, answer, toTool } = open(cancel)
    const reader = new FrameReader(undefined as never)
    cancel.abort()
    if (toTool.readableLength === 0) await once(toTool, "readable")
    expect(reader.push(toTool.read() as Buffer)).toEqual([{ do: "abort" }])
    say({ type: "error", names: ["AbortError"], message: "stopped" })
    expect(await answer).toMatchObject({ kind: "thrown", thrown: { names: ["AbortError"] } })
  })

  it("does not mind a tool that does not read", async () => {
    const { answer, toTool, fromTool } = open()
    toTool.destroy(new Error("EPIPE"))
    fromTool.end()
    expect(await answer).toMatchObject({ kind: "silent" })
  })

  it("refuses to ask what is over the limit", async () => {
    const streams = { toTool: new PassThrough(), fromTool: new PassThrough() }
    const answer = await talk({
      session: { pipes: streams, signal: new AbortController().signal },
      request: { ...request, args: ["x".repeat(RUNNER.requestBytes)] } as RunnerRequest,
      onEvent: () => undefined,
    })
    expect(answer).toMatchObject({ ok: false, kind: "limit" })
    expect(streams.toTool.readableLength).toBe(0)
  })
})

describe("what a shim asks of other tools", () => {
  /** Asks that are answered when the test says so. */
  const asking = () => {
    const asks: { tool: JsonValue; signal: AbortSignal; answer: (answer: ToolAnswer) => void }[] = []
    const callTool: CallTool = ({ tool }, signal) => new Promise((answer) => void asks.push({ tool, signal, answer }))
    return { asks, ...open(undefined, callTool) }
  }
  const settle = (): Promise<void> => new Promise((resolve) => setImmediate(() => setImmediate(resolve)))

  it("is done one after the other, each answered under its own number", async () => {
    const { asks, say, toTool, answer } = asking()
    say({ type: "call", id: 7, tool: "a", input: {} })
    say({ type: "call", id: 8, tool: "b", input: {} })
    await settle()
    expect(asks.map(({ tool }) => tool)).toEqual(["a"])
    asks[0]?.answer({ ok: true, value: [1] })
    await settle()
    const frame = toTool.read() as Buffer
    expect(JSON.parse(frame.subarray(4).toString())).toEqual({ do: "answer", id: 7, ok: true, value: [1] })
    await settle()
    expect(asks.map(({ tool }) => tool)).toEqual(["a", "b"])
    say({ type: "result", value: 1 })
    expect(await answer).toMatchObject({ ok: true })
  })

  it("is cancelled once the answer is there, and what is asked after it is not heard", async () => {
    const { asks, say, toTool, answer } = asking()
    say({ type: "call", id: 1, tool: "a", input: {} })
    say({ type: "call", id: 2, tool: "b", input: {} })
    await settle()
    say({ type: "result", value: 1 })
    say({ type: "call", id: 3, tool: "c", input: {} })
    expect(await answer).toMatchObject({ ok: true, value: 1 })
    expect(asks[0]?.signal.aborted).toBe(true)
    asks[0]?.answer({ ok: true, value: "late" })
    await settle()
    expect(asks).toHaveLength(1)
    expect(toTool.read()).toBeNull()
  })

  it("is done no further for a tool that does not read: it is owed one answer", async () => {
    const { asks, say, toTool } = asking()
    for (let id = 0; id < 10; id += 1) say({ type: "call", id, tool: "a", input: {} })
    await settle()
    asks[0]?.answer({ ok: true, value: "x".repeat(RUNNER.answerBytes / 2) })
    await settle()
    asks[1]?.answer({ ok: true, value: "x".repeat(RUNNER.answerBytes / 2) })
    await settle()
    expect(asks.length).toBeLessThanOrEqual(2)
    expect(toTool.readableLength + toTool.writableLength).toBeLessThan(2 * RUNNER.answerBytes)
  })

  it.each([RUNNER.answerBytes - 60, RUNNER.answerBytes])(
    "has an answer of %i bytes, or hears that it is too large",
    async (size) => {
      const { asks, say, toTool } = asking()
      say({ type: "call", id: 1, tool: "a", input: {} })
      await settle()
      asks[0]?.answer({ ok: true, value: "x".repeat(size) })
      await settle()
      const frame = toTool.read() as Buffer
      const said = JSON.parse(frame.subarray(4).toString()) as ToolAnswer
      expect(said.ok ? "whole" : said.error.code).toBe(size < RUNNER.answerBytes ? "whole" : "limit_exceeded")
    },
  )

  it.each([RUNNER.calls, RUNNER.calls + 1])("ends it after %i, refused ones included, or not yet", async (count) => {
    const { say, answer } = asking()
    for (let id = 0; id < count; id += 1) say({ type: "call", id, tool: "a", input: {} })
    say({ type: "result", value: 1 })
    expect(await answer).toMatchObject(count > RUNNER.calls ? { ok: false, kind: "limit" } : { ok: true })
  })

  it.each([
    ["where nobody does it", undefined, { id: 1 }],
    ["without a number", (() => Promise.reject(new Error())) as CallTool, {}],
    ["with an odd number", (() => Promise.reject(new Error())) as CallTool, { id: 1.5 }],
  ])("is no word of the talk %s", async (_what, callTool, frame) => {
    const { say, answer } = open(undefined, callTool)
    say({ type: "call", tool: "a", input: {}, ...frame })
    expect(await answer).toMatchObject({ ok: false, kind: "protocol" })
  })
})
