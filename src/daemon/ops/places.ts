/**
 * How much goes on at once: in all, for one tenant, for one user.
 *
 * Guarantees: what is beyond a limit is refused at once, as `overloaded` with a time to come back in; whoever has taken a
 * place gives it back once. Users of other tenants are others, whatever their names.
 */
import type { ServeLimits } from "../../host/config/serve-settings.ts"
import { refuse } from "../http/problem.ts"

interface PlaceLimits {
  readonly all: number
  readonly ofTenant: number
  readonly ofUser: number
}
interface Whose {
  readonly user: string
  readonly tenant: string
}

class Counts {
  readonly #of = new Map<string, number>()
  of(key: string): number {
    return this.#of.get(key) ?? 0
  }
  add(key: string, change: 1 | -1): void {
    const count = this.of(key) + change
    if (count > 0) this.#of.set(key, count)
    else this.#of.delete(key)
  }
}

export class Places {
  readonly #limits: () => PlaceLimits
  readonly #what: string
  readonly #again: string
  readonly #tenants = new Counts()
  readonly #users = new Counts()
  #count = 0
  /** `what` there is too much of, and after how many seconds to come again. */
  constructor(limits: () => PlaceLimits, what: string, again: number) {
    this.#limits = limits
    this.#what = what
    this.#again = String(again)
  }
  get count(): number {
    return this.#count
  }
  enter({ user, tenant }: Whose): Disposable {
    const { all, ofTenant, ofUser } = this.#limits()
    const one = JSON.stringify([tenant, user])
    const full =
      this.#count >= all
        ? `the daemon has as many ${this.#what} as it takes`
        : this.#tenants.of(tenant) >= ofTenant
          ? `this tenant has as many ${this.#what} as it may`
          : this.#users.of(one) >= ofUser
            ? `this user has as many ${this.#what} as one may`
            : undefined
    if (full !== undefined)
      throw refuse("overloaded", full, "try again when some have ended", { "retry-after": this.#again })
    this.#change(tenant, one, 1)
    let isHeld = true
    return {
      [Symbol.dispose]: () => {
        if (isHeld) this.#change(tenant, one, -1)
        isHeld = false
      },
    }
  }
  #change(tenant: string, one: string, change: 1 | -1): void {
    this.#count += change
    this.#tenants.add(tenant, change)
    this.#users.add(one, change)
  }
}

/** Limits are asked for each time: they may be changed while the daemon runs. */
export const callPlaces = (limits: () => ServeLimits): Places =>
  new Places(
    () => {
      const { calls, callsPerTenant, callsPerUser } = limits()
      return { all: calls, ofTenant: callsPerTenant, ofUser: callsPerUser }
    },
    "calls under way",
    1,
  )
export const streamPlaces = (limits: () => ServeLimits): Places =>
  new Places(
    () => {
      const { streams, streamsPerUser } = limits()
      return { all: streams, ofTenant: streams, ofUser: streamsPerUser }
    },
    "streams of events",
    5,
  )
