/**
 * What requests bring along, and the daemon keeps in memory until they were answered, or their calls ended.
 *
 * Guarantees: bounded, of one user and all together; what is beyond is refused as `overloaded` before it is read. A body that
 * does not say how long it is counts as it comes.
 */
import { Transform } from "node:stream"
import { daemonLimits } from "../limits.ts"
import { refuse } from "./problem.ts"

export interface BodyPlace extends Disposable {
  /** Throws where there is no room. */
  grow(bytes: number): void
}

export class Bodies {
  #used = 0
  readonly #ofUser = new Map<string, number>()
  get used(): number {
    return this.#used
  }
  #change(user: string, bytes: number): void {
    this.#used += bytes
    const own = (this.#ofUser.get(user) ?? 0) + bytes
    if (own > 0) this.#ofUser.set(user, own)
    else this.#ofUser.delete(user)
  }
  enter({ user, tenant }: { readonly user: string; readonly tenant: string }): BodyPlace {
    const whose = JSON.stringify([tenant, user])
    let held = 0
    return {
      grow: (bytes) => {
        const isOver =
          this.#used + bytes > daemonLimits.bodiesBytes.value ||
          (this.#ofUser.get(whose) ?? 0) + bytes > daemonLimits.bodiesOfOneBytes.value
        if (isOver)
          throw refuse("overloaded", "requests that are under way have brought as much as they may", "try again soon", {
            "retry-after": "1",
          })
        held += bytes
        this.#change(whose, bytes)
      },
      [Symbol.dispose]: () => {
        this.#change(whose, -held)
        held = 0
      },
    }
  }
}

/** What comes through is counted. */
export const counted = (place: BodyPlace): Transform =>
  new Transform({
    transform(piece: Buffer, _encoding, done) {
      try {
        place.grow(piece.length)
        done(null, piece)
      } catch (error) {
        done(error as Error)
      }
    },
  })
