/**
 * Sandboxes that wait for calls, by shape: as many as the calls of late would have used, within a budget.
 *
 * Guarantees: one is given out once and only for the shape and view of the root that it was made for; one that died while
 * it waited, or could not be made, fails no call: the call's own is made then, and that one speaks for the machine. Making
 * them is nobody's wait: never more than so many at once, and begun when a call has ended or runs on. Those that no call
 * asked for go after a while, the longest unused first where room is needed.
 */
import type { SandboxShape } from "../../backend.ts"
import { READY } from "./limits.ts"
import type { WaitingSandbox } from "./waiting-sandbox.ts"

interface Kind {
  readonly shape: SandboxShape
  readonly root: string
  readonly waiting: WaitingSandbox[]
  making: number
  /** its program is no good before its call, or what it imports is not: it is started with its job */
  spoiled?: true
  /** when calls ran in one, the latest last */
  readonly taken: number[]
}

interface ReadySandboxesOptions {
  /** `begun`: with the program that the shape names */
  readonly make: (shape: SandboxShape, root: string, begun: boolean) => Promise<WaitingSandbox>
  /** it goes unused: so does what the host has of it */
  readonly drop: (sandbox: WaitingSandbox) => void
  /** milliseconds, of any origin */
  readonly now?: () => number
}

/** Its program waits already, and would have to begin anew, or is gone. */
const isSpoiled = (sandbox: WaitingSandbox): boolean =>
  sandbox.begun !== undefined && (!sandbox.alive() || sandbox.begun.spoiled() !== undefined)

const weightOf = ({ shape, spoiled }: Kind): number =>
  shape.waits === undefined || spoiled === true ? 1 : READY.begunCounts

const keyOf = (shape: SandboxShape, root: string): string => JSON.stringify([root, shape])

export class ReadySandboxes {
  readonly #options: ReadySandboxesOptions
  readonly #now: () => number
  /** in the order of their last use */
  readonly #kinds = new Map<string, Kind>()
  #making = 0
  constructor(options: ReadySandboxesOptions) {
    this.#options = options
    this.#now = options.now ?? (() => performance.now())
    setInterval(() => this.expire(), READY.idleMs / 4).unref()
  }

  /** One that waits; undefined where none does. */
  take(shape: SandboxShape, root: string): WaitingSandbox | undefined {
    const kind = this.#kinds.get(keyOf(shape, root))
    for (;;) {
      const sandbox = kind?.waiting.shift()
      if (sandbox === undefined || kind === undefined) return undefined
      const spoiled = isSpoiled(sandbox)
      if (spoiled) kind.spoiled = true
      if (!spoiled && sandbox.alive()) return sandbox
      this.#options.drop(sandbox)
    }
  }

  /** A call runs in one of this shape: another may come. */
  used(shape: SandboxShape, root: string): void {
    const key = keyOf(shape, root)
    this.#drain(shape, root)
    const kind = this.#kinds.get(key) ?? { shape, root, waiting: [], making: 0, taken: [] }
    kind.taken.push(this.#now())
    if (kind.taken.length > READY.perShape) kind.taken.shift()
    this.#kinds.delete(key)
    this.#kinds.set(key, kind)
  }

  /** The same shape has another view by now: its programs were replaced, and those that show the old ones go. */
  #drain(shape: SandboxShape, root: string): void {
    const same = JSON.stringify(shape)
    for (const [key, kind] of this.#kinds) {
      if (kind.root === root || JSON.stringify(kind.shape) !== same) continue
      for (const sandbox of kind.waiting.splice(0)) this.#options.drop(sandbox)
      if (kind.making === 0) this.#kinds.delete(key)
      else kind.taken.splice(0)
    }
  }

  /** Now is a time to make what calls of late would have used. */
  refill(): void {
    // The latest used first.
    for (const kind of [...this.#kinds.values()].reverse())
      while (this.#making < READY.making && kind.waiting.length + kind.making < this.#wanted(kind)) {
        if (!this.#makeRoom(kind)) return
        void this.#make(kind)
      }
  }

  /** One more than were taken within the time that it takes to follow. */
  #wanted({ taken }: Kind): number {
    const since = this.#now() - READY.coverMs
    return Math.min(READY.perShape, 1 + taken.filter((at) => at > since).length)
  }

  async #make(kind: Kind): Promise<void> {
    kind.making += 1
    this.#making += 1
    const begun = kind.shape.waits !== undefined && kind.spoiled !== true
    try {
      kind.waiting.push(await this.#options.make(kind.shape, kind.root, begun))
    } catch {
      // The next call makes its own, and hears why that cannot be done.
      if (begun) kind.spoiled = true
      return
    } finally {
      kind.making -= 1
      this.#making -= 1
    }
    this.refill()
  }

  #dropSpoiled(kind: Kind): void {
    if (!kind.waiting.some(isSpoiled)) return
    kind.spoiled = true
    for (const sandbox of kind.waiting.splice(0)) this.#options.drop(sandbox)
  }

  get #count(): number {
    return [...this.#kinds.values()].reduce(
      (sum, kind) => sum + (kind.waiting.length + kind.making) * weightOf(kind),
      0,
    )
  }
  /** Room for one more of this kind, where need be at the cost of one whose kind was not asked for since. */
  #makeRoom(kind: Kind): boolean {
    const fits = (): boolean => this.#count + weightOf(kind) <= READY.total
    if (fits()) return true
    for (const other of this.#kinds.values()) {
      if (other === kind) return false
      while (!fits() && other.waiting.length > 0) this.#options.drop(other.waiting.shift() as WaitingSandbox)
      if (fits()) return true
    }
    return false
  }

  /** Shapes that no call asked for within a while keep none. */
  expire(): void {
    const since = this.#now() - READY.idleMs
    for (const [key, kind] of this.#kinds) {
      this.#dropSpoiled(kind)
      if ((kind.taken.at(-1) ?? 0) > since) continue
      for (const sandbox of kind.waiting.splice(0)) this.#options.drop(sandbox)
      if (kind.making === 0) this.#kinds.delete(key)
    }
  }
}
