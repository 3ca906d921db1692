/**
 * What takes longer than a request: logins and installs, each with a name to ask for it by.
 *
 * Guarantees: a bounded number of them, all together and of one user; each ends by itself, when it is cancelled, when its
 * time is over, or with the daemon. Its name cannot be guessed, and is of use to whoever began it alone. One that ended is
 * told of for a while.
 */
import { randomBytes } from "node:crypto"
import { type Caller, mayActForUser, tenantOf } from "../host/access/caller.ts"
import { refuse } from "./http/problem.ts"
import { daemonLimits } from "./limits.ts"

interface Job<T> {
  readonly id: string
  readonly began: string
  readonly signal: AbortSignal
  readonly ended?: string
  readonly result?: T
}
interface Kept<T> {
  id: string
  kind: string
  whose: string
  began: string
  cancel: AbortController
  signal: AbortSignal
  facts: unknown
  ended?: string
  endedAt?: number
  result?: T
}

const whoseOf = (caller: Caller): string => JSON.stringify([tenantOf(caller), caller.user])

export class Jobs {
  readonly #all = new Map<string, Kept<unknown>>()

  #forget(): void {
    const ended = [...this.#all.values()].filter(({ endedAt }) => endedAt !== undefined)
    const before = performance.now() - daemonLimits.jobKeepMs.value
    for (const [index, { id, endedAt = 0 }] of ended.entries())
      if (endedAt < before || ended.length - index > daemonLimits.jobsTold.value) this.#all.delete(id)
  }

  /** Answers at once. `facts` is told with it for as long as it is kept. */
  begin<T, F>(
    kind: string,
    caller: Caller,
    mostMs: number,
    facts: F,
    work: (signal: AbortSignal, facts: F) => Promise<T>,
  ): Job<T> {
    this.#forget()
    const whose = whoseOf(caller)
    const running = [...this.#all.values()].filter(({ endedAt }) => endedAt === undefined)
    if (
      running.length >= daemonLimits.jobs.value ||
      running.filter((job) => job.whose === whose).length >= daemonLimits.jobsOfOne.value
    )
      throw refuse("overloaded", "too many logins and installs are under way", "wait for one to end, or cancel it", {
        "retry-after": "5",
      })
    const cancel = new AbortController()
    const job: Kept<T> = {
      id: randomBytes(18).toString("base64url"),
      kind,
      whose,
      began: new Date().toISOString(),
      cancel,
      signal: AbortSignal.any([cancel.signal, AbortSignal.timeout(mostMs)]),
      facts,
    }
    this.#all.set(job.id, job)
    void work(job.signal, facts)
      .then(
        (result) => void (job.result = result),
        () => undefined,
      )
      .then(() => {
        job.ended = new Date().toISOString()
        job.endedAt = performance.now()
      })
    return job
  }

  /** Undefined for what is not there, of another kind, or somebody else's. */
  find<T, F>(kind: string, id: string, caller: Caller): (Job<T> & { readonly facts: F; cancel(): void }) | undefined {
    this.#forget()
    const job = this.#all.get(id)
    if (job?.kind !== kind || job.whose !== whoseOf(caller) || !mayActForUser(caller)) return undefined
    const { cancel, ...told } = job
    return { ...(told as Kept<T>), facts: job.facts as F, cancel: () => cancel.abort() }
  }

  cancelAll(): void {
    for (const { cancel } of this.#all.values()) cancel.abort()
  }
}
