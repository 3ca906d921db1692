/**
 * A successful answer → the call's value, or its events and what they come to.
 *
 * Guarantees: bounded by the call's limit of output, after decoding; JSON of bounded depth; events are told as they come,
 * each once; nothing of a secret is in any of it. A stream is a list of its events where the contract promises a list,
 * their texts put together where it promises a text, and else the last one.
 */
import type { HttpCall, HttpStreaming, JsonValue, ToolContract } from "../../../manifest/types.ts"
import type { Failure, Success } from "../../failure.ts"
import { extract } from "../../invoke/extract.ts"
import { parseOutput } from "../cli/parse-output.ts"
import type { Desk } from "../kind.ts"
import { readableOf, readUpTo } from "./body.ts"
import { createEventReader } from "./events.ts"
import { brokenOff, type HttpAnswer } from "./exchange.ts"
import { cleanText, type HeldSecrets, withoutSecrets } from "./secrets.ts"
import { headerText } from "./status.ts"

interface Reading {
  readonly desk: Desk
  readonly tool: ToolContract
  readonly call: HttpCall
  readonly secrets: HeldSecrets
}

const tooMuch = (most: number): Failure => ({
  ok: false,
  code: "limit_exceeded",
  message: `the service's answer is larger than the limit of ${most} bytes`,
  hint: "ask the service for less, or raise the output limit",
  details: { limit: "output", sent: true },
})

const cutShort = (): Failure => brokenOff("the service broke off in the middle of its answer", "cut_short", true)

const nothingThere: Failure = {
  ok: false,
  code: "output_parse_failed",
  message: "the answer has nothing where the driver's `response_extract` points",
  hint: "compare the service's answers with `response_extract`",
  details: {},
}

/** What is kept of an answer's bytes, or why it cannot be read. */
const bytesOf = async (answer: HttpAnswer, secrets: HeldSecrets, most: number): Promise<Buffer | Failure> => {
  const stream = readableOf(answer, secrets.spellings)
  if (!stream.ok) return stream
  const chunks: Buffer[] = []
  const read = await readUpTo(stream.value, most, (chunk) => chunks.push(chunk) > 0)
  if (read.ok) return Buffer.concat(chunks)
  return read.why === "limit" ? tooMuch(most) : cutShort()
}

/** How an answer begins, as text; nothing where it cannot be read. */
export const startOf = async (answer: HttpAnswer, secrets: HeldSecrets, most: number): Promise<string> => {
  const stream = readableOf(answer, secrets.spellings)
  if (!stream.ok) return ""
  const chunks: Buffer[] = []
  let bytes = 0
  await readUpTo(stream.value, Number.POSITIVE_INFINITY, (chunk) => {
    chunks.push(chunk)
    bytes += chunk.length
    return bytes < most
  })
  const text = Buffer.concat(chunks).subarray(0, most).toString("utf8")
  return cleanText(text, secrets)
}

const isJson = (answer: HttpAnswer): boolean =>
  /^[^;]*[/+](?:[\w.-]+\+)?json\b/i.test(headerText(answer, "content-type") ?? "")

/** Bytes as JSON, or as text where the contract wants one and the service does not say that it is JSON. */
const parsed = (bytes: Buffer, { tool, call }: Reading, json: boolean): Success | Failure => {
  const wantsText = tool.outputs["type"] === "string"
  if (bytes.length === 0) return { ok: true, value: wantsText ? "" : null, notes: [] }
  const asText =
    !json && call.extract.length === 0 && (wantsText || !/^\s*[[{"\d\-tfn]/.test(bytes.toString("utf8", 0, 64)))
  const main = { bytes, truncated: false, total: bytes.length }
  const none = { bytes: new Uint8Array(), truncated: false, total: 0 }
  return parseOutput(asText ? "text" : "json", tool.outputs, { main, stderr: none, exitCode: 0 })
}

const taken = (value: JsonValue, { call, secrets }: Reading): JsonValue | undefined =>
  extract(withoutSecrets(value, secrets), call.extract)

const readWhole = async (answer: HttpAnswer, reading: Reading): Promise<Success | Failure> => {
  const { desk, secrets } = reading
  const bytes = await bytesOf(answer, secrets, desk.outputBytes)
  if (!Buffer.isBuffer(bytes)) return bytes
  desk.note({ response_size_bytes: bytes.length })
  const made = parsed(bytes, reading, isJson(answer))
  if (!made.ok) return made
  const value = taken(made.value, reading)
  return value === undefined ? nothingThere : { ...made, value }
}

/** One event's value; its text where it is no JSON. */
const eventValue = (data: string): JsonValue => {
  const bytes = Buffer.from(data)
  const made = parseOutput(
    "json",
    {},
    {
      main: { bytes, truncated: false, total: bytes.length },
      stderr: { bytes: new Uint8Array(), truncated: false, total: 0 },
      exitCode: 0,
    },
  )
  return made.ok ? made.value : data
}

const comeTo = (values: readonly JsonValue[], { outputs }: ToolContract): JsonValue | undefined => {
  if (outputs["type"] === "array") return [...values]
  if (outputs["type"] === "string")
    return values.map((each) => (typeof each === "string" ? each : JSON.stringify(each))).join("")
  return values.at(-1)
}

const readStream = async (
  answer: HttpAnswer,
  reading: Reading,
  streaming: HttpStreaming,
): Promise<Success | Failure> => {
  const { desk, tool, secrets } = reading
  const { transport, terminator, eventField } = streaming
  const stream = readableOf(answer, secrets.spellings)
  if (!stream.ok) return stream
  const reader = createEventReader(transport)
  // `data` is where every event has its text; any other word is the name of the events that are meant.
  const named = eventField === undefined || eventField === "data" ? undefined : eventField
  const values: JsonValue[] = []
  let ended = false
  const take = (events: ReturnType<typeof reader.push>): boolean => {
    for (const { name, data } of events) {
      if (terminator !== undefined && (data === terminator || (transport === "sse" && name === terminator)))
        ended = true
      if (ended) return false
      if (named !== undefined && transport === "sse" && name !== named) continue
      const value = taken(transport === "chunked" ? data : eventValue(data), reading)
      if (value === undefined) continue
      values.push(value)
      desk.tell({ type: "progress", value })
    }
    return true
  }
  const read = await readUpTo(stream.value, desk.outputBytes, (chunk) => take(reader.push(chunk)))
  if (!read.ok) return read.why === "limit" ? tooMuch(desk.outputBytes) : cutShort()
  if (!ended) take(reader.end())
  desk.note({ response_size_bytes: read.bytes, response_events: values.length })
  const value = comeTo(values, tool)
  if (value === undefined) return nothingThere
  const notes = terminator === undefined || ended ? [] : ["the service's stream ended without the event that ends it"]
  return { ok: true, value, notes }
}

export const readAnswer = (answer: HttpAnswer, reading: Reading): Promise<Success | Failure> => {
  const { streaming } = reading.call
  if (streaming === undefined || streaming.transport === "chunked" || !isStream(answer, streaming)) {
    return streaming?.transport === "chunked" ? readChunks(answer, reading) : readWhole(answer, reading)
  }
  return readStream(answer, reading, streaming)
}

/** A service may answer in one piece although a stream was asked for. */
const isStream = (answer: HttpAnswer, { transport }: HttpStreaming): boolean =>
  transport !== "sse" || /^\s*text\/event-stream\b/i.test(headerText(answer, "content-type") ?? "")

/** One value that comes in pieces: the pieces are told, and the whole is read as any other answer. */
const readChunks = async (answer: HttpAnswer, reading: Reading): Promise<Success | Failure> => {
  const { desk, secrets } = reading
  const stream = readableOf(answer, secrets.spellings)
  if (!stream.ok) return stream
  const reader = createEventReader("chunked")
  const chunks: Buffer[] = []
  const read = await readUpTo(stream.value, desk.outputBytes, (chunk) => {
    chunks.push(chunk)
    for (const { data } of reader.push(chunk)) desk.tell({ type: "progress", value: withoutSecrets(data, secrets) })
    return true
  })
  if (!read.ok) return read.why === "limit" ? tooMuch(desk.outputBytes) : cutShort()
  desk.note({ response_size_bytes: read.bytes })
  const made = parsed(Buffer.concat(chunks), reading, isJson(answer))
  if (!made.ok) return made
  const value = taken(made.value, reading)
  return value === undefined ? nothingThere : { ...made, value }
}
