/**
 * Call ids: ULIDs, 26 characters of Crockford's base 32, sortable by time.
 *
 * Guarantees: within one maker every id is greater than the one before it, even within one millisecond and when the
 * clock steps back; across processes 80 random bits keep them apart.
 */
import { randomBytes } from "node:crypto"

const ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
const RANDOM_BITS = 80n
const RANDOM_END = 1n << RANDOM_BITS

const encode = (value: bigint, length: number): string => {
  let text = ""
  for (let left = value, i = 0; i < length; i += 1, left >>= 5n) text = ALPHABET[Number(left & 31n)] + text
  return text
}

export const createUlids = (
  clock: () => number = Date.now,
  random: () => Uint8Array = () => randomBytes(10),
): (() => string) => {
  let time = -1
  let tail = 0n
  return () => {
    const now = clock()
    if (now > time) {
      time = now
      tail = BigInt(`0x${Buffer.from(random()).toString("hex")}`)
    } else {
      tail += 1n
      if (tail >= RANDOM_END) {
        time += 1
        tail = 0n
      }
    }
    return encode(BigInt(time), 10) + encode(tail, 16)
  }
}
