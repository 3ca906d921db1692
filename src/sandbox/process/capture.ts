/**
 * One output stream, kept up to a cap and counted beyond it.
 *
 * Guarantees: memory is bounded by the cap; what comes after it is drained and counted, so that the writer is
 * never blocked for ever; a flood far beyond the cap calls `onFlood` once.
 */
import type { Readable } from "node:stream"
import { finished } from "node:stream/promises"
import type { Captured } from "../backend.ts"

/** A tool that prints this many times its cap is not verbose, it is flooding. */
const floodFactor = 64
const floodFloorBytes = 64 * 1024 * 1024

export interface Capture {
  readonly ended: Promise<void>
  result(): Captured
}

export const capture = (stream: Readable, cap: number, onFlood: () => void): Capture => {
  const chunks: Buffer[] = []
  let kept = 0
  let total = 0
  let flooded = false
  const floodAt = Math.max(cap * floodFactor, floodFloorBytes)
  stream.on("data", (chunk: Buffer) => {
    total += chunk.length
    if (kept < cap) {
      const part = chunk.length > cap - kept ? chunk.subarray(0, cap - kept) : chunk
      chunks.push(part)
      kept += part.length
    }
    if (total > floodAt && !flooded) {
      flooded = true
      onFlood()
    }
  })
  const ended = finished(stream, { writable: false }).catch(() => undefined)
  return { ended, result: () => ({ bytes: Buffer.concat(chunks), truncated: total > kept, total }) }
}

/** The end of a stream that somebody else reads. */
export const endOf = (stream: Readable, cap: number): Capture => {
  let kept: Buffer = Buffer.alloc(0)
  let total = 0
  stream.on("data", (chunk: Buffer) => {
    total += chunk.length
    const joined = chunk.length >= cap ? chunk : Buffer.concat([kept, chunk])
    kept = Buffer.from(joined.subarray(Math.max(0, joined.length - cap)))
  })
  const ended = finished(stream, { writable: false }).catch(() => undefined)
  // What came before is gone with whoever read it: what is left is the end, whole.
  return { ended, result: () => ({ bytes: kept, truncated: false, total }) }
}
