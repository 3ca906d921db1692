/**
 * Call ids: ULIDs, 26 characters of Crockford's base 32, sortable by time.
 *
 * Guarantees: within one maker every id is greater than the one before it, even within one millisecond and when the
 * clock steps back; across processes 80 random bits keep them apart.
 */
import { randomBytes } from "node:crypto"

const ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
/** The last moment that a date can tell. */
const MAX_TIME = 8.64e15
const RANDOM_BITS = 80n
const RANDOM_END = 1n << RANDOM_BITS

const encode = (value: bigint, length: number): string => {
  let text = ""
  for (let left = value, i = 0; i < length; i += 1, left >>= 5n) text = ALPHABET[Number(left & 31n)] + text
  return text
}

/** When an id was made, in milliseconds since the epoch; 0 for what is none. */
export const timeOfUlid = (id: string): number => {
  const digits = Array.from(id.slice(0, 10), (char) => ALPHABET.indexOf(char))
  const time = digits.includes(-1) || digits.length < 10 ? 0 : digits.reduce((sum, digit) => sum * 32 + digit, 0)
  return time <= MAX_TIME ? time : 0
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
