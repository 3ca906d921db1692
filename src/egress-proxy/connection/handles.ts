/**
 * Node's own TCP and pipe handles, without the streams that node:net puts on them.
 *
 * Guarantees: the one file that knows what is no public API of Node: `process.binding`, a server's `_handle`, the
 * `handle` option of a socket, the state of one for datagrams. All of it is looked for once, and tried; where a part is missing or of another shape,
 * `handles` is undefined and the proxy stands on node:net alone, with the same verdicts and more work: beside it a
 * connection takes two thirds of the processor's time here, and a gigabyte half (`npm run bench -- egress` shows both).
 */
import type { Socket as DatagramSocket } from "node:dgram"
import { type Server, Socket } from "node:net"

/** A connection of the kernel's, as libuv has it. Methods answer 0, or a negative error number. */
export interface StreamHandle {
  onread: OnRead
  readStart(): number
  readStop(): number
  writeBuffer(request: WriteRequest, bytes: Uint8Array): number
  shutdown(request: ShutdownRequest): number
  close(): void
  /** From now on reads go into this memory, which the caller keeps alive. */
  useUserBuffer(buffer: Uint8Array): void
  /** TCP only, as are those that follow. */
  reset?(): number
  setNoDelay?(on: boolean): number
  getsockname?(into: { address?: string; port?: number }): number
  getpeername?(into: { address?: string; port?: number }): number
  readonly fd?: number
  /** bytes handed over so far, and how many of them have not left this process */
  readonly bytesWritten?: number
  readonly writeQueueSize?: number
}
/** Called with the handle as `this`; an answer is the memory for the next read. */
type OnRead = (this: StreamHandle, bytes?: ArrayBuffer) => Uint8Array | undefined

interface TcpHandle extends StreamHandle {
  connect(request: ConnectRequest, address: string, port: number): number
  connect6(request: ConnectRequest, address: string, port: number): number
}
/** What libuv is doing; it calls `oncomplete` with the request as `this`, unless it was done at once. */
export interface WriteRequest {
  oncomplete?: (this: WriteRequest, status: number) => void
  writer?: object | undefined
  /** kept until they are written */
  bytes?: Uint8Array | undefined
}
interface ShutdownRequest {
  oncomplete?: () => void
}
interface ConnectRequest {
  oncomplete?: (status: number) => void
}
interface ListeningHandle extends StreamHandle {
  onconnection: (this: ListeningHandle, status: number, client?: StreamHandle) => void
}

export interface Handles {
  newTcp(): TcpHandle
  newConnect(): ConnectRequest
  newWrite(): WriteRequest
  newShutdown(): ShutdownRequest
  /** bytes of the last read, or its error */
  readSize(): number
  /** where in the memory handed over the last read begins */
  readOffset(): number
  /** did the last write leave something to be written later? */
  writeGoesOn(): boolean
  readonly endOfFile: number
}

interface TcpBinding {
  readonly TCP: new (kind: number) => TcpHandle
  readonly TCPConnectWrap: new () => ConnectRequest
  readonly constants: { readonly SOCKET: number }
}
interface StreamBinding {
  readonly WriteWrap: new () => WriteRequest
  readonly ShutdownWrap: new () => ShutdownRequest
  readonly streamBaseState: Int32Array
  readonly kReadBytesOrError: number
  readonly kArrayBufferOffset: number
  readonly kLastWriteWasAsync: number
}

const methods = ["readStart", "readStop", "writeBuffer", "shutdown", "close", "useUserBuffer"] as const

function findHandles(): Handles | undefined {
  try {
    const { binding } = process as unknown as { binding: (name: string) => unknown }
    const { TCP, TCPConnectWrap, constants } = binding("tcp_wrap") as TcpBinding
    const stream = binding("stream_wrap") as StreamBinding
    const { streamBaseState: state, kReadBytesOrError, kArrayBufferOffset, kLastWriteWasAsync } = stream
    const { UV_EOF: endOfFile } = binding("uv") as { readonly UV_EOF: number }
    const probe = new TCP(constants.SOCKET)
    const whole = methods.every((name) => typeof probe[name] === "function")
    probe.close()
    const indexes = [kReadBytesOrError, kArrayBufferOffset, kLastWriteWasAsync]
    if (!whole || !(endOfFile < 0) || !indexes.every((index) => Number.isInteger(state[index]))) return undefined
    void [new TCPConnectWrap(), new stream.WriteWrap(), new stream.ShutdownWrap()]
    return {
      newTcp: () => new TCP(constants.SOCKET),
      newConnect: () => new TCPConnectWrap(),
      newWrite: () => new stream.WriteWrap(),
      newShutdown: () => new stream.ShutdownWrap(),
      readSize: () => state[kReadBytesOrError] ?? 0,
      readOffset: () => state[kArrayBufferOffset] ?? 0,
      writeGoesOn: () => state[kLastWriteWasAsync] !== 0,
      endOfFile,
    }
  } catch {
    return undefined
  }
}

export const handles: Handles | undefined = findHandles()

/** The handle of a server that listens in this process, if it is one of those above. */
export function listeningHandle(server: Server): ListeningHandle | undefined {
  const { _handle: handle } = server as unknown as { _handle?: Partial<ListeningHandle> | null }
  const known =
    typeof handle?.onconnection === "function" && methods.every((name) => typeof handle[name] === "function")
  return known ? (handle as ListeningHandle) : undefined
}

/** Reading datagrams, which node:dgram does for as long as a socket is bound: unread ones are the kernel's to drop. */
interface Receiving {
  pause(): void
  resume(): void
}
interface DatagramState {
  readonly handle?: { recvStop?(): number; recvStart?(): number } | null
}

export function receivingOf(socket: DatagramSocket): Receiving | undefined {
  const key = Object.getOwnPropertySymbols(socket).find(({ description }) => description === "state symbol")
  const state = key === undefined ? undefined : (socket as unknown as Record<symbol, DatagramState | undefined>)[key]
  const { handle } = state ?? {}
  if (typeof handle?.recvStop !== "function" || typeof handle.recvStart !== "function") return undefined
  // A socket that was closed meanwhile has no handle any more.
  return { pause: () => void state?.handle?.recvStop?.(), resume: () => void state?.handle?.recvStart?.() }
}

/** The handle beneath a socket, if it is one of those above. */
export function handleOf(socket: Socket): StreamHandle | undefined {
  const { _handle: handle } = socket as unknown as { _handle?: Partial<StreamHandle> | null }
  return typeof handle?.readStart === "function" ? (handle as StreamHandle) : undefined
}

/**
 * Is there no connection any more? Of one that was never ended from here it says that the other side broke off; a
 * normal end leaves it connected until both have ended. Unix sockets do not tell.
 */
export const isUnconnected = (handle: StreamHandle): boolean =>
  handle.getpeername !== undefined && handle.getpeername({}) !== 0

/** Bytes handed over that have left this process, and those that have not. */
export function writtenBy({ bytesWritten, writeQueueSize }: StreamHandle): Written {
  const unwritten = writeQueueSize ?? 0
  return { unwritten, left: (bytesWritten ?? 0) - unwritten }
}
export const allWritten: Written = { unwritten: 0, left: 0 }
export interface Written {
  readonly unwritten: number
  readonly left: number
}

/** A socket of node:net on this handle, which is the socket's from now on. It does not read until it is resumed. */
export const socketOn = (handle: StreamHandle): Socket =>
  new Socket({ handle, allowHalfOpen: true, pauseOnCreate: true } as object)
