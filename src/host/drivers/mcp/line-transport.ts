/**
 * The official client's transport over a running server's own streams: one JSON-RPC message a line.
 *
 * Guarantees: whatever the server writes, no more than one message's size is kept, no more than so many bytes, messages
 * and odd lines are read, and none is nested deeper than the client can walk; beyond that, or at the end of the stream,
 * the connection is closed once, with the reason in `fault`. Nothing that is read throws out of here. What is no message
 * (servers that log to stdout) is passed over. Messages are heard one after the other, each told to its end before the
 * next; while they are, nothing more is read. Bytes, messages and odd lines are counted for a call.
 * Assumes: the streams belong to somebody else, who ends them.
 */
import type { JSONRPCMessage, Transport } from "@modelcontextprotocol/client"
import type { Readable, Writable } from "node:stream"
import { setImmediate as turn } from "node:timers/promises"
import { hostLimits } from "../../limits.ts"

interface LineLimits {
  readonly messageBytes: number
  readonly bytes: number
  readonly messages: number
  readonly oddLines: number
  readonly depth: number
  readonly unsentBytes: number
}

const lineLimits: LineLimits = {
  messageBytes: hostLimits.mcpMessageBytes.value,
  bytes: hostLimits.mcpBytes.value,
  messages: hostLimits.mcpMessages.value,
  oddLines: hostLimits.mcpOddLines.value,
  depth: hostLimits.mcpDepth.value,
  unsentBytes: hostLimits.mcpUnsentBytes.value,
}

const QUOTE = 0x22
const BACKSLASH = 0x5c
const NEWLINE = 0x0a

/** How deep the brackets of a JSON text go, without reading it. */
const depthOf = (line: Uint8Array): number => {
  let depth = 0
  let deepest = 0
  let inText = false
  for (let at = 0; at < line.length; at += 1) {
    const byte = line[at]
    if (inText) {
      if (byte === BACKSLASH) at += 1
      else if (byte === QUOTE) inText = false
    } else if (byte === QUOTE) inText = true
    else if (byte === 0x7b || byte === 0x5b) {
      depth += 1
      if (depth > deepest) deepest = depth
    } else if (byte === 0x7d || byte === 0x5d) depth -= 1
  }
  return deepest
}

interface Streams {
  readonly toServer: Writable
  readonly fromServer: Readable
}

type ParseMessage = (value: unknown) => JSONRPCMessage

export class LineTransport implements Transport {
  /** by these the client knows that it speaks with a program: a silent one is of the older era */
  readonly stderr = null
  readonly pid = null
  onclose?: () => void
  onerror?: (error: Error) => void
  onmessage?: (message: JSONRPCMessage) => void
  readonly #streams: Streams
  readonly #parse: ParseMessage
  readonly #limits: LineLimits
  #pieces: Uint8Array[] = []
  #held = 0
  #lines: Uint8Array[] = []
  #hearing = false
  #over = false
  #bytes = 0
  #messages = 0
  #odd = 0
  #closed = false
  #fault: string | undefined
  constructor(streams: Streams, parse: ParseMessage, limits: Partial<LineLimits> = {}) {
    this.#streams = streams
    this.#parse = parse
    this.#limits = { ...lineLimits, ...limits }
  }
  /** why the connection was closed from this side */
  get fault(): string | undefined {
    return this.#fault
  }
  get left(): boolean {
    return this.#over
  }

  /** What was read so far does not count any more: another call begins. */
  renew(): void {
    this.#bytes = 0
    this.#messages = 0
    this.#odd = 0
  }

  async start(): Promise<void> {
    const { fromServer, toServer } = this.#streams
    fromServer.on("data", this.#take).once("end", this.#last).once("close", this.#last).on("error", this.#last)
    toServer.on("error", this.#last)
    if (fromServer.readableEnded || fromServer.destroyed) this.#last()
  }
  async send(message: JSONRPCMessage): Promise<void> {
    const { toServer } = this.#streams
    if (this.#closed || !toServer.writable) throw new Error("the server reads no more")
    if (toServer.writableLength > this.#limits.unsentBytes) return this.#refuse("it does not read what it asked for")
    if (toServer.write(`${JSON.stringify(message)}\n`)) return
    await new Promise<void>((resolve) => {
      const go = (): void => {
        for (const event of ["drain", "close", "error"]) toServer.off(event, go)
        resolve()
      }
      for (const event of ["drain", "close", "error"]) toServer.once(event, go)
    })
  }
  async close(): Promise<void> {
    this.#end()
  }

  /** Nothing more comes; what came is heard first. */
  readonly #last = (): void => {
    this.#over = true
    if (!this.#hearing) this.#end()
  }
  readonly #end = (): void => {
    if (this.#closed) return
    this.#closed = true
    this.#pieces = []
    this.#lines = []
    this.#streams.fromServer.off("data", this.#take).off("end", this.#last).off("close", this.#last)
    this.onclose?.()
  }
  #refuse(why: string): void {
    this.#fault ??= why
    this.#end()
  }
  readonly #take = (chunk: Uint8Array): void => {
    this.#bytes += chunk.length
    if (this.#bytes > this.#limits.bytes) return this.#refuse(`it wrote more than ${this.#limits.bytes} bytes`)
    for (let from = 0; !this.#closed && from < chunk.length; ) {
      const at = chunk.indexOf(NEWLINE, from)
      const piece = chunk.subarray(from, at === -1 ? chunk.length : at)
      this.#held += piece.length
      if (this.#held > this.#limits.messageBytes)
        return this.#refuse(`it wrote a message of more than ${this.#limits.messageBytes} bytes`)
      this.#pieces.push(piece)
      if (at === -1) break
      const line = this.#pieces.length === 1 ? piece : Buffer.concat(this.#pieces)
      this.#pieces = []
      this.#held = 0
      this.#lines.push(line)
      from = at + 1
    }
    if (this.#lines.length > 0 && !this.#hearing) void this.#hearAll()
  }
  /** The client looks for who wants to hear of progress a moment after it got the word, when the answer may be there. */
  async #hearAll(): Promise<void> {
    const { fromServer } = this.#streams
    this.#hearing = true
    fromServer.pause()
    for (let line = this.#lines.shift(); line !== undefined; line = this.#lines.shift())
      if (this.#hear(line) === "more") await turn()
    this.#hearing = false
    if (this.#over) this.#end()
    else if (!this.#closed) fromServer.resume()
  }
  /** `more`: it is told to its end only in a moment. */
  #hear(line: Uint8Array): "more" | void {
    if (depthOf(line) > this.#limits.depth)
      return this.#refuse(`it wrote a message nested more than ${this.#limits.depth} deep`)
    let message: JSONRPCMessage
    try {
      message = this.#parse(JSON.parse(Buffer.from(line).toString("utf8")))
    } catch {
      this.#odd += 1
      if (this.#odd > this.#limits.oddLines)
        this.#refuse(`it wrote more than ${this.#limits.oddLines} lines that are no messages`)
      return
    }
    this.#messages += 1
    if (this.#messages > this.#limits.messages)
      return this.#refuse(`it wrote more than ${this.#limits.messages} messages`)
    try {
      this.onmessage?.(message)
      return "method" in message ? "more" : undefined
    } catch (error) {
      this.onerror?.(error instanceof Error ? error : new Error(String(error)))
    }
  }
}
