/**
 * An answer that comes in parts (SSE, NDJSON, chunks) → its events, as they come.
 *
 * Guarantees: linear in the bytes, however they are cut; holds no more than the event that is not complete yet, which the
 * limit on the whole answer bounds. Line ends are those of the WHATWG's event streams. Pure but for what it holds.
 */
import type { HttpStreaming } from "../../../manifest/types.ts"

interface StreamEvent {
  readonly name: string
  readonly data: string
}

interface EventReader {
  /** the events that are complete with this */
  push(bytes: Uint8Array): readonly StreamEvent[]
  /** what was not ended by the sender */
  end(): readonly StreamEvent[]
}

/** Complete lines of what is pushed; a carriage return at the end of a chunk may be half of a line end. */
class Lines {
  readonly #decoder = new TextDecoder("utf-8")
  #held: string[] = []
  #afterReturn = false

  push(bytes: Uint8Array, last = false): string[] {
    let text = this.#decoder.decode(bytes, { stream: !last })
    if (this.#afterReturn && text.startsWith("\n")) text = text.slice(1)
    if (text !== "") this.#afterReturn = text.endsWith("\r")
    const lines = text.split(/\r\n|\n|\r/)
    const rest = lines.pop() ?? ""
    const [first] = lines
    if (first !== undefined) {
      lines[0] = this.#held.join("") + first
      this.#held = []
    }
    if (rest !== "") this.#held.push(rest)
    return lines
  }
  rest(): string {
    const text = this.#held.join("")
    this.#held = []
    return text
  }
}

const sse = (): EventReader => {
  const lines = new Lines()
  let name = ""
  let data: string[] = []
  const take = (line: string): StreamEvent | undefined => {
    if (line === "") {
      const event = data.length === 0 ? undefined : { name: name || "message", data: data.join("\n") }
      name = ""
      data = []
      return event
    }
    const colon = line.indexOf(":")
    const field = colon < 0 ? line : line.slice(0, colon)
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "")
    if (field === "data") data.push(value)
    if (field === "event") name = value
    return undefined
  }
  return {
    push: (bytes) => lines.push(bytes).flatMap((line) => take(line) ?? []),
    // An event that its sender did not end is none.
    end: () => [],
  }
}

const ndjson = (): EventReader => {
  const lines = new Lines()
  const events = (texts: readonly string[]): readonly StreamEvent[] =>
    texts.flatMap((text) => (text.trim() === "" ? [] : [{ name: "message", data: text }]))
  return {
    push: (bytes) => events(lines.push(bytes)),
    end: () => events([...lines.push(new Uint8Array(), true), lines.rest()]),
  }
}

const chunked = (): EventReader => {
  const decoder = new TextDecoder("utf-8")
  const events = (data: string): readonly StreamEvent[] => (data === "" ? [] : [{ name: "message", data }])
  return { push: (bytes) => events(decoder.decode(bytes, { stream: true })), end: () => events(decoder.decode()) }
}

const readers = { sse, ndjson, chunked } as const

export const createEventReader = (transport: HttpStreaming["transport"]): EventReader => readers[transport]()
