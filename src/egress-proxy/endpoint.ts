/**
 * One end of a passage, whatever carries it: a socket, a stream, or a line that has no stream.
 *
 * Guarantees: `abort` ends it at once, so that the other side sees a broken, not a finished, connection where the
 * protocol can say so.
 */
export interface Endpoint {
  readonly destroyed: boolean
  destroy(): unknown
  resetAndDestroy?(): unknown
  on(event: "close", listener: () => void): unknown
  off(event: "close", listener: () => void): unknown
}

export function abort(end: Endpoint): void {
  if (end.destroyed) return
  try {
    // Throws for what is no TCP socket, and by itself waits for unsent bytes; the second step does not.
    end.resetAndDestroy?.()
  } catch {
    // A Unix socket or a stream has no reset.
  }
  end.destroy()
}
