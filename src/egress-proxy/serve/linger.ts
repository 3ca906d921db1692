/**
 * A last word to a client that may still be sending.
 *
 * Guarantees: the answer is written and the write side ended; then input is read and dropped, up to a byte and a
 * time cap, so that unread bytes do not reset the connection before the client has read the answer; then it is over.
 * What is dropped waits for its turn like what is not.
 */
import type { ByteSource } from "../connection/byte-source.ts"
import type { Gate } from "../dial/gate.ts"

export type Lingering = Pick<Gate, "limits" | "turns">

export async function linger(source: ByteSource, answer: Buffer, { limits, turns }: Lingering): Promise<void> {
  const { socket } = source
  socket.end(answer)
  const deadline = performance.now() + limits.lingerMs
  for (let left = limits.lingerBytes; left > 0; ) {
    const wait = deadline - performance.now()
    const chunk = wait > 0 ? await source.read(wait) : "timeout"
    if (typeof chunk === "string") break
    left -= chunk.length
    await turns.next(Math.max(chunk.length, limits.requestCost))
  }
  socket.destroy()
}
