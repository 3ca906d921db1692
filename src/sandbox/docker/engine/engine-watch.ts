/**
 * Is the engine still there? Calls in flight are told when it is not.
 *
 * Guarantees: while a call is under way, an engine that dies (its event stream ends) or hangs (it does not answer a
 * ping in time) aborts the signal that the call holds, with the reason. An idle watch keeps no process alive.
 */
import type { Socket } from "node:net"
import type { Engine } from "./engine.ts"

export interface EngineWatch {
  /** Watch for the length of one call. */
  during(): { readonly lost: AbortSignal; end(): void }
  dispose(): void
}

const PING_EVERY_MS = 2_000
const PING_WITHIN_MS = 5_000

const socketOf = (stream: NodeJS.ReadableStream): Socket | undefined =>
  "socket" in stream ? (stream.socket as Socket | undefined) : undefined

export const watchEngine = (engine: Engine, onLost: () => void): EngineWatch => {
  let active = 0
  let lost = new AbortController()
  let events: { readonly stop: AbortController; socket?: Socket | undefined } | undefined
  let timer: NodeJS.Timeout | undefined
  const lose = (reason: string): void => {
    events?.stop.abort()
    events = undefined
    const old = lost
    lost = new AbortController()
    old.abort(reason)
    onLost()
  }
  const follow = async (): Promise<void> => {
    const own = { stop: new AbortController(), socket: undefined as Socket | undefined }
    events = own
    const opened = await engine.events(own.stop.signal)
    if (events !== own) return
    if (!opened.ok) {
      events = undefined
      if (active > 0) lose(opened.failure.message)
      return
    }
    own.socket = socketOf(opened.value)
    if (active === 0) own.socket?.unref()
    opened.value.on("data", () => undefined)
    opened.value.on("error", () => undefined)
    opened.value.on("close", () => {
      if (events === own) lose("its event stream ended")
    })
  }
  const tick = async (): Promise<void> => {
    if (events === undefined) void follow()
    const answer = await engine.ping(PING_WITHIN_MS)
    if (active === 0) return
    if (!answer.ok) lose(answer.failure.message)
    timer = setTimeout(() => void tick(), PING_EVERY_MS)
  }
  return {
    during() {
      active += 1
      if (active === 1) {
        events?.socket?.ref()
        if (events === undefined) void follow()
        timer = setTimeout(() => void tick(), PING_EVERY_MS)
      }
      let ended = false
      return {
        lost: lost.signal,
        end() {
          if (ended) return
          ended = true
          active -= 1
          if (active > 0) return
          clearTimeout(timer)
          events?.socket?.unref()
        },
      }
    },
    dispose() {
      clearTimeout(timer)
      const own = events
      events = undefined
      own?.stop.abort()
    },
  }
}
