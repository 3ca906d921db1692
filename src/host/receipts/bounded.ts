/**
 * Lists and values of any size, as what of them fits into a receipt.
 *
 * Guarantees: what is kept takes at most the bytes allowed, in canonical form; where something was left out, the number
 * of all rows and one digest over all of them say what it was: SHA-256 over each row's canonical form and a newline, so
 * that no text ever holds the whole list. Takes turns with other work.
 */
import { createHash } from "node:crypto"
import { type Digest, digestOf, jcs } from "../../manifest/values/digest.ts"
import type { JsonObject, JsonValue } from "../../manifest/types.ts"
import { takingTurns } from "../../sandbox/effects/breath.ts"

/** Kept free beside each row: for a comma, and for what is only known when the call has ended (`"committed":false`). */
const ROOM = 24

export interface BoundedRows {
  readonly rows: readonly JsonObject[]
  readonly total: number
  /** over all rows; there where some were left out */
  readonly digest?: Digest
}

export const boundedRows = async <T>(
  items: readonly T[],
  rowOf: (item: T) => JsonObject,
  mostBytes: number,
  mostRows = Number.POSITIVE_INFINITY,
): Promise<BoundedRows> => {
  const breath = takingTurns()
  const hash = createHash("sha256")
  const rows: JsonObject[] = []
  let bytes = 0
  for (const item of items) {
    await breath.take()
    const row = rowOf(item)
    const text = jcs(row)
    hash.update(text).update("\n")
    bytes += Buffer.byteLength(text) + ROOM
    if (bytes <= mostBytes && rows.length < mostRows) rows.push(row)
  }
  const total = items.length
  return rows.length === total ? { rows, total } : { rows, total, digest: `sha256:${hash.digest("hex")}` }
}

/** The value itself, or its digest and size where it is too large. */
export const boundedValue = (value: JsonValue, mostBytes: number): JsonValue => {
  const bytes = Buffer.byteLength(jcs(value))
  return bytes <= mostBytes ? value : { digest: digestOf(value), bytes }
}

export const cut = (text: string, most: number): string => {
  const whole = (text.length > most + 1 ? text.slice(0, most + 1) : text).toWellFormed()
  return whole.length > most ? `${whole.slice(0, most).toWellFormed()}…` : whole
}
