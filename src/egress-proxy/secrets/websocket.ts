/**
 * Looks for placeholders in the messages a WebSocket client sends (RFC 6455), which are masked on the wire.
 *
 * Guarantees: payloads are unmasked and searched as they stream by, over fragments and frames; frames of any length
 * are read in constant memory, and as many as stand in a chunk in one pass, so that a flood of empty ones costs no
 * more than its bytes. A frame that is not masked, or that uses an extension (compression among them),
 * cannot be searched and is `unscannable`: the handshake must not have offered extensions.
 * `createMessageEnds` follows the frames of either side and tells where the last whole message among them ends.
 * Does not: check the protocol any further, nor look at what the server sends.
 */
import type { BodyStep } from "./body.ts"
import { createPlaceholderScanner, type PlaceholderScanner } from "./scanner.ts"

interface WebSocketScanner {
  /** Judges the next bytes of the client. A refusal is final and repeats. */
  push(chunk: Buffer): BodyStep
}

const clean: BodyStep = { state: "clean" }
const noMask: BodyStep = { state: "unscannable", reason: "a WebSocket frame of the client is not masked" }
const extended: BodyStep = { state: "unscannable", reason: "a WebSocket frame uses an extension or an unknown length" }

export function createWebSocketScanner(placeholders: readonly string[]): WebSocketScanner {
  // Control frames may stand between the fragments of a message, so what they hold is searched apart.
  const messages = createGathering(placeholders)
  const controls = createGathering(placeholders)
  const header = Buffer.alloc(longestHeader)
  let known = 0
  let frame: { left: number; at: number; readonly into: Gathering } | undefined
  let ended: BodyStep | undefined

  /** Takes bytes of a header until it is whole; where the next byte stands. */
  const readHeader = (chunk: Buffer, from: number): number => {
    let at = from
    for (; at < chunk.length && known < headerSize(header, known); at += 1, known += 1)
      header[known] = chunk[at] as number
    return at
  }
  /** Begins the frame that the header tells of. */
  const begin = (): BodyStep | undefined => {
    const left = payloadSize(header)
    if (!Number.isSafeInteger(left)) return extended
    const control = ((header[0] as number) & 0x08) !== 0
    frame = { left, at: 0, into: control ? controls : messages }
    if (control && left > 0) controls.separate()
    return undefined
  }

  const scan = (chunk: Buffer): BodyStep => {
    for (let at = 0; at < chunk.length; ) {
      if (frame === undefined) {
        at = readHeader(chunk, at)
        if (known >= 1 && ((header[0] as number) & 0x70) !== 0) return extended
        if (known >= 2 && ((header[1] as number) & 0x80) === 0) return noMask
        if (known < headerSize(header, known)) break
        const refused = begin()
        if (refused !== undefined) return refused
      }
      const open = frame as NonNullable<typeof frame>
      const count = Math.min(open.left, chunk.length - at)
      open.into.unmask(chunk, at, count, header, known - 4, open.at)
      open.at = (open.at + count) & 3
      open.left -= count
      at += count
      if (open.left > 0) break
      frame = undefined
      known = 0
    }
    const found = messages.search() ?? controls.search()
    return found === undefined ? clean : { state: "misuse", placeholder: found }
  }

  return {
    push(chunk) {
      if (ended !== undefined) return ended
      messages.expect(chunk.length)
      controls.expect(chunk.length)
      const step = scan(chunk)
      if (step.state !== "clean") ended = step
      return step
    },
  }
}

/** Payloads of many frames, searched together: a frame may hold next to nothing. */
class Gathering {
  readonly #scanner: PlaceholderScanner
  #bytes: Buffer = Buffer.alloc(0)
  #size = 0

  constructor(scanner: PlaceholderScanner) {
    this.#scanner = scanner
  }

  /** At most so many bytes will come before the next search. */
  expect(bytes: number): void {
    this.#size = 0
    if (this.#bytes.length < bytes) this.#bytes = Buffer.allocUnsafe(bytes)
  }
  /** A byte that no spelling of a placeholder holds: what stands on either side is not one text. */
  separate(): void {
    this.#bytes[this.#size] = 0
    this.#size += 1
  }
  unmask(chunk: Buffer, from: number, count: number, header: Buffer, mask: number, phase: number): void {
    for (let at = 0; at < count; at += 1)
      this.#bytes[this.#size + at] = (chunk[from + at] as number) ^ (header[mask + ((phase + at) & 3)] as number)
    this.#size += count
  }
  search(): string | undefined {
    return this.#size === 0 ? undefined : this.#scanner.push(this.#bytes.subarray(0, this.#size))
  }
}
const createGathering = (placeholders: readonly string[]): Gathering =>
  new Gathering(createPlaceholderScanner(placeholders))

interface MessageEnds {
  /** How many of these bytes stand before the end of the last message, or control frame, that ends among them. */
  push(chunk: Buffer): number
}

export function createMessageEnds(): MessageEnds {
  const header = Buffer.alloc(longestHeader)
  let known = 0
  let left = 0
  let last = false
  const size = (): number => headerSize(header, known) - (known >= 2 && ((header[1] as number) & 0x80) === 0 ? 4 : 0)
  return {
    push(chunk) {
      let end = 0
      for (let at = 0; at < chunk.length; ) {
        if (left === 0) {
          header[known] = chunk[at] as number
          known += 1
          at += 1
          if (known < size()) continue
          left = payloadSize(header)
          last = ((header[0] as number) & 0x88) !== 0
          known = 0
        }
        const count = Math.min(left, chunk.length - at)
        left -= count
        at += count
        if (left === 0 && last) end = at
      }
      return end
    },
  }
}

/** two bytes, eight of length, four of mask */
const longestHeader = 14

/** how long the header is, as far as its first two bytes tell */
function headerSize(header: Buffer, known: number): number {
  if (known < 2) return 2
  const length = (header[1] as number) & 0x7f
  return 2 + (length === 126 ? 2 : length === 127 ? 8 : 0) + 4
}

function payloadSize(header: Buffer): number {
  const length = (header[1] as number) & 0x7f
  if (length < 126) return length
  return length === 126 ? header.readUInt16BE(2) : Number(header.readBigUInt64BE(2))
}
