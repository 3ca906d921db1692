/**
 * The ways a placeholder may be spelled on the wire, and how to see through them.
 *
 * Guarantees: `needlesFor` lists byte strings of which at least one occurs wherever the placeholder stands raw or
 * inside base64 (either alphabet, any alignment); percent-encoding, whole or partial, is undone by
 * `createPercentDecoder`, a chunk at a time, with at most two bytes held, in one pass whatever the bytes are. Pure.
 * Does not: see through compression, encryption, other encodings (hex, JSON `\u` escapes) or nested ones.
 */

export interface Needle {
  readonly placeholder: string
  readonly bytes: Buffer
}

export const needlesForAll = (placeholders: readonly string[]): readonly Needle[] => placeholders.flatMap(needlesFor)

export function needlesFor(placeholder: string): readonly Needle[] {
  const spellings = new Set([placeholder])
  for (let offset = 0; offset < 3; offset += 1) {
    const text = Buffer.concat([Buffer.alloc(offset), Buffer.from(placeholder)]).toString("base64")
    const bytes = offset + Buffer.byteLength(placeholder)
    // Characters that also hold bits of a neighbouring byte may be anything; only those in between are certain.
    const certain = text.slice(Math.ceil((offset * 8) / 6), Math.floor((bytes * 8) / 6))
    spellings.add(certain)
    spellings.add(certain.replaceAll("+", "-").replaceAll("/", "_"))
  }
  return [...spellings].map((text) => ({ placeholder, bytes: Buffer.from(text) }))
}

const percent = 0x25

interface PercentDecoder {
  push(chunk: Buffer): Buffer
}

export function createPercentDecoder(): PercentDecoder {
  let held: Buffer = empty
  return {
    push(chunk) {
      const bytes = held.length === 0 ? chunk : Buffer.concat([held, chunk])
      held = empty
      const from = bytes.indexOf(percent)
      if (from === -1) return bytes
      // What is decoded is never longer: one copy, and no object for each escape, however many there are.
      const decoded = Buffer.allocUnsafe(bytes.length)
      bytes.copy(decoded, 0, 0, from)
      let size = from
      for (let at = from; at < bytes.length; size += 1) {
        const byte = bytes[at] as number
        if (byte === percent && at + 3 > bytes.length) {
          held = Buffer.from(bytes.subarray(at))
          break
        }
        const value = byte === percent ? hexPair(bytes[at + 1] as number, bytes[at + 2] as number) : -1
        decoded[size] = value < 0 ? byte : value
        at += value < 0 ? 1 : 3
      }
      return decoded.subarray(0, size)
    },
  }
}

const empty = Buffer.alloc(0)
/** of each byte, the number that it stands for as a hexadecimal digit, or -1 */
const digits = Int8Array.from({ length: 256 }, (_, byte) =>
  /[0-9a-fA-F]/.test(String.fromCharCode(byte)) ? Number.parseInt(String.fromCharCode(byte), 16) : -1,
)
function hexPair(high: number, low: number): number {
  const first = digits[high] as number
  const second = digits[low] as number
  return first < 0 || second < 0 ? -1 : first * 16 + second
}
