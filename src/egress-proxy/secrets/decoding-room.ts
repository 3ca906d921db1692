/**
 * The memory that all decoders of one proxy may take together.
 *
 * Guarantees: those for which there is none left wait in line, first come, first served, until they are let in or give
 * up; one that wants more than there is at all is let in when it is alone.
 * Assumes: whoever entered leaves, let in or not.
 */
export interface DecodingRoom {
  /** Asks for memory, which is there when `ready` resolves to true. */
  enter(bytes: number): DecodingPlace
  readonly taken: number
}
export interface DecodingPlace {
  /** false: it was given up before its turn came */
  readonly ready: Promise<boolean>
  /** Gives the memory back, or the place in the line up; more than once does no harm. */
  leave(): void
}

export function createDecodingRoom(capacity: number): DecodingRoom {
  const line = new Set<{ readonly bytes: number; readonly begin: () => void }>()
  let taken = 0
  const admit = (): void => {
    for (const first of line) {
      if (taken > 0 && taken + first.bytes > capacity) return
      line.delete(first)
      taken += first.bytes
      first.begin()
    }
  }
  return {
    get taken() {
      return taken
    },
    enter(bytes) {
      const { promise: ready, resolve } = Promise.withResolvers<boolean>()
      let inside = false
      const place = {
        bytes,
        begin() {
          inside = true
          resolve(true)
        },
      }
      line.add(place)
      admit()
      return {
        ready,
        leave() {
          if (line.delete(place)) resolve(false)
          else if (inside) taken -= bytes
          inside = false
          admit()
        },
      }
    },
  }
}
