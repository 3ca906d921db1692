/**
 * What the bare connections of one proxy may hold for reading beyond the little that each has.
 *
 * Guarantees: never more than the allowance in all, so that one sandbox's fast tunnels take nothing from another's;
 * a bare connection that gets no more reads on in smaller pieces.
 */
export class ReadMemory {
  #left: number

  constructor(bytes: number) {
    this.#left = bytes
  }

  get left(): number {
    return this.#left
  }

  take(bytes: number): boolean {
    if (bytes > this.#left) return false
    this.#left -= bytes
    return true
  }

  give(bytes: number): void {
    this.#left += bytes
  }
}
