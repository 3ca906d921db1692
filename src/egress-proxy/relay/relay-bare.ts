/**
 * Bytes both ways between two bare connections, until both have ended.
 *
 * Guarantees: as `relay` for sockets: a half-close is passed on and the other direction goes on; a bare connection that breaks
 * resets the other; every byte is counted before it goes on; a side that does not take bytes stops the other from
 * being read. `over` is told once, when both are closed and the passage is finished.
 */
import type { Passage } from "./passages.ts"
import type { BareConnection, BareUser } from "../connection/bare-connection.ts"
import type { ReadMemory } from "../connection/read-memory.ts"

interface BareRelay {
  readonly client: BareConnection
  readonly upstream: BareConnection
  readonly passage: Passage
  /** bytes of the client that were read before */
  readonly early: Buffer
  /** Counts what the client says; false: it must not go on, and the passage has been cut. */
  readonly outward: (bytes: Buffer) => boolean
  readonly memory: ReadMemory
  readonly over: () => void
}

/** One direction: what `from` says, `to` hears. */
class Way implements BareUser {
  readonly #from: BareConnection
  readonly #to: BareConnection
  readonly #passes: (bytes: Buffer) => boolean
  readonly #finish: () => void

  constructor(from: BareConnection, to: BareConnection, passes: (bytes: Buffer) => boolean, finish: () => void) {
    this.#from = from
    this.#to = to
    this.#passes = passes
    this.#finish = finish
  }

  onBytes(bytes: Buffer): void {
    if (this.#passes(bytes) && !this.#to.write(bytes)) this.#from.pause()
  }
  onEnd(): void {
    if (this.#to.ended) this.#finish()
    else this.#to.end()
  }
  /** `from` took what the other way brought. */
  onDrain(): void {
    this.#to.resume()
  }
}

export function relayBare(relay: BareRelay): void {
  const { client, upstream, passage, early } = relay
  let finishing = false
  let open = 2
  const finish = (): void => {
    finishing = true
    client.finish()
    upstream.finish()
  }
  const closed = (): void => {
    open -= 1
    const last = open === 0
    if (!finishing) {
      // Closed before all was said both ways: the other side must not look finished.
      finishing = true
      client.resetAndDestroy()
      upstream.resetAndDestroy()
    }
    if (!last) return
    passage.finish()
    relay.over()
  }
  const out = new Way(client, upstream, relay.outward, finish)
  client.use(out)
  upstream.use(new Way(upstream, client, (bytes) => passage.in(bytes.length), finish))
  if (client.destroyed) closed()
  else client.on("close", closed)
  if (upstream.destroyed) closed()
  else upstream.on("close", closed)
  client.readIntoOwn(relay.memory)
  upstream.readIntoOwn(relay.memory)
  if (early.length > 0) out.onBytes(early)
  if (client.ended) out.onEnd()
  else if (!upstream.draining) client.resume()
  upstream.resume()
}
