/**
 * Bytes both ways between a client and a vetted upstream, until both have ended.
 *
 * Guarantees: a half-close is passed on, and the other direction goes on; a reset or an error on one side resets the
 * other; nothing is buffered beyond the sockets' own high-water marks; every byte is counted before it goes on.
 * Resolves once both sockets are closed, the passage finished.
 */
import { Socket } from "node:net"
import type { Duplex } from "node:stream"
import { guarded } from "../connection/boundary.ts"
import type { ByteSource } from "../connection/byte-source.ts"
import { abort } from "../connection/endpoint.ts"
import { BareConnection } from "../connection/bare-connection.ts"
import type { ReadMemory } from "../connection/read-memory.ts"
import { relayBare } from "./relay-bare.ts"
import type { Passage } from "./passages.ts"

interface RelayOptions<Client = Duplex, Upstream = Duplex> {
  readonly client: Client
  readonly upstream: Upstream
  readonly passage: Passage
  /** bytes of the client that were read before the relay began */
  readonly early: Buffer
  /** looks at the client's bytes before they go on; true: they must not, and the tunnel is over */
  readonly refuses?: ((bytes: Buffer) => boolean) | undefined
}

interface TunnelRelay extends RelayOptions<ByteSource, Duplex | BareConnection> {
  readonly memory: ReadMemory
  /** told when both are closed and the passage is finished */
  readonly over: () => void
}

/** Two bare connections are relayed as bare connections; else both sides are sockets. */
export function relayTunnel(options: TunnelRelay): void {
  const { client, upstream, passage, early, refuses, memory, over } = options
  if (upstream instanceof BareConnection && client.bare !== undefined) {
    const outward = outwardOf(passage, refuses)
    return relayBare({ client: client.bare, upstream, passage, early, outward, memory, over })
  }
  const socket = upstream instanceof BareConnection ? upstream.toSocket() : upstream
  void relay({ client: client.socket, upstream: socket, passage, early, refuses }).then(over)
}

/** Counts what a client sends, unless it must not go on. */
const outwardOf =
  (passage: Passage, refuses: RelayOptions["refuses"]) =>
  (chunk: Buffer): boolean => {
    if (refuses?.(chunk) !== true) return passage.out(chunk.length)
    passage.cut()
    return false
  }

export function relay(options: RelayOptions): Promise<void> {
  const { client, upstream, passage, early } = options
  const outward = outwardOf(passage, options.refuses)
  return new Promise((resolve) => {
    let open = 2
    const closed = () => {
      open -= 1
      if (open > 0) return
      passage.finish()
      resolve()
    }
    const first = early.length > 0 && outward(early) ? early : undefined
    if (first !== undefined) upstream.write(first)
    pass(client, upstream, outward, closed)
    pass(upstream, client, (chunk) => passage.in(chunk.length), closed)
  })
}

/** On the socket itself: it was closed because there was nothing left to say. */
const wasDone = Symbol("wasDone")
type Side = Duplex & { [wasDone]?: boolean }

const isPlain = (side: Duplex): boolean => side.constructor === Socket

function pass(from: Side, to: Side, count: (chunk: Buffer) => boolean, closed: () => void): void {
  const onDrain = () => from.resume()
  const onClose = () => {
    to.off("drain", onDrain)
    // Closed before its end was seen, or before all that was meant for it was delivered: the other side must not look
    // finished.
    if (from.errored !== null || !from.readableEnded || !(from.writableFinished || from[wasDone] === true)) abort(to)
    closed()
  }
  const onEnd = () => {
    // The last word either way, and all of it handed over: for a plain socket, closing says the same as ending first.
    if (!to.readableEnded || to.writableLength > 0 || !isPlain(to)) return void to.end()
    to[wasDone] = true
    to.destroy()
  }
  if (from.destroyed) return queueMicrotask(onClose)
  const onChunk = (chunk: Buffer): void => {
    if (count(chunk) && !to.write(chunk)) from.pause()
  }
  const broken = (): void => {
    abort(from)
    abort(to)
  }
  from.on("data", guarded(onChunk, broken))
  to.on("drain", onDrain)
  from.on("end", guarded(onEnd, broken))
  from.on("close", guarded(onClose, broken))
  if (from.readableEnded) onEnd()
  from.resume()
}
