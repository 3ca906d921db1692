/**
 * Pull bytes from a socket, one chunk at a time.
 *
 * Guarantees: never holds more than the socket hands over in one turn; a read always settles, with bytes, `end`, or
 * `timeout`; errors of the socket are an `end`. After `release` nothing listens and the unused bytes are handed back,
 * so that a relay can take over without losing or repeating a byte.
 */
import type { Duplex } from "node:stream"
import { timerMs } from "./deadline.ts"

export type Read = Buffer | "end" | "timeout"

export interface ByteSource {
  readonly socket: Duplex
  read(timeoutMs: number): Promise<Read>
  /** Puts bytes back in front. */
  unread(bytes: Buffer): void
  /** Settles a pending read with `end`; what comes later can still be read. */
  interrupt(): void
  /** Reads ahead by at most one chunk, so that a client that goes away is noticed while nobody reads. */
  watch(): void
  /** Stops listening; what was read and not used. */
  release(): Buffer
}

const empty = Buffer.alloc(0)

export const createByteSource = (socket: Duplex): ByteSource => new SocketSource(socket)

class SocketSource implements ByteSource {
  readonly socket: Duplex
  #held: Buffer[] = []
  #ended: boolean
  #waiting: ((read: Read) => void) | undefined
  #timer: NodeJS.Timeout | undefined

  readonly #onData = (chunk: Buffer): void => {
    if (this.#waiting !== undefined) return this.#settle(chunk)
    this.#held.push(chunk)
    this.socket.pause()
  }
  readonly #onEnd = (): void => {
    this.#ended = true
    this.#settle("end")
  }

  constructor(socket: Duplex) {
    this.socket = socket
    this.#ended = socket.destroyed || socket.readableEnded
    socket.on("data", this.#onData)
    socket.on("end", this.#onEnd)
    socket.on("close", this.#onEnd)
  }

  read(timeoutMs: number): Promise<Read> {
    const next = this.#held.shift()
    if (next !== undefined) return Promise.resolve(next)
    if (this.#ended) return Promise.resolve("end")
    if (this.#waiting !== undefined) throw new Error("two reads at once")
    return new Promise((resolve) => {
      this.#waiting = resolve
      this.#timer = setTimeout(() => this.#settle("timeout"), timerMs(timeoutMs))
      this.socket.resume()
    })
  }

  unread(bytes: Buffer): void {
    if (bytes.length > 0) this.#held.unshift(bytes)
  }

  interrupt(): void {
    this.#settle("end")
  }

  watch(): void {
    if (this.#held.length === 0 && !this.#ended) this.socket.resume()
  }

  release(): Buffer {
    this.socket.pause()
    this.socket.off("data", this.#onData).off("end", this.#onEnd).off("close", this.#onEnd)
    const held = this.#held
    this.#held = []
    return held.length <= 1 ? (held[0] ?? empty) : Buffer.concat(held)
  }

  #settle(read: Read): void {
    const resolve = this.#waiting
    if (resolve === undefined) return
    clearTimeout(this.#timer)
    this.#waiting = undefined
    resolve(read)
  }
}
