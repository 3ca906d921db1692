/**
 * The client connections of one proxy, and whom each belongs to.
 *
 * Guarantees: where there is no room for another, one that owes bytes makes way for it: of the client address that
 * has the most, so that one client's silent connections keep no other out. A client that has the most itself takes the
 * place of one that has been silent for a while, never of one at work.
 * Assumes: clients on one address, or on a Unix socket, are one client.
 */
import type { ByteSource } from "../connection/byte-source.ts"

export class Crowd {
  readonly #all = new Set<ByteSource>()
  readonly #of = new Map<string, Set<ByteSource>>()
  readonly #shared: boolean

  /** @param shared clients of more than one address come here */
  constructor(shared: boolean) {
    this.#shared = shared
  }

  get size(): number {
    return this.#all.size
  }
  [Symbol.iterator](): IterableIterator<ByteSource> {
    return this.#all.values()
  }

  add(source: ByteSource): void {
    this.#all.add(source)
    const who = this.#who(source)
    const mine = this.#of.get(who)
    if (mine === undefined) this.#of.set(who, new Set([source]))
    else mine.add(source)
  }
  delete(source: ByteSource): void {
    this.#all.delete(source)
    const who = this.#who(source)
    const mine = this.#of.get(who)
    mine?.delete(source)
    if (mine?.size === 0) this.#of.delete(who)
  }

  /** Ends one that owes bytes, if that is fair: true where there is room now. */
  makeWay(newcomer: ByteSource, silentMs: number): boolean {
    let most: ReadonlySet<ByteSource> = new Set()
    for (const group of this.#of.values()) if (group.size > most.size) most = group
    const mine = this.#of.get(this.#who(newcomer))?.size ?? 0
    const enough = mine + 1 < most.size ? 0 : silentMs
    for (const source of most) {
      if ((source.waitsFor ?? -1) < enough) continue
      source.destroy()
      return true
    }
    return false
  }

  #who(source: ByteSource): string {
    return this.#shared ? source.who : ""
  }
}
