/** Secrets of one call as far as the host's side of it knows them: a mark for each, which the process inside replaces. */
import { randomBytes } from "node:crypto"
import type { DriverContract } from "../../../manifest/types.ts"

export class Marks {
  readonly #names: readonly string[]
  readonly #marks = new Map<string, string>()
  constructor({ auth }: DriverContract) {
    this.#names = auth?.state.env ?? []
  }
  readonly of = (name: string): string | undefined => {
    if (!this.#names.includes(name)) return undefined
    const mark = this.#marks.get(name) ?? `secret-${randomBytes(16).toString("hex")}`
    this.#marks.set(name, mark)
    return mark
  }
  /** One for every secret that the driver names. */
  each(): { readonly [name: string]: string } {
    return Object.fromEntries(this.#names.map((name) => [name, this.of(name) ?? ""]))
  }
  all(): { readonly [mark: string]: string } {
    return Object.fromEntries([...this.#marks].map(([name, mark]) => [mark, name]))
  }
}
