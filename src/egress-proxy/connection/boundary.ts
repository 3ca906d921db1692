/**
 * Where bytes of a sandbox, an upstream or a client enter: handlers that the platform calls.
 *
 * Guarantees: what nobody foresaw in a handler ends the connection that it came by, never the process: an exception
 * that leaves an event handler, a timer or a callback of a handle would. `onThrow` must not throw itself; where it does
 * all the same, there is nothing left to end.
 */
export function attempt(work: () => void, onThrow: () => unknown): void {
  try {
    work()
  } catch {
    try {
      onThrow()
    } catch {
      // What was to be ended is past ending.
    }
  }
}

export const guarded =
  <Words extends readonly unknown[]>(handler: (...words: Words) => void, onThrow: () => unknown) =>
  (...words: Words): void =>
    attempt(() => handler(...words), onThrow)
