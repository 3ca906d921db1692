/**
 * The TCP connection beneath TLS as a stream, so that it can be seen how the one above it ended.
 *
 * Guarantees: each chunk is asked about before it goes on, either way. What comes is handed to TLS a few records at a
 * time, each portion in its turn: TLS works on all that it is given at once, and peers can make it work for nothing.
 * What TLS writes counts as written when it has left this process. A TLS connection whose peer said goodbye
 * (close_notify) is told from one that was cut beneath it, by a FIN or a reset: Node delivers both as an end, and a
 * response without a length would pass for whole.
 * Assumes: `watchEnd` is called before anything else listens to the stream.
 */
import type { Socket } from "node:net"
import { Duplex } from "node:stream"
import type { TLSSocket } from "node:tls"
import { guarded } from "../connection/boundary.ts"
import type { Turns } from "../connection/turns.ts"
import { createRecordCutter } from "./records.ts"
import { tellCut } from "../connection/whole-end.ts"

/** Counts bytes on their way; false: they must not go on. */
interface Meter {
  out(bytes: number): boolean
  in(bytes: number): boolean
}
export const unmetered: Meter = { out: () => true, in: () => true }

/** records in one portion, after how many bytes none is added, and what a record costs beside its bytes */
const portionRecords = 16
const portionBytes = 8_192
const recordCost = 1_024

export function carrierOf(socket: Socket, meter: Meter, turns: Turns): Duplex {
  const portionsOf = createRecordCutter(portionRecords, portionBytes)
  let passing = false
  /** told while the last of what came before it is being passed on */
  let ended = false
  const stream: Duplex = new Duplex({
    allowHalfOpen: true,
    // Whoever reads TLS above it may be behind; it is theirs to say when they are done.
    autoDestroy: false,
    read: () => void (passing || socket.resume()),
    write(chunk: Buffer, _encoding, done) {
      if (socket.destroyed) return done(new Error("closed"))
      if (!meter.out(chunk.length)) return done(new Error("budget"))
      socket.write(chunk, (error) => done(error ?? null))
    },
    final(done) {
      if (socket.destroyed) return done()
      socket.end(() => done())
    },
    destroy(error, done) {
      socket.destroy()
      done(error)
    },
  })
  const pass = async (chunk: Buffer): Promise<void> => {
    let wanted = true
    for (const { bytes, records } of portionsOf(chunk)) {
      await turns.next(records * recordCost + bytes.length)
      if (stream.destroyed) return
      wanted = stream.push(bytes)
    }
    passing = false
    if (ended) stream.push(null)
    else if (wanted) socket.resume()
  }
  const onData = (chunk: Buffer): void => {
    if (!meter.in(chunk.length)) return
    passing = true
    socket.pause()
    pass(chunk).catch(() => stream.destroy())
  }
  socket.on(
    "data",
    guarded(onData, () => stream.destroy()),
  )
  socket.on("end", () => {
    ended = true
    if (!passing) stream.push(null)
  })
  socket.on("close", () => {
    if (!socket.readableEnded) stream.destroy()
  })
  return stream
}

/** Notes whether TLS had come to its end when the connection beneath it did. */
export function watchEnd(carrier: Duplex, secured: () => TLSSocket): void {
  const look = (): void => {
    // Set as soon as a close_notify was read, long before `end` is told to a reader that has paused.
    const { ended } = (secured() as TLSSocket & { readonly _readableState: { readonly ended: boolean } })._readableState
    if (!ended) tellCut(secured())
  }
  // Told after the last byte was handed to TLS, and before TLS is told.
  carrier.once("end", look)
  carrier.once("close", () => !carrier.readableEnded && look())
}
