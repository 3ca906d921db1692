/**
 * Upstream connections between two requests of one client connection.
 *
 * Guarantees: a connection is kept for the client connection that it was made for, for its authority and under the
 * policy that allowed it, and for nobody else; it stays at the address that was vetted. One that says anything, ends or
 * breaks while it is kept, or waits for too long, is closed. Bounded in number; closed with the client's connection.
 */
import type { Socket } from "node:net"
import type { Authority } from "../policy/authority.ts"

/** A connection between two requests. */
export interface Kept {
  readonly upstream: Socket
  readonly address: string
  readonly generation: number
}

export interface KeptUpstreams {
  /** The one for this authority, which is then the caller's. */
  take(authority: Authority, generation: number): Kept | undefined
  keep(authority: Authority, kept: Kept): void
  close(): void
}

interface Waiting extends Kept {
  readonly stop: () => void
}

export function createKeptUpstreams(most: number, waitMs: number): KeptUpstreams {
  const waiting = new Map<string, Waiting>()
  const forget = (key: string): Waiting | undefined => {
    const found = waiting.get(key)
    waiting.delete(key)
    found?.stop()
    return found
  }
  return {
    take({ text }, generation) {
      const found = forget(text)
      if (found === undefined) return undefined
      const { upstream } = found
      if (found.generation === generation && !upstream.destroyed && upstream.writable && !upstream.readableEnded)
        return found
      upstream.destroy()
      return undefined
    },
    keep({ text }, kept) {
      forget(text)?.upstream.destroy()
      const [oldest] = waiting.keys()
      if (oldest !== undefined && waiting.size >= most) forget(oldest)?.upstream.destroy()
      const { upstream } = kept
      const drop = (): void => {
        if (waiting.get(text)?.upstream === upstream) forget(text)
        upstream.destroy()
      }
      const timer = setTimeout(drop, waitMs).unref()
      const stop = (): void => {
        clearTimeout(timer)
        upstream.off("data", drop).off("end", drop).off("close", drop)
      }
      waiting.set(text, { ...kept, stop })
      upstream.on("data", drop).on("end", drop).on("close", drop)
    },
    close() {
      for (const key of [...waiting.keys()]) forget(key)?.upstream.destroy()
    },
  }
}
