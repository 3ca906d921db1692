/** A stream as node:http and its agents take a socket: what they ask of one beside its bytes is there, and does nothing. */
import type { Duplex } from "node:stream"

export const asSocket = <T extends Duplex>(stream: T): T => {
  const same = (): T => stream
  stream.on("error", () => undefined)
  return Object.assign(stream, { setTimeout: same, setKeepAlive: same, setNoDelay: same, ref: same, unref: same })
}
