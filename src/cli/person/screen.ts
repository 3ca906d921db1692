/**
 * What a driver's program prints on the terminal that it was lent, made safe for the person's own.
 *
 * Guarantees: text, colours, cursor movement, erasing of what is shown and the question where the cursor is pass, with
 * numbers that every terminal can count to; whatever else an escape sequence could do (titles, clipboard, links, modes,
 * key maps, mouse reports, answers that would be typed, what scrolled away) is left out, however it is cut, and so are
 * characters that are not seen or change the direction of text. Where the locale is not UTF-8, what comes out is ASCII: a
 * terminal of one byte a character takes a part of others for an escape. A sequence is passed on whole or not at all.
 * Bounded.
 */
import { asLocale, steersText } from "../visible.ts"

const ESCAPE = "\u001b"
/** Longer ones are no cursor movement. */
const LONGEST = 64
/** Nothing, or numbers. */
const MOVES = /^(?:\d{1,4}(?:;\d{1,4}){0,15})?[A-HKfm]$/
/** With more than one number, the last of them turns on reports of the mouse. */
const SCROLLS = /^\d{0,4}[ST]$/
const ERASES = /^[0-2]?J$/
const REMEMBERS = /^[su]$/
const MODES = /^\?(?:25|2004)[hl]$/
const WHERE = "6n"
const PLAIN = /[\t\n\r\b\u0007]/
const CANCELS = /[\u0018\u001a]/

const isHarmless = (sequence: string): boolean =>
  sequence === WHERE || [MOVES, SCROLLS, ERASES, REMEMBERS, MODES].some((form) => form.test(sequence))

interface Screen {
  show(bytes: Uint8Array): void
}

type State = "text" | "escape" | "intermediate" | "sequence" | "string"

const afterEscape = (char: string): State => {
  if (char === ESCAPE) return "escape"
  if (char === "[") return "sequence"
  if ("]PX^_".includes(char)) return "string"
  return /[ -/]/.test(char) ? "intermediate" : "text"
}

/** `wide`: the person's terminal shows more than ASCII. */
export const createScreen = (write: (text: string) => void, wide?: boolean): Screen => {
  const decoder = new TextDecoder()
  let at: State = "text"
  let sequence = ""
  const take = (char: string): string => {
    if (at !== "text" && CANCELS.test(char)) {
      at = "text"
      return ""
    }
    switch (at) {
      case "text":
        if (char !== ESCAPE) return PLAIN.test(char) || !steersText(char) ? char : ""
        at = "escape"
        return ""
      case "escape":
        sequence = ""
        at = afterEscape(char)
        return ""
      case "intermediate":
        if (char === ESCAPE) at = "escape"
        else if (!/[ -/]/.test(char)) at = "text"
        return ""
      case "sequence":
        if (char === ESCAPE) {
          at = "escape"
          return ""
        }
        if (sequence.length < LONGEST) sequence += char
        if (!/[@-~]/.test(char)) return ""
        at = "text"
        return isHarmless(sequence) ? `${ESCAPE}[${sequence}` : ""
      case "string":
        // As terminals do: an escape ends the string, whatever follows it.
        if (char === ESCAPE) at = "escape"
        else if (char === "\u0007" || char === "\u009c") at = "text"
        return ""
    }
  }
  return {
    show: (bytes) => {
      let text = ""
      for (const char of decoder.decode(bytes, { stream: true })) text += take(char)
      if (text !== "") write(asLocale(text, wide))
    },
  }
}
