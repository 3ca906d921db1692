/**
 * Which account a proof speaks of, where it says so plainly. Pure.
 *
 * Guarantees: one printable word or a known field of a JSON object, bounded; anything else is no account. It is what a
 * stranger's program or service said, for people to read, and decides nothing.
 */
import { loginLimits } from "./limits.ts"

const FIELDS = ["account", "login", "preferred_username", "username", "user_name", "email", "name", "sub"] as const

const plain = (text: unknown): string | undefined => {
  if (typeof text !== "string") return undefined
  const word = text.trim()
  return word.length > 0 && word.length <= loginLimits.accountChars.value && !/[\p{C}\p{Zl}\p{Zp}]/u.test(word)
    ? word
    : undefined
}

const fromJson = (text: string): string | undefined => {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return undefined
  }
  if (typeof value !== "object" || value === null) return undefined
  for (const field of FIELDS) {
    const found = plain((value as Record<string, unknown>)[field])
    if (found !== undefined) return found
  }
  return undefined
}

/** Of what a proof's command printed, or its answer held. */
export const accountIn = (text: string): string | undefined => {
  const trimmed = text.trim()
  if (trimmed.startsWith("{")) return fromJson(trimmed)
  return /\s/.test(trimmed) ? undefined : plain(trimmed)
}
