/**
 * A request body as plain pieces, whatever its framing.
 *
 * Guarantees: exactly the declared length, or a chunked body by the strict grammar (hex size, optional extension
 * that is dropped, CRLF), read in bounded pieces, one for all the chunks that came in one read; trailers are bounded
 * and dropped; bytes after the body stay in the source. The pieces are re-framed by the writer, so no framing byte of
 * the client reaches the upstream.
 */
import type { ByteSource } from "../connection/byte-source.ts"
import type { ProxyLimits } from "../limits.ts"
import type { BodyLength } from "./framing.ts"

type BodyPiece =
  /** `cost`: what it took to read them, in bytes */
  | { readonly state: "bytes"; readonly bytes: Buffer; readonly cost: number }
  | { readonly state: "end" }
  | { readonly state: "bad"; readonly code: "bad_chunk" | "bad_framing" | "head_timeout" }

interface BodyReader {
  next(idleMs: number): Promise<BodyPiece>
}

const end: BodyPiece = { state: "end" }
const bad: BodyPiece = { state: "bad", code: "bad_chunk" }
const tooShort: BodyPiece = { state: "bad", code: "bad_framing" }
const tooSlow: BodyPiece = { state: "bad", code: "head_timeout" }

export function createBodyReader(source: ByteSource, length: BodyLength, limits: ProxyLimits): BodyReader {
  if (length.kind === "none") return { next: async () => end }
  return length.kind === "bytes" ? fixed(source, length.length) : chunked(source, limits)
}

/** At most `left` bytes of what comes next. */
async function take(source: ByteSource, left: number, idleMs: number): Promise<BodyPiece> {
  const chunk = await source.read(idleMs)
  if (chunk === "timeout") return tooSlow
  if (chunk === "end") return tooShort
  source.unread(chunk.subarray(Math.min(left, chunk.length)))
  const bytes = chunk.subarray(0, left)
  return { state: "bytes", bytes, cost: bytes.length }
}

function fixed(source: ByteSource, length: number): BodyReader {
  let left = length
  return {
    async next(idleMs) {
      if (left === 0) return end
      const piece = await take(source, left, idleMs)
      if (piece.state === "bytes") left -= piece.bytes.length
      return piece
    },
  }
}

/** A line ending in CRLF, without it; undefined when it is too long, broken off, or has a bare CR or LF. */
async function readLine(source: ByteSource, maxBytes: number, idleMs: number): Promise<string | undefined> {
  let line: Buffer = Buffer.alloc(0)
  for (;;) {
    const chunk = await source.read(idleMs)
    if (typeof chunk === "string") return undefined
    line = line.length === 0 ? chunk : Buffer.concat([line, chunk])
    const feed = line.indexOf(10)
    if (feed < 0 && line.length <= maxBytes) continue
    if (feed < 1 || feed > maxBytes || line.indexOf(13) !== feed - 1) return undefined
    source.unread(line.subarray(feed + 1))
    return line.toString("latin1", 0, feed - 1)
  }
}

const none = Buffer.alloc(0)
const sizeLine = /^([0-9A-Fa-f]{1,13})(?:[ \t]*;[\t\u0020-\u007e]*)?$/

/** The size that the line between these two places tells, without its CR LF; -1 where it is none. */
function sizeIn(bytes: Buffer, from: number, to: number): number {
  let size = 0
  for (let at = from; at < to; at += 1) {
    const digit = digits[bytes[at] as number] as number
    if (digit < 0 || at - from > 12) {
      const text = sizeLine.exec(bytes.toString("latin1", from, to))?.[1]
      return text === undefined ? -1 : Number.parseInt(text, 16)
    }
    size = size * 16 + digit
  }
  return from === to ? -1 : size
}
const digits = Int8Array.from({ length: 256 }, (_, byte) =>
  /[0-9a-fA-F]/.test(String.fromCharCode(byte)) ? Number.parseInt(String.fromCharCode(byte), 16) : -1,
)

/** what reading a chunk costs beside its bytes, counted in bytes */
const chunkCost = 16

type ChunkState = "size" | "data" | "data-end" | "trailers" | "done"

/** What the data of the chunks in one read comes to: one piece, however small they are. */
class Gathered {
  readonly #read: Buffer
  #from = 0
  #to = 0
  #copy: Buffer | undefined
  #size = 0
  pieces = 0

  constructor(read: Buffer) {
    this.#read = read
  }
  add(from: number, to: number): void {
    this.pieces += 1
    if (this.#to === 0) {
      this.#from = from
      this.#to = to
      return
    }
    if (this.#copy === undefined) {
      this.#copy = Buffer.allocUnsafe(this.#read.length)
      this.#size = this.#read.copy(this.#copy, 0, this.#from, this.#to)
    }
    // Shorter ones are copied byte by byte, which is less work than a call.
    if (to - from > 32) this.#read.copy(this.#copy, this.#size, from, to)
    else for (let at = from; at < to; at += 1) this.#copy[this.#size + at - from] = this.#read[at] as number
    this.#size += to - from
  }
  get bytes(): Buffer {
    return this.#copy?.subarray(0, this.#size) ?? this.#read.subarray(this.#from, this.#to)
  }
}

function chunked(source: ByteSource, limits: ProxyLimits): BodyReader {
  let left = 0
  let state: ChunkState = "size"
  /** the beginning of a line that is not whole yet */
  let begun: Buffer = none

  /** All the data that stands in these bytes, or undefined where they break the grammar. */
  const take = (bytes: Buffer): Gathered | undefined => {
    const gathered = new Gathered(bytes)
    begun = none
    let at = 0
    while (at < bytes.length && state !== "trailers") {
      if (state === "data") {
        const to = Math.min(bytes.length, at + left)
        gathered.add(at, to)
        left -= to - at
        at = to
        if (left === 0) state = "data-end"
        continue
      }
      const feed = bytes.indexOf(10, at)
      if (feed < 0) break
      if (feed - at > limits.chunkLineBytes || feed === at || bytes[feed - 1] !== 13) return undefined
      if (state === "data-end") {
        if (feed !== at + 1) return undefined
        state = "size"
      } else {
        left = sizeIn(bytes, at, feed - 1)
        if (left < 0) return undefined
        state = left === 0 ? "trailers" : "data"
      }
      at = feed + 1
    }
    const rest = bytes.subarray(at)
    if (state === "trailers") source.unread(rest)
    else begun = rest
    return begun.length > limits.chunkLineBytes ? undefined : gathered
  }

  return {
    async next(idleMs) {
      for (;;) {
        if (state === "done") return end
        if (state === "trailers") {
          if (!(await skipTrailers(source, limits, idleMs))) return bad
          state = "done"
          continue
        }
        const chunk = await source.read(idleMs)
        if (typeof chunk === "string") return chunk === "timeout" && state === "data" ? tooSlow : bad
        const data = take(begun.length === 0 ? chunk : Buffer.concat([begun, chunk]))
        if (data === undefined) return bad
        const { bytes, pieces } = data
        if (bytes.length > 0) return { state: "bytes", bytes, cost: chunk.length + pieces * chunkCost }
      }
    },
  }
}

async function skipTrailers(source: ByteSource, limits: ProxyLimits, idleMs: number): Promise<boolean> {
  for (let left = limits.trailerBytes; left > 0; ) {
    const line = await readLine(source, left, idleMs)
    if (line === undefined) return false
    if (line === "") return true
    left -= line.length + 2
  }
  return false
}
