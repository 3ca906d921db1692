/**
 * A connection that stands already, as one stream that tells what comes.
 *
 * Guarantees: every byte passes the count, whatever its user does with listeners (a client that begins TLS takes them
 * off); whoever ends either ends both; it reads no faster than it is read.
 */
import { Duplex } from "node:stream"

export const countedStream = (connection: Duplex, count: (chunk: Buffer) => void): Duplex => {
  const stream = new Duplex({
    read: () => void connection.resume(),
    write: (chunk: Buffer, _encoding, done) => void connection.write(chunk, done),
    final: (done) => void connection.end(done),
    destroy: (error, done) => {
      connection.destroy()
      done(error)
    },
  })
  connection
    .on("data", (chunk: Buffer) => {
      count(chunk)
      if (!stream.destroyed && !stream.push(chunk)) connection.pause()
    })
    .once("end", () => stream.push(null))
    .once("error", (error: Error) => stream.destroy(error))
    .once("close", () => stream.destroy())
  connection.pause()
  return stream
}
