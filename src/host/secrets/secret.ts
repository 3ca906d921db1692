/**
 * A secret's value, held so that it is not told by accident.
 *
 * Guarantees: printing, joining to text, logging or writing it as JSON gives `[secret]`; only `reveal` gives the value,
 * so that whoever needs it says so.
 */
import { inspect } from "node:util"

const HIDDEN = "[secret]"

export class Secret {
  readonly #value: string
  constructor(value: string) {
    this.#value = value
  }
  /** The value itself, for the one place that it is bound to. */
  reveal(): string {
    return this.#value
  }
  toString(): string {
    return HIDDEN
  }
  toJSON(): string {
    return HIDDEN
  }
  [inspect.custom](): string {
    return HIDDEN
  }
}
