/**
 * At most `limit` at once; the others wait in line, first come first served, until their deadline.
 *
 * Guarantees: each `enter` that answered true is matched by one `leave`; a waiter whose deadline expires leaves the
 * line.
 */
import type { Deadline } from "./deadline.ts"

export interface Turnstile {
  enter(deadline: Deadline): boolean | Promise<boolean>
  leave(): void
}

export function createTurnstile(limit: number): Turnstile {
  let inside = 0
  const line: (() => void)[] = []
  return {
    enter(deadline) {
      if (deadline.expired) return false
      if (inside < limit) {
        inside += 1
        return true
      }
      return new Promise((resolve) => {
        const onExpired = () => {
          line.splice(line.indexOf(turn), 1)
          resolve(false)
        }
        const turn = () => {
          deadline.off(onExpired)
          resolve(true)
        }
        line.push(turn)
        deadline.onExpired(onExpired)
      })
    },
    leave() {
      const next = line.shift()
      if (next === undefined) inside -= 1
      else next()
    },
  }
}
