/**
 * Upstream sockets for tunnels that are relayed unseen: they read into a buffer of their own, again and again.
 *
 * Guarantees: a buffer is read into again only when everything that was written from it has left this process; else
 * the next read gets a new one. Buffers begin small and grow while reads fill them, so an idle tunnel holds little.
 * Nothing is read before `deliverTo`.
 * Does not: emit `data`; such a socket is of no use to an HTTP or TLS client.
 */
import { connect } from "node:net"
import type { Duplex } from "node:stream"
import type { Dial } from "./types.ts"

const firstBytes = 2_048
const mostBytes = 262_144

/** Takes bytes on; answers whether the memory is still needed after it returned. */
export type Deliver = (bytes: Buffer) => boolean

/** On the socket itself: an entry in a WeakMap for each would cost the collector more than the rest of the dial. */
const taker = Symbol("taker")
type BulkSocket = Duplex & { [taker]?: (deliver: Deliver) => void }

export const bulkDial: Dial = (host, port) => {
  let deliver: Deliver | undefined
  let buffer = Buffer.allocUnsafe(firstBytes)
  let lent = false
  let filled = false
  const onread = {
    buffer(): Uint8Array {
      if (filled && buffer.length < mostBytes) buffer = Buffer.allocUnsafeSlow(buffer.length * 4)
      else if (lent) buffer = Buffer.allocUnsafeSlow(buffer.length)
      lent = false
      filled = false
      return buffer
    },
    callback(size: number, into: Uint8Array): boolean {
      filled = size === into.length
      lent = deliver?.(Buffer.from(into.buffer, into.byteOffset, size)) ?? false
      return true
    },
  }
  const socket = connect({ host, port, allowHalfOpen: true, noDelay: true, onread })
  socket.pause()
  const bulk: BulkSocket = socket
  bulk[taker] = (to) => {
    deliver = to
  }
  return socket
}

/** Hands what a bulk socket reads to `deliver`; false when it is no such socket. Reading begins with `resume`. */
export function deliverTo(socket: BulkSocket, deliver: Deliver): boolean {
  socket[taker]?.(deliver)
  return isBulk(socket)
}

export const isBulk = (socket: BulkSocket): boolean => socket[taker] !== undefined
