/**
 * Whose turn it is: what the connections of one proxy do with bytes is done in small portions, and after each portion
 * everybody else on the event loop, other proxies' connections included, has a turn.
 *
 * Guarantees: in one turn of the loop at most `cost` is granted to one proxy, or one portion that costs more by itself;
 * first come, first served. So what one sandbox sends delays another by one portion, not by all that it sent. A proxy
 * that shares its process is held to its pace: between portions the loop is left to the others.
 * Assumes: a portion is bounded by whoever asks: one read of a socket.
 * Does not: bound what is done before the first portion of a connection is asked for.
 */
import type { Readable } from "node:stream"
import { type Place, unhurried } from "../pace.ts"

export interface Turns {
  /** Resolves when it is this portion's turn, in a later turn of the loop. */
  next(cost: number): Promise<void>
  readonly waiting: number
}

export function createTurns(mostCost: number, place: Place = unhurried): Turns {
  const line: { readonly cost: number; readonly begin: () => void }[] = []
  let due = false
  const grant = (): void => {
    due = false
    let spent = 0
    for (let first = line[0]; first !== undefined; first = line[0]) {
      if ((spent > 0 && spent + first.cost > mostCost) || place.wait() > 0) break
      line.shift()
      spent += Math.max(1, first.cost)
      place.spend(first.cost)
      first.begin()
    }
    if (line.length > 0) schedule()
    else place.rest()
  }
  const schedule = (): void => {
    if (due) return
    due = true
    const ms = place.wait()
    // In one phase of the loop only, so that none of its turns has two grants.
    if (ms > 0) setTimeout(() => setImmediate(grant), Math.ceil(ms))
    else setImmediate(grant)
  }
  return {
    get waiting() {
      return line.length
    },
    next: (cost) =>
      new Promise((begin) => {
        line.push({ cost, begin })
        schedule()
      }),
  }
}

/** high-water mark of sockets whose messages are taken apart by Node: little is read ahead of its turn */
export const aheadBytes = 4_096

/** what handling a piece of a message costs beside its bytes, counted in bytes */
const pieceCost = 128
/** what is put together at most: what comes beyond stays in the stream, up to its high-water mark */
const mostPieces = 1_024
const mostBytes = 65_536

/**
 * What a stream says, put together from the pieces that came while others had their turn: a body that is cut into
 * single bytes is handled as often as one that is not. A stream of messages counts what it holds in bytes, not in
 * pieces, so those that others fill want a low mark (`aheadBytes`). Throws what the stream fails with, and when it is cut off.
 */
export async function* inTurns(stream: Readable, turns: Turns): AsyncGenerator<Buffer, void> {
  let pieces: Buffer[] = []
  let [bytes, count] = [0, 0]
  let over: "end" | Error | undefined
  let wake: (() => void) | undefined
  const end = (how: "end" | Error): void => {
    over ??= how
    wake?.()
  }
  const onData = (piece: Buffer): void => {
    pieces.push(piece)
    bytes += piece.length
    count += 1
    if (bytes >= mostBytes || count >= mostPieces) stream.pause()
    wake?.()
  }
  const onEnd = (): void => end("end")
  const onError = (error: Error): void => end(error)
  const onClose = (): void => end(stream.readableEnded ? "end" : new Error("broken off"))
  stream.on("data", onData).on("end", onEnd).on("error", onError).on("close", onClose)
  if (stream.destroyed) onClose()
  try {
    for (;;) {
      if (count === 0) {
        if (over === "end") return
        if (over !== undefined) throw over
        await new Promise<void>((resolve) => {
          wake = resolve
        })
        wake = undefined
        continue
      }
      stream.pause()
      await turns.next(bytes + count * pieceCost)
      const whole = pieces.length === 1 ? (pieces[0] as Buffer) : Buffer.concat(pieces)
      pieces = []
      bytes = 0
      count = 0
      yield whole
      stream.resume()
    }
  } finally {
    stream.off("data", onData).off("end", onEnd).off("close", onClose)
    // Whoever stopped listening in the middle is not interested in how it ends, and nobody else may be.
    stream.off("error", onError).on("error", () => {})
  }
}
