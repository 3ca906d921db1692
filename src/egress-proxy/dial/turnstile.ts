/**
 * At most `limit` at once, and of one client at most `ofOne`; the others wait until their deadline.
 *
 * Guarantees: each `enter` that answered true is matched by one `leave`; a waiter whose deadline expires leaves the
 * line. Clients that wait take turns, each client's own in the order they came, so that one that asks for much that
 * takes long keeps the room that is left for others, and not more.
 */
import type { Deadline } from "../connection/deadline.ts"

export interface Turnstile {
  enter(deadline: Deadline, client: string): boolean | Promise<boolean>
  leave(client: string): void
}

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
  const waitFor = (client: string, deadline: Deadline): Promise<boolean> =>
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
  return {
    enter(deadline, client) {
      if (deadline.expired) return false
      if (!hasRoom(client)) return waitFor(client, deadline)
      take(client)
      return true
    },
    leave(client) {
      inside -= 1
      if (count(client) > 1) each.set(client, count(client) - 1)
      else each.delete(client)
      admit()
    },
  }
}
