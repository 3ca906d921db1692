/**
 * Ctrl-C and its kin.
 *
 * Guarantees: the first SIGINT, SIGTERM or SIGHUP aborts the signal; a second one ends the process at once. Two that
 * arrive together (a terminal and a launcher both pass on one key press) count as one.
 */

const together = 200
const signals = { SIGHUP: 1, SIGINT: 2, SIGTERM: 15 } as const

interface Interrupt extends Disposable {
  readonly signal: AbortSignal
}

/** `hangUp`: what a SIGHUP is for instead, for programs that outlive their terminal. */
export const onInterrupt = (tell: () => void, hangUp?: () => void): Interrupt => {
  const controller = new AbortController()
  let firstAt = 0
  const take = (name: keyof typeof signals) => () => {
    if (firstAt === 0) {
      firstAt = Date.now()
      tell()
      controller.abort()
    } else if (Date.now() - firstAt > together) process.exit(128 + signals[name])
  }
  const names = Object.keys(signals) as (keyof typeof signals)[]
  const listeners = names.map(
    (name) => [name, name === "SIGHUP" && hangUp !== undefined ? hangUp : take(name)] as const,
  )
  for (const [name, listener] of listeners) process.on(name, listener)
  return {
    signal: controller.signal,
    [Symbol.dispose]: () => {
      for (const [name, listener] of listeners) process.off(name, listener)
    },
  }
}
