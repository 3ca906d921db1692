/**
 * One end of a passage, whatever carries it: a socket, a stream, or a bare connection that has no stream.
 *
 * Guarantees: `abort` ends it at once, so that the other side sees a broken, not a finished, connection where the
 * protocol can say so. Both questions below cost a system call at most; of a stream that knows nothing of a kernel's
 * connection the answers are no and nothing.
 */
import { Socket } from "node:net"
import { allWritten, handleOf, isUnconnected, type Written, writtenBy } from "./handles.ts"

export interface Endpoint {
  readonly destroyed: boolean
  /** the address that it comes from, where that is known */
  readonly who?: string
  readonly writableEnded?: boolean
  /** For ends that are no sockets themselves; see `descriptorOf`, `hasBrokenOff` and `written`. */
  readonly descriptor?: number | undefined
  hasBrokenOff?(): boolean
  written?(): Written
  destroy(): unknown
  resetAndDestroy?(): unknown
  on(event: "close", listener: () => void): unknown
  off(event: "close", listener: () => void): unknown
}

const beneathTls = new WeakMap<object, { readonly writableEnded: boolean }>()

/** From now on TLS writes to this connection, and ends it. */
export const carriesTls = (end: object, tls: { readonly writableEnded: boolean }): void => void beneathTls.set(end, tls)

export function abort(end: Endpoint): void {
  if (end.destroyed) return
  // A connection that is just being shut down cannot be reset: Node would forget it and leave it open for good.
  if ((beneathTls.get(end) ?? end).writableEnded !== true) {
    try {
      // Throws for what is no TCP socket, and by itself waits for unsent bytes; the second step does not.
      end.resetAndDestroy?.()
    } catch {
      // A Unix socket or a stream has no reset.
    }
  }
  end.destroy()
}

/**
 * Did the other side break off while nobody reads? Whoever is paused by back-pressure is not told, and keeps what the
 * kernel holds for the connection. Only of an end that was not ended from here can that be said.
 */
export function hasBrokenOff(end: Endpoint): boolean {
  if (end.destroyed) return false
  if (end.hasBrokenOff !== undefined) return end.hasBrokenOff()
  if (!(end instanceof Socket) || end.connecting || !(end.isPaused() || end.readableEnded)) return false
  if (end.writableEnded && end.writableLength === 0) return false
  const handle = handleOf(end)
  return handle !== undefined && isUnconnected(handle)
}

/** The number that the kernel knows this end by, where it is a connection of the kernel's. */
export function descriptorOf(end: Endpoint): number | undefined {
  if (end.descriptor !== undefined) return end.descriptor
  const fd = end instanceof Socket ? handleOf(end)?.fd : undefined
  return fd === undefined || fd < 0 ? undefined : fd
}

/** How much this end has taken of what it was given. */
export function written(end: Endpoint): Written {
  if (end.written !== undefined) return end.written()
  if (!(end instanceof Socket) || end.destroyed) return allWritten
  // One that is paused may be what TLS stands on, which writes past it.
  if (end.writableLength === 0 && !end.isPaused()) return allWritten
  const handle = handleOf(end)
  return handle === undefined ? allWritten : writtenBy(handle)
}
