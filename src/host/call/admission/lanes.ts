/**
 * The order of calls that wait for a workspace instead of failing on each other's commits: one after the other on each,
 * users in turn, each one's own in the order they came.
 *
 * Guarantees: the turn is taken before anything runs, so that what a call sees is what it changes; whoever waits leaves its
 * place among the calls that run to others, and the line when it is cancelled or its time is over. Two names of one folder
 * are one workspace. Does not: hold back calls that do not wait, other hosts or people; `perform` runs a call again that
 * meets their changes, where that is harmless.
 */
import { createTurnstile, untilAborted } from "../../../base/turnstile.ts"
import type { FolderIdentity } from "../../../sandbox/folder.ts"

type Turnstile = ReturnType<typeof createTurnstile>

interface Lane {
  readonly gate: Turnstile
  /** who has it or waits for it */
  count: number
}

export class Lanes {
  readonly #of = new Map<string, Lane>()
  /** undefined: the wait was ended. */
  async enter({ dev, ino }: FolderIdentity, client: string, signal: AbortSignal): Promise<Disposable | undefined> {
    const key = `${dev}:${ino}`
    const lane = this.#of.get(key) ?? { gate: createTurnstile(1), count: 0 }
    this.#of.set(key, lane)
    lane.count += 1
    const left = (): void => {
      lane.count -= 1
      if (lane.count === 0) this.#of.delete(key)
    }
    if (!(await lane.gate.enter(untilAborted(signal), client))) {
      left()
      return undefined
    }
    return {
      [Symbol.dispose]: () => {
        lane.gate.leave(client)
        left()
      },
    }
  }
}
