/**
 * A name with `xn--` labels, the way people read it, beside the way it is resolved. Pure.
 *
 * Guarantees: letters, digits and marks are shown, everything else (controls, signs that turn the direction of text)
 * by its number; the scripts are named, so that a Cyrillic `а` does not pass for a Latin one. The name as it is
 * resolved is never replaced by this, only accompanied.
 */
import { domainToUnicode } from "node:url"

interface UnicodeName {
  readonly text: string
  /** `Cyrillic`, `Latin`, …; `Other` where it is none of the common ones */
  readonly scripts: readonly string[]
}

const scripts = [
  "Latin",
  "Cyrillic",
  "Greek",
  "Armenian",
  "Hebrew",
  "Arabic",
  "Devanagari",
  "Thai",
  "Georgian",
  "Hangul",
  "Hiragana",
  "Katakana",
  "Han",
] as const
const patterns = scripts.map((name) => [name, new RegExp(`\\p{Script=${name}}`, "u")] as const)

export function unicodeOf(host: string): UnicodeName | undefined {
  if (!/(^|\.)xn--/.test(host)) return undefined
  const text = domainToUnicode(host)
  if (text === "" || text === host) return undefined
  const shown = text.replace(/[^\p{L}\p{N}\p{M}.-]/gu, (sign) => `\\u{${(sign.codePointAt(0) ?? 0).toString(16)}}`)
  // The label that stands for all others, such as `com`, is Latin by necessity and says nothing.
  const labels = text.split(".").filter((label) => /[^\x20-\x7e]/.test(label))
  const letters = labels.join("").match(/\p{L}/gu) ?? []
  const found = new Set(letters.map((letter) => patterns.find(([, pattern]) => pattern.test(letter))?.[0] ?? "Other"))
  return { text: shown, scripts: [...found] }
}
