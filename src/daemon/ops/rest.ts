/**
 * Gives back what starts and calls leave behind in memory, once the daemon has had nothing to do for a while.
 *
 * Guarantees: nothing is looked for while a call is under way, and no more than once for each time of work. V8 grows the
 * space for what is new to what the busiest moment took, and keeps it for as long as nothing is collected: without work,
 * for ever. A collection takes a tenth of a second, in which nobody is served who comes just then.
 */
import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
import { daemonLimits } from "../limits.ts"

type Collect = (how: { readonly type: "major"; readonly execution: "sync"; readonly flavor: "last-resort" }) => void

/** What V8 does where memory runs out: the only collection after which that space is small again. */
const collectionOfV8 = (): Collect => {
  setFlagsFromString("--expose-gc")
  const collect = runInNewContext("gc") as Collect
  setFlagsFromString("--no-expose-gc")
  return collect
}

export class Rest implements Disposable {
  readonly #timer: NodeJS.Timeout
  /** `underWay`: how many calls are. The first time of work is the start. */
  constructor(underWay: () => number, restMs: number = daemonLimits.restMs.value) {
    this.#timer = setTimeout(() => {
      if (underWay() === 0) collectionOfV8()({ type: "major", execution: "sync", flavor: "last-resort" })
      else this.#timer.refresh()
    }, restMs)
    this.#timer.unref()
  }
  /** A call ended. */
  worked(): void {
    this.#timer.refresh()
  }
  [Symbol.dispose](): void {
    clearTimeout(this.#timer)
  }
}
