/**
 * DNS over a stream: each message behind its length in two bytes (RFC 7766).
 *
 * Guarantees: holds less than one message beside the chunk in hand; the messages are the same however the bytes are
 * split. A message shorter than a header or longer than `maxBytes` ends the stream: no honest query is.
 * Does not: look into the messages.
 */

type DnsStreamStep =
  | { readonly state: "ok"; readonly messages: readonly Buffer[] }
  | { readonly state: "bad"; readonly reason: string }

interface DnsStreamReader {
  /** Takes the next bytes. A refusal is final and repeats. */
  push(chunk: Buffer): DnsStreamStep
}

const headerSize = 12
const defaultMaxBytes = 1024

export function createDnsStreamReader(options: { readonly maxBytes?: number } = {}): DnsStreamReader {
  const maxBytes = options.maxBytes ?? defaultMaxBytes
  let held: Buffer = Buffer.alloc(0)
  let ended: DnsStreamStep | undefined
  return {
    push(chunk) {
      if (ended !== undefined) return ended
      const bytes = held.length === 0 ? chunk : Buffer.concat([held, chunk])
      const messages: Buffer[] = []
      let at = 0
      while (bytes.length - at >= 2) {
        const length = bytes.readUInt16BE(at)
        if (length < headerSize || length > maxBytes) {
          held = Buffer.alloc(0)
          ended = { state: "bad", reason: "a message is too short or too long" }
          return ended
        }
        if (bytes.length - at - 2 < length) break
        messages.push(Buffer.from(bytes.subarray(at + 2, at + 2 + length)))
        at += 2 + length
      }
      held = Buffer.from(bytes.subarray(at))
      return { state: "ok", messages }
    },
  }
}

/** One message with its length in front. */
export function frameDnsMessage(message: Buffer): Buffer {
  if (message.length > 0xffff) throw new RangeError("a DNS message is at most 65535 bytes")
  const framed = Buffer.alloc(2 + message.length)
  framed.writeUInt16BE(message.length, 0)
  message.copy(framed, 2)
  return framed
}
