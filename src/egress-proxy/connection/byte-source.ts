/**
 * Pull bytes from a client connection, one chunk at a time.
 *
 * Guarantees: never holds more than the connection hands over in one turn; a read always settles, with bytes, `end`, or
 * `timeout`; errors are an `end`. After `release` nothing listens and the unused bytes are handed back, so that a relay
 * can take over without losing or repeating a byte. A source is one end of a passage whatever carries it: a socket, or
 * a bare connection, which becomes a socket for good, and without losing a byte, when somebody asks for one.
 */
import type { Duplex } from "node:stream"
import type { Socket } from "node:net"
import { attempt } from "./boundary.ts"
import { Wait } from "./deadline.ts"
import { abort, type Endpoint, hasBrokenOff, written } from "./endpoint.ts"
import type { Written } from "./handles.ts"
import type { BareConnection, BareUser } from "./bare-connection.ts"

type Read = Buffer | "end" | "timeout"

interface LocalAddress {
  readonly address?: string | undefined
  readonly port?: number | undefined
}

export interface ByteSource extends Endpoint {
  /** the connection as a stream */
  readonly socket: Duplex
  /** the connection as a bare connection, unless it is a socket */
  readonly bare: BareConnection | undefined
  /** the address that the client dialled; empty on a Unix socket */
  readonly local: LocalAddress
  /** the address that the client comes from; the same for all on a Unix socket */
  readonly who: string
  /** for how long the client has owed bytes that somebody waits for; undefined where it is not its turn */
  readonly waitsFor: number | undefined
  read(timeoutMs: number): Promise<Read>
  /** The same for callers that cannot wait for the end of a turn: `then` may be called at once. */
  next(timeoutMs: number, then: (read: Read) => void): void
  /** Puts bytes back in front. */
  unread(bytes: Buffer): void
  /** Settles a pending read with `end`; what comes later can still be read. */
  interrupt(): void
  /** Reads ahead by at most one chunk, so that a client that goes away is noticed while nobody reads. */
  watch(): void
  /** Stops listening; what was read and not used. */
  release(): Buffer
  /** A short answer to the client, right away. */
  write(bytes: Buffer): void
  destroy(): void
  resetAndDestroy(): void
}

const empty = Buffer.alloc(0)
const nothing = (): void => {}

export const sourceOfSocket = (socket: Duplex): ByteSource => new ClientSource(socket, undefined)
export const sourceOfBare = (bare: BareConnection): ByteSource => new ClientSource(undefined, bare)

class ClientSource extends Wait implements ByteSource, BareUser {
  #bare: BareConnection | undefined
  #socket: Duplex | undefined
  #held: Buffer[] = []
  #ended = false
  #released = false
  #waiting: ((read: Read) => void) | undefined
  #onClose: (() => void)[] = []
  #who: string | undefined
  #waitingSince = 0

  constructor(socket: Duplex | undefined, bare: BareConnection | undefined) {
    super()
    if (bare !== undefined) {
      this.#bare = bare
      bare.use(this)
      bare.on("close", this.#closed)
      bare.resume()
    }
    if (socket !== undefined) {
      socket.on("error", () => {})
      this.#socket = socket
      this.#ended = socket.destroyed || socket.readableEnded
      socket.on("close", this.#closed)
      this.#listen(socket)
    }
  }

  get socket(): Duplex {
    if (this.#socket !== undefined) return this.#socket
    const socket = (this.#bare as BareConnection).toSocket()
    this.#socket = socket
    this.#bare = undefined
    if (!this.#released) this.#listen(socket)
    if (!this.#released && (this.#waiting !== undefined || this.#held.length === 0)) socket.resume()
    return socket
  }
  get bare(): BareConnection | undefined {
    return this.#bare
  }
  get local(): LocalAddress {
    if (this.#bare !== undefined) return this.#bare.local
    const { localAddress: address, localPort: port } = this.#socket as Partial<Socket>
    return { address, port }
  }
  get who(): string {
    this.#who ??= (this.#bare === undefined ? (this.#socket as Partial<Socket>).remoteAddress : this.#bare.remote) ?? ""
    return this.#who
  }
  get waitsFor(): number | undefined {
    return this.#waiting === undefined ? undefined : performance.now() - this.#waitingSince
  }
  get destroyed(): boolean {
    return this.#bare?.destroyed ?? this.#socket?.destroyed ?? true
  }

  on(_event: "close", listener: () => void): void {
    this.#onClose.push(listener)
  }
  off(_event: "close", listener: () => void): void {
    const at = this.#onClose.indexOf(listener)
    if (at >= 0) this.#onClose.splice(at, 1)
  }

  read(timeoutMs: number): Promise<Read> {
    return new Promise((resolve) => this.next(timeoutMs, resolve))
  }

  next(timeoutMs: number, then: (read: Read) => void): void {
    const held = this.#held.shift()
    if (held !== undefined) return then(held)
    if (this.#ended) return then("end")
    if (this.#waiting !== undefined) throw new Error("two reads at once")
    this.#waiting = then
    this.#waitingSince = performance.now()
    this.wait(timeoutMs)
    this.#resume()
  }

  unread(bytes: Buffer): void {
    if (bytes.length > 0) this.#held.unshift(bytes)
  }

  interrupt(): void {
    this.#settle("end")
  }

  watch(): void {
    if (this.#held.length === 0 && !this.#ended) this.#resume()
  }

  release(): Buffer {
    this.#released = true
    this.#bare?.pause()
    this.#bare?.use(undefined)
    this.#socket?.pause()
    this.#socket?.off("data", this.#take).off("end", this.#end)
    const held = this.#held
    this.#held = []
    return held.length <= 1 ? (held[0] ?? empty) : Buffer.concat(held)
  }

  write(bytes: Buffer): void {
    if (this.#bare === undefined) this.#socket?.write(bytes)
    else this.#bare.write(bytes)
  }

  hasBrokenOff(): boolean {
    const end = this.#bare ?? this.#socket
    return end !== undefined && hasBrokenOff(end)
  }
  written(): Written {
    return written((this.#bare ?? this.#socket) as Endpoint)
  }

  destroy(): void {
    if (this.#bare === undefined) this.#socket?.destroy()
    else this.#bare.destroy()
  }
  resetAndDestroy(): void {
    const end = this.#bare ?? this.#socket
    if (end !== undefined) abort(end)
  }

  onBytes(bytes: Buffer): void {
    this.#take(bytes)
  }
  onEnd(): void {
    this.#end()
  }
  onDrain(): void {}
  protected override onDue(): void {
    this.#settle("timeout")
  }

  readonly #take = (chunk: Buffer): void => {
    if (this.#waiting !== undefined) return this.#settle(chunk)
    this.#held.push(chunk)
    this.#bare?.pause()
    this.#socket?.pause()
  }
  readonly #end = (): void => {
    this.#ended = true
    this.#settle("end")
  }
  readonly #closed = (): void => {
    this.#end()
    for (const listener of this.#onClose.splice(0)) attempt(listener, nothing)
  }

  #listen(socket: Duplex): void {
    socket.on("data", this.#take)
    socket.on("end", this.#end)
  }
  #resume(): void {
    this.#bare?.resume()
    this.#socket?.resume()
  }
  #settle(read: Read): void {
    const resolve = this.#waiting
    if (resolve === undefined) return
    this.giveUp()
    this.#waiting = undefined
    attempt(
      () => resolve(read),
      () => this.resetAndDestroy(),
    )
  }
}
