/**
 * One reader of a call's events, over server-sent events.
 *
 * Guarantees: a reader that is slow costs no more than what its connection holds: it is told the next events when it has
 * taken the last, from the tape, and one that takes nothing is left. It can come back with the number of the last event that
 * it has (`Last-Event-ID`). The stream ends with the call.
 */
import type { ServerResponse } from "node:http"
import { daemonLimits } from "../limits.ts"
import type { Tape, ToldEvent } from "./tape.ts"

const AT_ONCE = 64

const block = ({ seq, type, data }: ToldEvent): string => `id: ${seq}\nevent: ${type}\ndata: ${data}\n\n`

/** Resolves when the stream is over, whoever ended it. */
export const tellEvents = (tape: Tape, response: ServerResponse, after: number | undefined): Promise<void> =>
  new Promise((resolve) => {
    // Who left while it was asked who they are will not leave again.
    if (response.destroyed || response.socket?.destroyed !== false) return resolve()
    let next = after === undefined ? 0 : after + 1
    let lastTaken = performance.now()
    response.writeHead(200, {
      "content-type": "text/event-stream; charset=utf-8",
      "cache-control": "no-store",
      "x-accel-buffering": "no",
    })
    response.flushHeaders()
    const isFull = (): boolean => response.writableLength >= daemonLimits.streamBytes.value
    const tell = (): void => {
      while (!response.destroyed && !response.writableEnded && !isFull()) {
        const { missed, events } = tape.from(next, AT_ONCE)
        if (missed > 0) {
          response.write(`event: missed\ndata: {"events":${missed}}\n\n`)
          next += missed
        }
        if (events.length === 0) {
          if (tape.hasEnded) response.end()
          return
        }
        for (const event of events) {
          if (isFull()) return
          response.write(block(event))
          next = event.seq + 1
        }
      }
    }
    response.on("drain", () => {
      lastTaken = performance.now()
      tell()
    })
    const beat = setInterval(() => {
      if (response.writableLength === 0) {
        lastTaken = performance.now()
        response.write(": here\n\n")
      } else if (performance.now() - lastTaken > daemonLimits.streamStallMs.value) response.destroy()
    }, daemonLimits.heartbeatMs.value)
    const listening = tape.listen(tell)
    response.on("close", () => {
      clearInterval(beat)
      listening[Symbol.dispose]()
      resolve()
    })
    response.on("error", () => response.destroy())
    tell()
  })
