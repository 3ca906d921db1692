/**
 * The frames that a shim and the host exchange: four bytes of length, big end first, then that much JSON in UTF-8.
 *
 * Guarantees: total over any bytes: what comes out is plain JSON objects that carry the call's nonce, or one fault, after
 * which nothing comes any more. Memory is bounded by one frame. Whether what a frame says is true is not known here.
 */
import type { JsonObject, JsonValue } from "../../../manifest/types.ts"
import { isObject } from "../../invoke/schema-path.ts"
import { RUNNER } from "./limits.ts"

const HEAD = 4
const LEAST_ROOM = 65_536

export const encodeFrame = (body: JsonObject): Uint8Array => {
  const text = Buffer.from(JSON.stringify(body), "utf8")
  const frame = Buffer.allocUnsafe(HEAD + text.length)
  frame.writeUInt32BE(text.length, 0)
  text.copy(frame, HEAD)
  return frame
}

interface FrameFault {
  readonly kind: "too-large" | "unreadable" | "stray"
  readonly message: string
}

/** Is it nested no deeper than the limit? Iterative, so that depth cannot exhaust the stack. */
export const isShallow = (value: JsonValue, most: number = RUNNER.depth): boolean => {
  const open: { value: JsonValue; depth: number }[] = [{ value, depth: 0 }]
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const { value: at, depth } = next
    if (depth > most) return false
    if (typeof at === "object" && at !== null)
      for (const inner of Object.values(at) as JsonValue[]) open.push({ value: inner, depth: depth + 1 })
  }
  return true
}

const decoder = new TextDecoder("utf-8", { fatal: true })

export class FrameReader {
  readonly #nonce: string
  /** bytes that no frame was made of yet: those from `#at` to `#end` */
  #buffer: Buffer = Buffer.alloc(0)
  #at = 0
  #end = 0
  #wanted: number | undefined
  #fault: FrameFault | undefined
  constructor(nonce: string) {
    this.#nonce = nonce
  }

  get fault(): FrameFault | undefined {
    return this.#fault
  }
  /** Is a frame begun and not finished? */
  get isWithin(): boolean {
    return this.#end > this.#at || this.#wanted !== undefined
  }

  /** The frames that these bytes complete. */
  push(bytes: Uint8Array): readonly JsonObject[] {
    if (this.#fault !== undefined) return []
    this.#keep(bytes)
    const frames: JsonObject[] = []
    for (;;) {
      if (this.#wanted === undefined) {
        const head = this.#take(HEAD)
        if (head === undefined) return frames
        this.#wanted = head.readUInt32BE(0)
        if (this.#wanted > RUNNER.frameBytes) {
          this.#stop(
            "too-large",
            `it announced a frame of ${this.#wanted} bytes, over the limit of ${RUNNER.frameBytes}`,
          )
          return frames
        }
      }
      const body = this.#take(this.#wanted)
      if (body === undefined) return frames
      this.#wanted = undefined
      const frame = this.#read(body)
      if (frame === undefined) return frames
      frames.push(frame)
    }
  }

  /** One growing buffer: however small the pieces are that a frame comes in, they cost what they hold. */
  #keep(bytes: Uint8Array): void {
    const held = this.#end - this.#at
    if (this.#end + bytes.length > this.#buffer.length) {
      const room = Math.max(held + bytes.length, 2 * held, LEAST_ROOM)
      const larger = room > this.#buffer.length ? Buffer.allocUnsafe(room) : this.#buffer
      this.#buffer.copy(larger, 0, this.#at, this.#end)
      this.#buffer = larger
      this.#at = 0
      this.#end = held
    }
    this.#buffer.set(bytes, this.#end)
    this.#end += bytes.length
  }
  #take(length: number): Buffer | undefined {
    if (this.#end - this.#at < length) return undefined
    const taken = this.#buffer.subarray(this.#at, this.#at + length)
    this.#at += length
    return taken
  }
  #read(body: Buffer): JsonObject | undefined {
    let value: JsonValue
    try {
      value = JSON.parse(decoder.decode(body)) as JsonValue
    } catch {
      return this.#stop("unreadable", "it sent a frame that is not JSON")
    }
    if (!isObject(value)) return this.#stop("unreadable", "it sent a frame that is not an object")
    if (value["nonce"] !== this.#nonce) return this.#stop("stray", "it sent a frame that is not of this call")
    if (!isShallow(value)) return this.#stop("unreadable", `it sent a value nested deeper than ${RUNNER.depth} levels`)
    return value
  }
  #stop(kind: FrameFault["kind"], message: string): undefined {
    this.#fault = { kind, message }
    this.#buffer = Buffer.alloc(0)
    this.#at = this.#end = 0
    return undefined
  }
}
