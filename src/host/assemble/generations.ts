/**
 * Generations of manifests and config: the one that new calls are made in, and those whose calls are still under way.
 *
 * Guarantees: whoever enters keeps what it entered until it leaves, whatever is taken in meanwhile; what is a generation's
 * own ends when it was replaced and its last user left. Nothing is taken in but whole.
 */
interface Generation<T> {
  readonly value: T
  count: number
  retired: boolean
}

export class Generations<T extends AsyncDisposable> implements AsyncDisposable {
  readonly #ending = new Set<Promise<void>>()
  #now: Generation<T>
  #number = 1
  constructor(first: T) {
    this.#now = { value: first, count: 0, retired: false }
  }
  get now(): T {
    return this.#now.value
  }
  get number(): number {
    return this.#number
  }
  async within<R>(work: (value: T) => Promise<R>): Promise<R> {
    const entered = this.#now
    entered.count += 1
    try {
      return await work(entered.value)
    } finally {
      entered.count -= 1
      this.#endIfLeft(entered)
    }
  }
  replace(value: T): void {
    const last = this.#now
    this.#now = { value, count: 0, retired: false }
    last.retired = true
    this.#endIfLeft(last)
    this.#number += 1
  }
  #endIfLeft({ value, count, retired }: Generation<T>): void {
    if (!retired || count > 0) return
    const end = async (): Promise<void> => {
      try {
        await value[Symbol.asyncDispose]()
      } catch {
        // It is over for those who used it; the host's end is not held up by it.
      }
    }
    const ending: Promise<void> = end().finally(() => this.#ending.delete(ending))
    this.#ending.add(ending)
  }
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#now.value[Symbol.asyncDispose]()
    await Promise.all(this.#ending)
  }
}

/** What is there now, for those who live longer than a generation: each part as it is when it is asked for. */
export const latest = <T extends object>(now: () => T): T =>
  Object.create(
    null,
    Object.fromEntries(Object.keys(now()).map((key) => [key, { enumerable: true, get: () => now()[key as keyof T] }])),
  ) as T
