/**
 * Looks for placeholders in the messages a WebSocket client sends (RFC 6455), which are masked on the wire.
 *
 * Guarantees: payloads are unmasked and searched as they stream by, over fragments and frames; frames of any length
 * are read in constant memory. A frame that is not masked, or that uses an extension (compression among them),
 * cannot be searched and is `unscannable`: the handshake must not have offered extensions.
 * Does not: check the protocol any further, nor look at what the server sends.
 */
import type { BodyStep } from "./body.ts"
import { createPlaceholderScanner, type PlaceholderScanner } from "./scanner.ts"

export interface WebSocketScanner {
  /** Judges the next bytes of the client. A refusal is final and repeats. */
  push(chunk: Buffer): BodyStep
}

const clean: BodyStep = { state: "clean" }
const noMask: BodyStep = { state: "unscannable", reason: "a WebSocket frame of the client is not masked" }
const extended: BodyStep = { state: "unscannable", reason: "a WebSocket frame uses an extension or an unknown length" }

export function createWebSocketScanner(placeholders: readonly string[]): WebSocketScanner {
  const messages = createPlaceholderScanner(placeholders)
  let header: Buffer = Buffer.alloc(0)
  let frame: { left: number; at: number; readonly mask: Buffer; readonly scanner: PlaceholderScanner } | undefined
  let ended: BodyStep | undefined

  const scan = (chunk: Buffer): BodyStep => {
    let rest = chunk
    while (rest.length > 0) {
      if (frame === undefined) {
        const wanted = headerSize(header)
        const part = rest.subarray(0, wanted - header.length)
        header = Buffer.concat([header, part])
        rest = rest.subarray(part.length)
        if (header.length >= 1 && ((header[0] as number) & 0x70) !== 0) return extended
        if (header.length >= 2 && ((header[1] as number) & 0x80) === 0) return noMask
        if (header.length < headerSize(header)) continue
        const left = payloadSize(header)
        if (!Number.isSafeInteger(left)) return extended
        // A control frame may stand between the fragments of a message and is searched by itself.
        const control = ((header[0] as number) & 0x08) !== 0
        frame = {
          left,
          at: 0,
          mask: header.subarray(-4),
          scanner: control ? createPlaceholderScanner(placeholders) : messages,
        }
        header = Buffer.alloc(0)
      }
      const payload = Buffer.from(rest.subarray(0, frame.left))
      for (let at = 0; at < payload.length; at += 1) {
        payload[at] = (payload[at] as number) ^ (frame.mask[(frame.at + at) & 3] as number)
      }
      const found = frame.scanner.push(payload)
      if (found !== undefined) return { state: "misuse", placeholder: found }
      frame.at = (frame.at + payload.length) & 3
      frame.left -= payload.length
      rest = rest.subarray(payload.length)
      if (frame.left === 0) frame = undefined
    }
    return clean
  }

  return {
    push(chunk) {
      if (ended !== undefined) return ended
      const step = scan(chunk)
      if (step.state !== "clean") ended = step
      return step
    },
  }
}

/** how long the header is, as far as its first two bytes tell */
function headerSize(header: Buffer): number {
  if (header.length < 2) return 2
  const length = (header[1] as number) & 0x7f
  return 2 + (length === 126 ? 2 : length === 127 ? 8 : 0) + 4
}

function payloadSize(header: Buffer): number {
  const length = (header[1] as number) & 0x7f
  if (length < 126) return length
  return length === 126 ? header.readUInt16BE(2) : Number(header.readBigUInt64BE(2))
}
