/**
 * The ways a placeholder may be spelled on the wire, and how to see through them.
 *
 * Guarantees: `needlesFor` lists byte strings of which at least one occurs wherever the placeholder stands raw or
 * inside base64 (either alphabet, any alignment); percent-encoding, whole or partial, is undone by
 * `createPercentDecoder`, a chunk at a time, with at most two bytes held. Pure.
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

export interface PercentDecoder {
  push(chunk: Buffer): Buffer
}

export function createPercentDecoder(): PercentDecoder {
  let held: Buffer = Buffer.alloc(0)
  return {
    push(chunk) {
      const bytes = held.length === 0 ? chunk : Buffer.concat([held, chunk])
      held = Buffer.alloc(0)
      let from = bytes.indexOf(percent)
      if (from === -1) return bytes
      const parts: Buffer[] = [bytes.subarray(0, from)]
      while (from !== -1) {
        if (from + 3 > bytes.length) {
          held = Buffer.from(bytes.subarray(from))
          break
        }
        const high = hexDigit(bytes[from + 1] as number)
        const low = hexDigit(bytes[from + 2] as number)
        const escaped = high !== undefined && low !== undefined
        parts.push(escaped ? Buffer.from([high * 16 + low]) : bytes.subarray(from, from + 1))
        const next = from + (escaped ? 3 : 1)
        const upcoming = bytes.indexOf(percent, next)
        parts.push(bytes.subarray(next, upcoming === -1 ? bytes.length : upcoming))
        from = upcoming
      }
      return Buffer.concat(parts)
    },
  }
}

function hexDigit(byte: number): number | undefined {
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30
  const letter = byte | 0x20
  return letter >= 0x61 && letter <= 0x66 ? letter - 0x57 : undefined
}
