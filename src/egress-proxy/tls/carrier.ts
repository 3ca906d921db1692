/**
 * The TCP connection beneath TLS as a stream, so that it can be seen how the one above it ended.
 *
 * Guarantees: each chunk is asked about before it goes on, either way. A TLS connection whose peer said goodbye
 * (close_notify) is told from one that was cut beneath it, by a FIN or a reset: Node delivers both as an end, and a
 * response without a length would pass for whole.
 * Assumes: `watchEnd` is called before anything else listens to the stream.
 */
import type { Socket } from "node:net"
import { Duplex } from "node:stream"
import type { TLSSocket } from "node:tls"
import { guarded } from "../boundary.ts"

/** Counts bytes on their way; false: they must not go on. */
export interface Meter {
  out(bytes: number): boolean
  in(bytes: number): boolean
}
const unmetered: Meter = { out: () => true, in: () => true }

export function carrierOf(socket: Socket, meter: Meter = unmetered): Duplex {
  const stream: Duplex = new Duplex({
    allowHalfOpen: true,
    // Whoever reads TLS above it may be behind; it is theirs to say when they are done.
    autoDestroy: false,
    read: () => void socket.resume(),
    write(chunk: Buffer, _encoding, done) {
      if (socket.destroyed) return done(new Error("closed"))
      if (!meter.out(chunk.length)) return done(new Error("budget"))
      if (socket.write(chunk)) return done()
      const settled = (): void => {
        socket.off("drain", settled).off("close", settled)
        done(socket.destroyed ? new Error("closed") : null)
      }
      socket.on("drain", settled).on("close", settled)
    },
    final(done) {
      socket.end()
      done()
    },
    destroy(error, done) {
      socket.destroy()
      done(error)
    },
  })
  const onData = (chunk: Buffer): void => {
    if (meter.in(chunk.length) && !stream.push(chunk)) socket.pause()
  }
  socket.on(
    "data",
    guarded(onData, () => stream.destroy()),
  )
  socket.on("end", () => stream.push(null))
  socket.on("close", () => {
    if (!socket.readableEnded) stream.destroy()
  })
  return stream
}

const cut = new WeakSet<Duplex>()

/** Notes whether TLS had come to its end when the connection beneath it did. */
export function watchEnd(carrier: Duplex, secured: () => TLSSocket): void {
  const look = (): void => {
    // Set as soon as a close_notify was read, long before `end` is told to a reader that has paused.
    const { ended } = (secured() as TLSSocket & { readonly _readableState: { readonly ended: boolean } })._readableState
    if (!ended) cut.add(secured())
  }
  // Told after the last byte was handed to TLS, and before TLS is told.
  carrier.once("end", look)
  carrier.once("close", () => !carrier.readableEnded && look())
}

/** Did this connection, TCP or TLS, end without its peer's word that it was the end? Over TCP a FIN is that word. */
export const isBrokenOff = (socket: Duplex): boolean => cut.has(socket) || socket.errored !== null
