/**
 * A cancel as a conversation hears it: the program is asked to stop, and ended a little later.
 *
 * Guarantees: until it is talked with, a cancel ends the run at once; from then on after a fixed time, whatever the program
 * does about it. Nothing is left waiting once this is disposed of.
 */
import { hostLimits } from "../../../limits.ts"

export class Grace implements Disposable {
  readonly #call: AbortSignal
  readonly #ended = new AbortController()
  #timer: NodeJS.Timeout | undefined
  #isTalking = false
  constructor(call: AbortSignal) {
    this.#call = call
    call.addEventListener("abort", this.#onCancel, { once: true })
    if (call.aborted) this.#onCancel()
  }
  /** aborted when the run must end */
  get signal(): AbortSignal {
    return this.#ended.signal
  }
  /** The program hears of a cancel from now on. */
  talk(): void {
    this.#isTalking = true
  }
  readonly #onCancel = (): void => {
    if (this.#isTalking) this.#timer = setTimeout(() => this.#ended.abort(), hostLimits.abortMs.value)
    else this.#ended.abort()
  };
  [Symbol.dispose](): void {
    clearTimeout(this.#timer)
    this.#call.removeEventListener("abort", this.#onCancel)
  }
}
