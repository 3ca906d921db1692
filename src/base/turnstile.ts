/**
 * The one gate for what may go on at once: at most `limit`, and of one client at most `ofOne`; the others wait, until
 * their deadline where they have one.
 *
 * Guarantees: each `enter` that answered true is matched by one `leave`; a waiter whose deadline expires leaves the
 * line. Clients that wait take turns, each client's own in the order they came, so that one that asks for much that
 * takes long keeps the room that is left for others, and not more.
 */
interface Expiring {
  readonly expired: boolean
  onExpired(callback: () => void): void
  off(callback: () => void): void
}
/** Done without a place; one is waited for again before it answers. */
export type Aside = <T>(other: () => Promise<T>) => Promise<T>
interface Turnstile {
  enter(deadline: Expiring, client: string): boolean | Promise<boolean>
  leave(client: string): void
  /**
   * Do the work when its turn has come, however long that takes. Work that is cancelled while it waits is done at once,
   * beside the others: it hears the same signal, and has only to say so. What the work does `aside` takes no place.
   */
  pass<T>(work: (aside: Aside) => Promise<T>, cancel?: AbortSignal, client?: string): Promise<T>
}

const never: Expiring = { expired: false, onExpired: () => undefined, off: () => undefined }

export const untilAborted = (signal: AbortSignal): Expiring => ({
  expired: signal.aborted,
  onExpired: (callback) => signal.addEventListener("abort", callback, { once: true }),
  off: (callback) => signal.removeEventListener("abort", callback),
})

export function createTurnstile(limit: number, ofOne = limit): Turnstile {
  let inside = 0
  const each = new Map<string, number>()
  /** in the order of their turns */
  const lines = new Map<string, (() => void)[]>()
  const count = (client: string): number => each.get(client) ?? 0
  const hasRoom = (client: string): boolean => inside < limit && count(client) < ofOne
  const take = (client: string): void => {
    inside += 1
    each.set(client, count(client) + 1)
  }
  const admit = (): void => {
    for (const [client, line] of lines) {
      if (!hasRoom(client)) continue
      const turn = line.shift()
      lines.delete(client)
      if (line.length > 0) lines.set(client, line)
      if (turn === undefined) continue
      take(client)
      return turn()
    }
  }
  const waitFor = (client: string, deadline: Expiring): Promise<boolean> =>
    new Promise((resolve) => {
      const line = lines.get(client) ?? []
      const onExpired = () => {
        const at = line.indexOf(turn)
        if (at >= 0) line.splice(at, 1)
        resolve(false)
      }
      const turn = () => {
        deadline.off(onExpired)
        resolve(true)
      }
      line.push(turn)
      lines.set(client, line)
      deadline.onExpired(onExpired)
    })
  const enter: Turnstile["enter"] = (deadline, client) => {
    if (deadline.expired) return false
    if (!hasRoom(client)) return waitFor(client, deadline)
    take(client)
    return true
  }
  const leave: Turnstile["leave"] = (client) => {
    inside -= 1
    if (count(client) > 1) each.set(client, count(client) - 1)
    else each.delete(client)
    admit()
  }
  return {
    enter,
    leave,
    async pass(work, cancel, client = "") {
      const deadline = cancel === undefined ? never : untilAborted(cancel)
      let entered = await enter(deadline, client)
      const aside: Aside = async (other) => {
        if (!entered) return other()
        entered = false
        leave(client)
        try {
          return await other()
        } finally {
          entered = await enter(deadline, client)
        }
      }
      try {
        return await work(aside)
      } finally {
        if (entered) leave(client)
      }
    },
  }
}
