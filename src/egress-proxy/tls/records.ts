/**
 * Cuts a stream of TLS records into portions of a few records each, however it arrives.
 *
 * Guarantees: every byte once, in order; no portion has more than `most` beginnings of records, or goes on with another
 * record once it has `enough` bytes: what is in them may be small pieces too. What a record costs has
 * little to do with its length: one of 27 bytes can have all keys of a connection made anew, without a byte for
 * whoever reads above it.
 * Does not: look into records, or mind what are none: the one that ends TLS does.
 */
interface Portion {
  readonly bytes: Buffer
  readonly records: number
}

const headerBytes = 5

export function createRecordCutter(most: number, enough: number): (chunk: Buffer) => readonly Portion[] {
  /** of the record's header that are known, and its last two */
  let known = 0
  let length = 0
  /** of the record's body that are to come */
  let left = 0

  /** Where the record ends that goes on here, or all of the chunk. */
  const skip = (chunk: Buffer, from: number): number => {
    let at = from
    for (; at < chunk.length && known < headerBytes; at += 1, known += 1) {
      if (known === 3) length = (chunk[at] as number) << 8
      if (known === 4) left = length | (chunk[at] as number)
    }
    if (known < headerBytes) return at
    const taken = Math.min(left, chunk.length - at)
    left -= taken
    if (left === 0) known = 0
    return at + taken
  }

  return (chunk) => {
    const portions: Portion[] = []
    let [from, records] = [0, 0]
    for (let at = 0; at < chunk.length; ) {
      if (known === 0) {
        if (records === most || at - from >= enough) {
          portions.push({ bytes: chunk.subarray(from, at), records })
          ;[from, records] = [at, 0]
        }
        records += 1
      }
      at = skip(chunk, at)
    }
    portions.push({ bytes: chunk.subarray(from), records })
    return portions
  }
}
