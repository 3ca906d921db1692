/**
 * What a PostgreSQL server says, in whole messages of their own form, before anything that trusts them reads on.
 *
 * Guarantees: pure; linear. A message whose parts do not fill it exactly, one of a kind that no question of this host is
 * answered with (copies, replication), and a wish for the password in the clear where nothing hides it, is a fault; what is
 * given on is whole. Does not: bound how much comes; whoever feeds it counts.
 */

type Framed = { readonly ok: true; readonly whole: Buffer } | { readonly ok: false; readonly why: string }

const HEAD = 5
const MOST = 0x3fff_ffff

/** Where a text that ends in a zero ends; beyond the message: it does not. */
const afterText = (body: Buffer, from: number): number => {
  const end = body.indexOf(0, from)
  return end === -1 ? Number.POSITIVE_INFINITY : end + 1
}
const texts = (body: Buffer, from: number, count: number): boolean => {
  let at = from
  for (let each = 0; each < count; each += 1) at = afterText(body, at)
  return at === body.length
}
/** A letter and a text, again and again, and a zero. */
const isNotice = (body: Buffer): boolean => {
  let at = 0
  while (at < body.length && body[at] !== 0) at = afterText(body, at + 1)
  return at === body.length - 1
}
const countIn = (body: Buffer): number => (body.length < 2 ? -1 : body.readInt16BE(0))
const COLUMN = 18
const isColumns = (body: Buffer): boolean => {
  const count = countIn(body)
  let at = 2
  for (let each = 0; each < count && at <= body.length; each += 1) at = afterText(body, at) + COLUMN
  return count >= 0 && at === body.length
}
const isRow = (body: Buffer): boolean => {
  const count = countIn(body)
  let at = 2
  for (let each = 0; each < count; each += 1) {
    if (at + 4 > body.length) return false
    const length = body.readInt32BE(at)
    if (length < -1) return false
    at += 4 + Math.max(length, 0)
  }
  return count >= 0 && at === body.length
}
const isEmpty = (body: Buffer): boolean => body.length === 0

const PROOFS: Readonly<Record<number, (body: Buffer) => boolean>> = {
  0: (body) => body.length === 4,
  3: (body) => body.length === 4,
  5: (body) => body.length === 8,
  10: (body) => body.length > 5 && body.at(-1) === 0 && body.at(-2) === 0,
  11: (body) => body.length > 4,
  12: (body) => body.length > 4,
}
const IN_THE_CLEAR = 3
const proofOf = (body: Buffer): number => (body.length < 4 ? -1 : body.readInt32BE(0))

/** By the letter that a message begins with: whether it is of the form that is read. */
const FORMS: Readonly<Record<string, (body: Buffer) => boolean>> = {
  "1": isEmpty,
  "2": isEmpty,
  "3": isEmpty,
  A: (body) => body.length > 4 && texts(body, 4, 2),
  C: (body) => texts(body, 0, 1),
  D: isRow,
  E: isNotice,
  I: isEmpty,
  K: (body) => body.length === 8,
  N: isNotice,
  R: (body) => PROOFS[proofOf(body)]?.(body) ?? false,
  S: (body) => texts(body, 0, 2),
  T: isColumns,
  Z: (body) => body.length === 1,
  n: isEmpty,
  s: isEmpty,
  t: (body) => countIn(body) >= 0 && body.length === 2 + 4 * countIn(body),
}

const faultOf = (kind: string, body: Buffer, isHidden: boolean): string | undefined => {
  const isForm = Object.hasOwn(FORMS, kind) ? FORMS[kind] : undefined
  if (isForm?.(body) !== true) return "says what is not of its protocol"
  if (kind === "R" && proofOf(body) === IN_THE_CLEAR && !isHidden)
    return "wants the password in the clear over a connection without TLS, and does not get it"
  return undefined
}

/** `isHidden`: nobody between here and the server reads along. */
export const createFrames = (isHidden: boolean): ((chunk: Buffer) => Framed) => {
  /** of a message that is not whole yet; joined once it can be */
  let waiting: Buffer[] = []
  let waitingBytes = 0
  let wanted = HEAD
  return (chunk) => {
    waiting.push(chunk)
    waitingBytes += chunk.length
    if (waitingBytes < wanted) return { ok: true, whole: Buffer.alloc(0) }
    const all = Buffer.concat(waiting, waitingBytes)
    let at = 0
    wanted = HEAD
    while (all.length - at >= HEAD) {
      const length = all.readUInt32BE(at + 1)
      if (length < 4 || length > MOST) return { ok: false, why: "says what is not of its protocol" }
      wanted = 1 + length
      if (all.length - at < wanted) break
      const why = faultOf(String.fromCodePoint(all[at] ?? 0), all.subarray(at + HEAD, at + wanted), isHidden)
      if (why !== undefined) return { ok: false, why }
      at += wanted
      wanted = HEAD
    }
    const rest = all.subarray(at)
    waiting = rest.length === 0 ? [] : [rest]
    waitingBytes = rest.length
    return { ok: true, whole: all.subarray(0, at) }
  }
}
