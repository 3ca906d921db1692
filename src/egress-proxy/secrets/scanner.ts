/**
 * Finds a secret's placeholder in bytes that stream by, however they are cut.
 *
 * Guarantees: sees each placeholder raw, in base64 (both alphabets, any alignment), percent-encoded whole or in part,
 * and percent-encoded base64; holds fewer bytes than the longest spelling. The chunk that completes a placeholder is
 * the one reported, so a caller that forwards a chunk only after pushing it never forwards a whole placeholder.
 * Does not: decompress; a body with a content encoding goes through `createBodyScanner`.
 */
import { createPercentDecoder, needlesForAll, type Needle } from "./spellings.ts"

export interface PlaceholderScanner {
  /** The placeholder that these bytes completed, if any. */
  push(chunk: Buffer): string | undefined
}

export function createPlaceholderScanner(placeholders: readonly string[]): PlaceholderScanner {
  return createNeedleScanner(needlesForAll(placeholders))
}

function createNeedleScanner(needles: readonly Needle[]): PlaceholderScanner {
  const asSent = createWindow(needles)
  // Until the first escape what is decoded is what was sent, and is not searched twice.
  let decoded: PlaceholderScanner | undefined
  const decoder = createPercentDecoder()
  return {
    push(chunk) {
      if (needles.length === 0 || chunk.length === 0) return undefined
      if (decoded === undefined && chunk.includes(0x25)) decoded = createWindow(needles, asSent.tail)
      return asSent.push(chunk) ?? decoded?.push(decoder.push(chunk))
    },
  }
}

/** The first placeholder spelled anywhere in a short text, also when percent-encoded more than once. */
export function findPlaceholder(text: string, needles: readonly Needle[]): string | undefined {
  // Nothing that is undone here makes a text longer.
  if (needles.every((needle) => text.length < needle.bytes.length)) return undefined
  let layer: Buffer = Buffer.from(text, "latin1")
  for (let depth = 0; ; depth += 1) {
    const found = search(layer, needles)
    if (found !== undefined || depth === 3 || !layer.includes(0x25)) return found
    // A decoder holds back an escape that may still grow; two spaces bring it out.
    const decoded = createPercentDecoder().push(Buffer.concat([layer, twoSpaces]))
    if (decoded.length === layer.length + twoSpaces.length) return undefined
    layer = decoded
  }
}

const twoSpaces = Buffer.from("  ")
const search = (bytes: Buffer, needles: readonly Needle[]): string | undefined =>
  needles.find((needle) => bytes.length >= needle.bytes.length && bytes.includes(needle.bytes))?.placeholder

interface Window extends PlaceholderScanner {
  /** the last bytes, in which a placeholder may have begun */
  readonly tail: Buffer
}

/** Searches each chunk, and the seam between it and what came before. */
function createWindow(needles: readonly Needle[], before: Buffer = Buffer.alloc(0)): Window {
  let longest = 0
  for (const needle of needles) longest = Math.max(longest, needle.bytes.length)
  let tail = before
  return {
    get tail() {
      return tail
    },
    push(chunk) {
      if (chunk.length === 0) return undefined
      const seam = tail.length === 0 ? chunk.subarray(0, 0) : Buffer.concat([tail, chunk.subarray(0, longest - 1)])
      const found = search(seam, needles) ?? search(chunk, needles)
      const recent = chunk.length >= longest - 1 ? chunk : Buffer.concat([tail, chunk])
      tail = Buffer.from(recent.subarray(Math.max(0, recent.length - (longest - 1))))
      return found
    },
  }
}
