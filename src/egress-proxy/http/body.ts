/**
 * A request body as plain pieces, whatever its framing.
 *
 * Guarantees: exactly the declared length, or a chunked body by the strict grammar (hex size, optional extension
 * that is dropped, CRLF), read in bounded pieces; trailers are bounded and dropped; bytes after the body stay in the
 * source. The pieces are re-framed by the writer, so no framing byte of the client reaches the upstream.
 */
import type { ByteSource } from "../byte-source.ts"
import type { ProxyLimits } from "../limits.ts"
import type { BodyLength } from "./framing.ts"

export type BodyPiece =
  | { readonly state: "bytes"; readonly bytes: Buffer }
  | { readonly state: "end" }
  | { readonly state: "bad"; readonly code: "bad_chunk" | "bad_framing" | "head_timeout" }

export interface BodyReader {
  next(idleMs: number): Promise<BodyPiece>
}

const end: BodyPiece = { state: "end" }
const bad: BodyPiece = { state: "bad", code: "bad_chunk" }
const tooShort: BodyPiece = { state: "bad", code: "bad_framing" }

export function createBodyReader(source: ByteSource, length: BodyLength, limits: ProxyLimits): BodyReader {
  if (length.kind === "none") return { next: async () => end }
  return length.kind === "bytes" ? fixed(source, length.length) : chunked(source, limits)
}

/** At most `left` bytes of what comes next. */
async function take(source: ByteSource, left: number, idleMs: number): Promise<BodyPiece> {
  const chunk = await source.read(idleMs)
  if (chunk === "timeout") return { state: "bad", code: "head_timeout" }
  if (chunk === "end") return tooShort
  source.unread(chunk.subarray(Math.min(left, chunk.length)))
  return { state: "bytes", bytes: chunk.subarray(0, left) }
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

const sizeLine = /^([0-9A-Fa-f]{1,13})(?:[ \t]*;[\t\u0020-\u007e]*)?$/

function chunked(source: ByteSource, limits: ProxyLimits): BodyReader {
  let left = 0
  let state: "size" | "data" | "data-end" | "done" = "size"
  return {
    async next(idleMs) {
      for (;;) {
        if (state === "done") return end
        if (state === "data") {
          const piece = await take(source, left, idleMs)
          if (piece.state !== "bytes") return piece === tooShort ? bad : piece
          left -= piece.bytes.length
          if (left === 0) state = "data-end"
          return piece
        }
        const line = await readLine(source, limits.chunkLineBytes, idleMs)
        if (line === undefined) return bad
        if (state === "data-end") {
          if (line !== "") return bad
          state = "size"
          continue
        }
        const size = sizeLine.exec(line)?.[1]
        if (size === undefined) return bad
        left = Number.parseInt(size, 16)
        state = "data"
        if (left > 0) continue
        if (!(await skipTrailers(source, limits, idleMs))) return bad
        state = "done"
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
