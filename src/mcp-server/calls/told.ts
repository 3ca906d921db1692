/**
 * What a client hears while a call goes on: how far it is, and what its program says on stderr.
 *
 * Guarantees: word of it is bounded in length and number, and never holds up or fails a call. A program's lines are told as
 * its own, under its tool's name; who did not ask for progress or for a log hears none. Progress only ever grows.
 */
import { StringDecoder } from "node:string_decoder"
import type { ServerContext } from "@modelcontextprotocol/server"
import type { CallEvent } from "../../host/events.ts"
import { mcpLimits } from "../limits.ts"

/** Of the host's own steps. */
const STEP = 0.001

interface OwnWord {
  readonly progress: number
  readonly total?: number
  readonly message?: string
}
/** A program's own word of how far it is. */
const ownWord = (value: unknown): OwnWord | undefined => {
  if (typeof value !== "object" || value === null) return undefined
  const { progress, total, message } = value as Readonly<Record<string, unknown>>
  if (typeof progress !== "number" || !(Math.abs(progress) <= mcpLimits.progressMost.value)) return undefined
  return {
    progress,
    ...(typeof total === "number" && Number.isFinite(total) ? { total } : {}),
    ...(typeof message === "string" ? { message: message.slice(0, mcpLimits.progressChars.value) } : {}),
  }
}

/** Whole lines of a stream that comes in pieces. */
const createLines = (hear: (line: string) => void): ((bytes: Uint8Array) => void) => {
  const decoder = new StringDecoder("utf8")
  let rest = ""
  return (bytes) => {
    const pieces = (rest + decoder.write(Buffer.from(bytes))).split("\n")
    rest = (pieces.pop() ?? "").slice(-mcpLimits.logChars.value)
    for (const line of pieces) if (line !== "") hear(line.slice(0, mcpLimits.logChars.value))
  }
}

export interface Telling {
  hear(event: CallEvent): void
  /** From now on this request is who hears; none: nobody does. */
  turnTo(ctx: ServerContext | undefined): void
}

export const createTelling = (tool: string, first: ServerContext): Telling => {
  let ctx: ServerContext | undefined = first
  let told = 0
  let last = Number.NEGATIVE_INFINITY
  let lines = 0
  let words = 0
  let isWhole = false
  const progress = (word: OwnWord): void => {
    words += 1
    if (words > mcpLimits.progressWords.value) return
    told = word.progress
    const token = ctx?.mcpReq._meta?.progressToken
    if (token === undefined) return
    void ctx?.mcpReq
      .notify({ method: "notifications/progress", params: { progressToken: token, ...word } })
      .catch(() => undefined)
  }
  const log = createLines((line) => {
    lines += 1
    if (lines > mcpLimits.logLines.value) return
    void ctx?.mcpReq.log("info", line, tool).catch(() => undefined)
  })
  return {
    turnTo: (next) => void (ctx = next),
    hear: (event) => {
      if (event.type === "output") {
        if (event.stream === "stderr") log(event.bytes)
        return
      }
      if (event.type !== "progress") {
        // Small steps, so that a program's own count goes on from there.
        progress({ progress: told + STEP, message: event.type })
        return
      }
      const word = ownWord(event.value)
      const now = performance.now()
      if (word === undefined || word.progress <= told) return
      // That it is done is told at once, and once.
      const isDone = word.progress === word.total && !isWhole
      if (now - last < mcpLimits.progressMs.value && !isDone) return
      isWhole ||= isDone
      last = now
      progress(word)
    },
  }
}
