/**
 * The host's side of one request to a shim: ask, hear its events, have done what it asks of other tools, take its one answer.
 *
 * Guarantees: settles on the first answer, on a fault in the frames, on the end of the stream, and at every limit; what
 * comes after that is not heard, and what it asked of other tools is cancelled. Those are asked one after the other, the
 * next once the answer to the last was taken from the pipe: a tool that does not read is owed one answer, never more.
 * Nothing that arrives throws, and memory is bounded by the limits of this room.
 * An answer is the tool's own word, whoever of its code wrote it: it is judged like any other output.
 * Does not: end the program; whoever runs it does, also where it never answers.
 */
import { randomBytes } from "node:crypto"
import type { JsonObject, JsonValue } from "../../../manifest/types.ts"
import type { Session, ToolAnswer } from "../kind.ts"
import { encodeFrame, FrameReader } from "./frames.ts"
import { RUNNER } from "./limits.ts"
import type { RunnerRequest } from "./request.ts"

/** An error that the module threw, or that kept it from being run. */
export interface Thrown {
  /** the error's own name, then those of the classes above it; never empty */
  readonly names: readonly string[]
  readonly message: string
  /** while it was loaded, looked into, called, or while its result was written down */
  readonly where: "load" | "resolve" | "call" | "result"
  /** of a response that the error tells of */
  readonly status?: number
}
export type RunnerAnswer =
  /** `streamed`: the value is what was left to say after the events */
  | { readonly ok: true; readonly value: JsonValue; readonly streamed: boolean }
  | { readonly ok: false; readonly kind: "thrown"; readonly thrown: Thrown }
  | { readonly ok: false; readonly kind: "protocol" | "silent" | "limit"; readonly message: string }

interface TalkOptions {
  readonly session: Pick<Session, "pipes" | "signal" | "callTool">
  readonly request: RunnerRequest
  /** hears each event at once */
  readonly onEvent: (value: JsonValue) => void
}

const textOf = (value: JsonValue | undefined, most: number): string | undefined =>
  typeof value === "string" ? value.slice(0, most) : undefined

const PLACES = ["load", "resolve", "call", "result"] as const

const thrownOf = (frame: JsonObject): Thrown => {
  const { names, message, status, where } = frame
  const named = (Array.isArray(names) ? (names as readonly JsonValue[]) : [])
    .slice(0, RUNNER.names)
    .flatMap((name) => textOf(name, RUNNER.nameChars) ?? [])
  return {
    names: named.length === 0 ? ["Error"] : named,
    message: textOf(message, RUNNER.messageChars) ?? "",
    where: PLACES.find((place) => place === where) ?? "call",
    ...(typeof status === "number" && Number.isInteger(status) ? { status } : {}),
  }
}

interface Heard {
  event(value: JsonValue): void
  /** the answer where it may ask no more */
  call(frame: JsonObject): RunnerAnswer | undefined
}

/** The answer in a frame, or undefined where it is another word, which is heard. */
const answerIn = (frame: JsonObject, heard: Heard): RunnerAnswer | undefined => {
  switch (frame["type"]) {
    case "event":
      heard.event(frame["value"] ?? null)
      return undefined
    case "call":
      return heard.call(frame)
    case "result":
      return { ok: true, value: frame["value"] ?? null, streamed: frame["streamed"] === true }
    case "error":
      return { ok: false, kind: "thrown", thrown: thrownOf(frame) }
    default:
      return { ok: false, kind: "protocol", message: "it sent a frame of no known type" }
  }
}

const tooLarge = (limit: string): RunnerAnswer => ({
  ok: false,
  kind: "limit",
  message: `it said more than ${limit} over its private descriptor`,
})

const tooLargeAnswer: ToolAnswer = {
  ok: false,
  error: {
    code: "limit_exceeded",
    class: "tool",
    message: `what it answered is larger than ${RUNNER.answerBytes} bytes`,
    retryable: false,
  },
}
const answerFrame = (id: number, answer: ToolAnswer): Uint8Array => {
  const frame = encodeFrame({ do: "answer", id, ...answer })
  return frame.length > RUNNER.answerBytes ? encodeFrame({ do: "answer", id, ...tooLargeAnswer }) : frame
}

export const talk = ({ session, request, onEvent }: TalkOptions): Promise<RunnerAnswer> => {
  const { pipes, signal, callTool } = session
  if (pipes === undefined) throw new TypeError("a shim is talked with over private pipes")
  const { toTool, fromTool } = pipes
  const nonce = randomBytes(16).toString("hex")
  const asked = encodeFrame({ nonce, most: RUNNER.frameBytes, ...request })
  if (asked.length > RUNNER.requestBytes)
    return Promise.resolve({
      ok: false,
      kind: "limit",
      message: `what the tool is asked is larger than ${RUNNER.requestBytes} bytes`,
    })
  return new Promise((resolve) => {
    const reader = new FrameReader(nonce)
    let bytes = 0
    let frames = 0
    let isOver = false
    let calls = 0
    let line: Promise<unknown> = Promise.resolve()
    const over = new AbortController()
    const taken = (frame: Uint8Array): Promise<void> =>
      new Promise((written) => void toTool.write(frame, () => written()))
    const heard: Heard = {
      event: onEvent,
      call: ({ id, tool = null, input = null }) => {
        if (callTool === undefined || typeof id !== "number" || !Number.isSafeInteger(id))
          return { ok: false, kind: "protocol", message: "it asked for another tool where it can ask for none" }
        calls += 1
        if (calls > RUNNER.calls) return tooLarge(`${RUNNER.calls} calls of other tools`)
        line = line.then(async () => {
          if (isOver) return
          const answer = await callTool({ tool, input }, over.signal)
          // `isOver` may be true by now.
          if (!over.signal.aborted) await taken(answerFrame(id, answer))
        })
        line.catch(() => finish({ ok: false, kind: "protocol", message: "what it asked of another tool broke off" }))
        return undefined
      },
    }
    const finish = (answer: RunnerAnswer): void => {
      if (isOver) return
      isOver = true
      over.abort()
      fromTool.off("data", onData).off("end", onEnd).off("close", onEnd)
      signal.removeEventListener("abort", onAbort)
      resolve(answer)
    }
    const onData = (chunk: Uint8Array): void => {
      bytes += chunk.length
      if (bytes > RUNNER.totalBytes) return finish(tooLarge(`${RUNNER.totalBytes} bytes`))
      for (const frame of reader.push(chunk)) {
        frames += 1
        if (frames > RUNNER.frames) return finish(tooLarge(`${RUNNER.frames} frames`))
        const answer = answerIn(frame, heard)
        if (answer !== undefined) return finish(answer)
      }
      const { fault } = reader
      if (fault !== undefined)
        finish({ ok: false, kind: fault.kind === "too-large" ? "limit" : "protocol", message: fault.message })
    }
    const onEnd = (): void =>
      finish({
        ok: false,
        kind: "silent",
        message: reader.isWithin ? "it ended in the middle of an answer" : "it ended without an answer",
      })
    /** It is asked to stop; what it still says is heard until it is ended. */
    const onAbort = (): void => void toTool.write(encodeFrame({ do: "abort" }))
    // A tool that is gone does not read, and one that closed its side is heard of by its end.
    toTool.on("error", () => undefined)
    fromTool.on("error", () => undefined)
    fromTool.on("data", onData).on("end", onEnd).on("close", onEnd)
    toTool.write(asked)
    signal.addEventListener("abort", onAbort, { once: true })
    if (signal.aborted) onAbort()
    if (fromTool.readableEnded || fromTool.destroyed) onEnd()
  })
}
