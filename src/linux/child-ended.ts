/**
 * The kernel's word that a child of this process ended, for those who wait to reap it: no look in between, no guess.
 *
 * Guarantees: an end that comes after the asking is heard of; what is asked ends with the deadline in any case. Heard of
 * is that some child ended, not which: whoever waits looks, and asks again. Nothing here keeps the process alive alone.
 */
const waiting = new Set<() => void>()
let listens = false

const listen = (): void => {
  if (listens) return
  listens = true
  process.on("SIGCHLD", () => {
    for (const wake of [...waiting]) wake()
  })
}

/** Resolves when some child ended, or after `mostMs`. Ask before looking: what ends in between is heard of then. */
export const childEnded = (mostMs: number): Promise<void> => {
  listen()
  return new Promise((resolve) => {
    const done = (): void => {
      waiting.delete(done)
      clearTimeout(late)
      resolve()
    }
    const late = setTimeout(done, mostMs)
    waiting.add(done)
  })
}
