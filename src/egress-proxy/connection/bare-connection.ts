/**
 * One connection on a bare handle: bytes in, bytes out, both ends apart.
 *
 * Guarantees: what comes in goes to one user at a time, and a user that throws has broken its connection, nothing else; nothing is buffered here but what libuv could not write yet,
 * and that is told by `write`. Closed once, whatever ends it, and at once: the descriptor is gone when `close` is told.
 * A bare connection can become a socket of node:net for good; then it only passes on what it is asked.
 * Memory that is read into is the connection's own, and read into again when the user has seen it, unless it paused the connection.
 * Assumes: `handles` are there.
 */
import { Socket } from "node:net"
import { attempt } from "./boundary.ts"
import { type Endpoint, hasBrokenOff, written } from "./endpoint.ts"
import type { ReadMemory } from "./read-memory.ts"
import {
  allWritten,
  type Handles,
  handles as found,
  isUnconnected,
  socketOn,
  type StreamHandle,
  type WriteRequest,
  type Written,
  writtenBy,
} from "./handles.ts"

/** Whoever reads a bare connection. */
export interface BareUser {
  /** Where the connection reads into its own memory, the bytes are there until this returns, or, if paused, until resumed. */
  onBytes(bytes: Buffer): void
  /** The other side has said all it has to say. */
  onEnd(): void
  /** All that was handed to `write` has left this process. */
  onDrain(): void
}

const handles = found as Handles
/** Reads begin with a little memory and get more while they fill it. Beyond `freeBytes` it is taken from an allowance. */
const firstBytes = 2_048
const freeBytes = 16_384
const mostBytes = 262_144

/** A request that was done at once can be used for the next write, on whichever connection. */
let spare: WriteRequest | undefined

function onWritten(this: WriteRequest, status: number): void {
  const bare = this.writer as BareConnection
  this.bytes = undefined
  attempt(
    () => bare.wrote(status),
    () => bare.resetAndDestroy(),
  )
}

const nothing = (): void => {}
/** the part of a bare connection's memory that is from the allowance */
const taken = (size: number): number => (size > freeBytes ? size : 0)

export class BareConnection implements Endpoint {
  /** the other side has ended */
  ended = false
  readonly #handle: StreamHandle
  #user: BareUser | undefined
  #closed = false
  #socket: Socket | undefined
  #reading = false
  #writing = 0
  #whenWritten: "end" | "close" | undefined
  /** an end is on its way, and a reset would be refused */
  #ending = false
  /** an end went out, after which a connection that is no more is not a broken one */
  #saidAll = false
  #writes = 0
  #buffer: Buffer | undefined
  #memory: ReadMemory | undefined
  #onClose: (() => void)[] = []

  /** @param delays small writes may be held back by the kernel, as on a socket that was just made */
  constructor(handle: StreamHandle, delays: boolean) {
    this.#handle = handle
    this.#writes = delays ? 0 : 2
    // A function for each: a property on the handle, an object of Node's own, costs many times more.
    handle.onread = (bytes) => {
      try {
        return this.#read(bytes)
      } catch {
        this.#broken()
        return undefined
      }
    }
  }

  get destroyed(): boolean {
    return this.#socket?.destroyed ?? this.#closed
  }
  get descriptor(): number | undefined {
    const { fd } = this.#handle
    return this.#closed || fd === undefined || fd < 0 ? undefined : fd
  }
  /** something was handed to `write` and has not left this process */
  get draining(): boolean {
    return this.#writing > 0
  }
  /** The other side broke off, and nobody reads to notice. */
  hasBrokenOff(): boolean {
    if (this.#socket !== undefined) return hasBrokenOff(this.#socket)
    return !this.#reading && !this.#closed && !this.#saidAll && isUnconnected(this.#handle)
  }
  written(): Written {
    if (this.#socket !== undefined) return written(this.#socket)
    return this.#closed || this.#writing === 0 ? allWritten : writtenBy(this.#handle)
  }
  get local(): { readonly address?: string; readonly port?: number } {
    const name = {}
    this.#handle.getsockname?.(name)
    return name
  }

  get remote(): string | undefined {
    const name: { address?: string } = {}
    this.#handle.getpeername?.(name)
    return name.address
  }

  on(_event: "close", listener: () => void): void {
    this.#onClose.push(listener)
  }
  off(_event: "close", listener: () => void): void {
    const at = this.#onClose.indexOf(listener)
    if (at >= 0) this.#onClose.splice(at, 1)
  }

  use(user: BareUser | undefined): void {
    this.#user = user
  }

  resume(): void {
    if (this.#reading || this.ended || this.#closed) return
    this.#reading = true
    if (this.#handle.readStart() !== 0) this.resetAndDestroy()
  }
  pause(): void {
    if (!this.#reading || this.#closed) return
    this.#reading = false
    this.#handle.readStop()
  }

  /** From now on the same memory is read into again and again. A bare connection that does so stays one. */
  readIntoOwn(memory: ReadMemory): void {
    if (this.#closed || this.#buffer !== undefined) return
    this.#memory = memory
    this.#buffer = Buffer.allocUnsafe(firstBytes)
    this.#handle.useUserBuffer(this.#buffer)
  }

  /** False: not all of it could be written yet, the memory is needed until `onDrain`. */
  write(bytes: Buffer): boolean {
    if (this.#closed) return true
    this.#writes += 1
    // The first write on a new connection goes out at once in any case.
    if (this.#writes === 2) this.#handle.setNoDelay?.(true)
    const request = spare ?? handles.newWrite()
    spare = undefined
    request.oncomplete = onWritten
    const failed = this.#handle.writeBuffer(request, bytes)
    if (failed === 0 && handles.writeGoesOn()) {
      request.writer = this
      request.bytes = bytes
      this.#writing += 1
      return false
    }
    spare = request
    if (failed !== 0) this.resetAndDestroy()
    return true
  }

  /** The last word this way, once all that was handed to `write` has left; the other way goes on. */
  end(): void {
    if (this.#closed) return
    if (this.#writing > 0) {
      this.#whenWritten ??= "end"
      return
    }
    const request = handles.newShutdown()
    request.oncomplete = () => {
      this.#ending = false
    }
    this.#saidAll = true
    this.#ending = this.#handle.shutdown(request) === 0
  }

  /** Closes when all that was handed to `write` has left: nothing more is to be said either way. */
  finish(): void {
    if (this.#writing === 0) this.destroy()
    else this.#whenWritten = "close"
  }

  destroy(): void {
    if (this.#socket !== undefined) return void this.#socket.destroy()
    if (this.#closed) return
    this.#handle.close()
    this.#over()
  }

  resetAndDestroy(): void {
    if (this.#socket !== undefined) return void this.#socket.resetAndDestroy()
    if (this.#closed) return
    // While an end is on its way all has been said, and a reset would be refused and leave the handle open.
    if (this.#ending || this.#handle.reset === undefined) this.#handle.close()
    else this.#handle.reset()
    this.#over()
  }

  /** The same connection as a socket, paused. The connection is not read any more; whoever used it gets nothing. */
  toSocket(): Socket {
    if (this.#socket !== undefined) return this.#socket
    if (this.#buffer !== undefined) throw new Error("a bare connection that reads into its own memory stays one")
    if (this.#closed) {
      this.#socket = new Socket()
      return this.#socket.on("error", nothing).destroy()
    }
    this.pause()
    this.#user = undefined
    this.#socket = socketOn(this.#handle).on("error", nothing)
    this.#socket.on("close", () => this.#over())
    return this.#socket
  }

  #read(bytes: ArrayBuffer | undefined): Uint8Array | undefined {
    const size = handles.readSize()
    if (size > 0) return this.#received(size, bytes)
    if (size < 0) this.#readEnded(size)
    return undefined
  }
  #received(size: number, bytes: ArrayBuffer | undefined): Uint8Array | undefined {
    if (bytes !== undefined) {
      this.#user?.onBytes(Buffer.from(bytes, handles.readOffset(), size))
      return undefined
    }
    const into = this.#buffer as Buffer
    const filled = size === into.length
    this.#user?.onBytes(filled ? into : into.subarray(0, size))
    return filled && !this.#closed ? this.#grow(into.length) : undefined
  }
  /** Whoever reads it threw. */
  #broken(): void {
    attempt(
      () => this.resetAndDestroy(),
      () => this.#handle.close(),
    )
  }
  #grow(size: number): Buffer | undefined {
    const next = size < freeBytes ? freeBytes : Math.min(size * 4, mostBytes)
    if (next === size || (next > freeBytes && this.#memory?.take(next - taken(size)) !== true)) return undefined
    this.#buffer = Buffer.allocUnsafeSlow(next)
    return this.#buffer
  }
  #readEnded(error: number): void {
    if (this.#closed) return
    this.#reading = false
    if (error !== handles.endOfFile) return this.resetAndDestroy()
    this.ended = true
    this.#user?.onEnd()
  }
  /** Of a write's end alone. */
  wrote(status: number): void {
    this.#writing -= 1
    if (this.#closed || this.#socket !== undefined) return
    if (status !== 0) return this.resetAndDestroy()
    if (this.#writing > 0) return
    if (this.#whenWritten === "close") return this.destroy()
    this.#user?.onDrain()
    if (this.#whenWritten === "end") this.end()
  }

  #over(): void {
    if (this.#closed) return
    this.#closed = true
    this.#user = undefined
    this.#memory?.give(taken(this.#buffer?.length ?? 0))
    for (const listener of this.#onClose.splice(0)) attempt(listener, nothing)
  }
}
