/**
 * Addresses of resources that a contract answers for: one, or all that fit a pattern with `{input}` in it.
 *
 * Guarantees: pure; linear in the address, whatever the pattern: nothing is tried twice. `{name}` stands for what has no
 * slash, as little of it as there can be, and never for nothing.
 */
import type { JsonObject } from "../../manifest/types.ts"
import { mcpLimits } from "../limits.ts"

const HOLE = /(\{[\w-]{1,64}\})/
const PIECE = /^[^/?#]{1,256}$/

/** Two inputs with nothing between them: where one ends and the other begins nobody could say. */
export const isAmbiguous = (pattern: string): boolean => /\{[\w-]{1,64}\}\{[\w-]{1,64}\}/.test(pattern)

const decoded = (piece: string): string | undefined => {
  try {
    return PIECE.test(piece) ? decodeURIComponent(piece) : undefined
  } catch {
    return undefined
  }
}

/** Undefined: it is none of the pattern's. */
export const inputIn = (pattern: string, uri: string): JsonObject | undefined => {
  if (uri.length > mcpLimits.addressChars.value) return undefined
  const parts = pattern.split(HOLE)
  const [first = "", ...rest] = parts
  if (rest.length === 0) return uri === first ? {} : undefined
  const last = rest.at(-1) ?? ""
  if (!uri.startsWith(first) || !uri.endsWith(last)) return undefined
  const input: Record<string, string> = {}
  let from = first.length
  for (let at = 0; at < rest.length; at += 2) {
    const [hole = "", after = ""] = rest.slice(at, at + 2)
    const isLast = at + 2 >= rest.length
    const end = isLast ? uri.length - last.length : uri.indexOf(after, from + 1)
    const value = end <= from ? undefined : decoded(uri.slice(from, end))
    if (value === undefined) return undefined
    input[hole.slice(1, -1)] = value
    from = end + after.length
  }
  return input
}
