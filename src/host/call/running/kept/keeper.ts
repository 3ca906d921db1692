/**
 * The servers that are kept between calls, and the order of those who want them.
 *
 * Guarantees: calls of one driver, workspace and user have their server one after the other; nobody is handed a server that
 * is not theirs (`whose.ts`). One that is taken belongs to whoever took it, who puts it back or ends it. Those that wait
 * are bounded in number, in the memory that they may use, in how long nobody asks for them and in how old they get;
 * beyond that the one that waited longest ends. One that ends by itself is forgotten. With the host all of them end.
 */
import { createTurnstile } from "../../../../base/turnstile.ts"
import { hostLimits } from "../../../limits.ts"
import type { Whose } from "./whose.ts"

/** A program that waits for its next call. */
export interface Waiting extends AsyncDisposable {
  readonly whose: Whose
  /** what its processes may use */
  readonly memoryBytes: number
  /** when it is over, whatever ended it */
  readonly over: Promise<unknown>
}

interface KeeperLimits {
  readonly servers: number
  readonly memoryBytes: number
  readonly idleMs: number
  readonly ofOne: number
}

export interface Lane<T> extends Disposable {
  /** The server of this call, if one is kept. Those of its tuple that no call will want again are ended. */
  take(whose: Whose): T | undefined
  put(server: T): void
}

export interface Keeper<T> extends AsyncDisposable {
  /** Its turn for the tuple; `full`: too many wait for it already; undefined: the wait was ended. */
  lane(tuple: string, signal: AbortSignal): Promise<Lane<T> | "full" | undefined>
}

const isSame = (a: Whose, b: Whose): boolean =>
  a.tuple === b.tuple && a.origin === b.origin && a.shape === b.shape && a.given === b.given

/** Of the tuple, and of another manifest, program or secret than those that its calls have now. */
const isPast = (one: Whose, now: Whose): boolean =>
  one.tuple === now.tuple && (one.origin !== now.origin || (one.shape === now.shape && one.given !== now.given))

const hostsOwn: KeeperLimits = {
  servers: hostLimits.keptServers.value,
  memoryBytes: hostLimits.keptMemoryBytes.value,
  idleMs: hostLimits.keptIdleMs.value,
  ofOne: hostLimits.keptWaiting.value,
}

export const createKeeper = <T extends Waiting>(given: Partial<KeeperLimits> = {}): Keeper<T> => {
  const limits = { ...hostsOwn, ...given }
  const turns = createTurnstile(Number.MAX_SAFE_INTEGER, 1)
  const inLine = new Map<string, number>()
  /** the one that waited longest first */
  const kept = new Map<T, NodeJS.Timeout>()
  const ending = new Set<Promise<void>>()
  let closed = false

  const count = (tuple: string, by: 1 | -1): void => {
    const now = (inLine.get(tuple) ?? 0) + by
    if (now === 0) inLine.delete(tuple)
    else inLine.set(tuple, now)
  }
  const forget = (server: T): boolean => {
    clearTimeout(kept.get(server))
    return kept.delete(server)
  }
  const end = (server: T): void => {
    const over = Promise.resolve(server[Symbol.asyncDispose]())
      .catch(() => undefined)
      .finally(() => ending.delete(over))
    ending.add(over)
  }
  const drop = (server: T): void => {
    if (forget(server)) end(server)
  }
  const watched = new WeakSet<T>()
  const watch = (server: T): void => {
    if (watched.has(server)) return
    watched.add(server)
    const gone = (): void => drop(server)
    server.over.then(gone, gone)
  }
  const isTooMuch = (): boolean =>
    kept.size > limits.servers ||
    [...kept.keys()].reduce((sum, { memoryBytes }) => sum + memoryBytes, 0) > limits.memoryBytes

  const lane = (tuple: string): Lane<T> => {
    let open = true
    return {
      take(whose) {
        const past = [...kept.keys()].filter((one) => isPast(one.whose, whose))
        past.forEach(drop)
        const found = [...kept.keys()].find((one) => isSame(one.whose, whose))
        if (found !== undefined) forget(found)
        return found
      },
      put(server) {
        if (closed) return end(server)
        kept.set(server, setTimeout(() => drop(server), limits.idleMs).unref())
        watch(server)
        for (let [oldest] = kept.keys(); oldest !== undefined && isTooMuch(); [oldest] = kept.keys()) drop(oldest)
      },
      [Symbol.dispose]() {
        if (!open) return
        open = false
        turns.leave(tuple)
      },
    }
  }
  return {
    async lane(tuple, signal) {
      if ((inLine.get(tuple) ?? 0) >= limits.ofOne) return "full"
      count(tuple, 1)
      try {
        const until = {
          expired: signal.aborted,
          onExpired: (then: () => void) => signal.addEventListener("abort", then, { once: true }),
          off: (then: () => void) => signal.removeEventListener("abort", then),
        }
        return (await turns.enter(until, tuple)) ? lane(tuple) : undefined
      } finally {
        count(tuple, -1)
      }
    },
    async [Symbol.asyncDispose]() {
      closed = true
      ;[...kept.keys()].forEach(drop)
      await Promise.all(ending)
    },
  }
}
