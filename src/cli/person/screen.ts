/**
 * What a program prints on the terminal that it was lent, made safe for the person's own.
 *
 * Guarantees: text, colours, cursor movement, erasing of what is shown and the question where the cursor is pass, with
 * numbers that every terminal can count to; whatever else an escape sequence could do (titles, clipboard, links, modes,
 * key maps, mouse reports, answers that would be typed, what scrolled away) is left out, however it is cut, and so are
 * characters that are not seen or change the direction of text. Where the locale is not UTF-8, what comes out is ASCII: a
 * terminal of one byte a character takes a part of others for an escape. A sequence is passed on whole or not at all.
 * Bounded. A whole program at the terminal (`program`) may also have the other screen, scroll, and move its keypad and
 * mouse into its own modes; `reset` takes all of that back.
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

/** What editors, pagers and shells need beside: none of it leaves the screen or answers with words of the program's own. */
const DRAWS = /^\d{0,4}(?:;\d{1,4})?[@L-PXZdea`bgrs]$/
/** Of the terminal itself, answered in numbers: never its title, which is words of somebody else. */
const ASKS = /^[05]?n$|^[>=]?0?c$|^1[468]t$/
const SHAPES = /^[0-6]? q$|^!p$/
const SETS = /^\?(?:1|5|6|7|12|25|47|66|1000|1002|1003|1004|1006|1047|1048|1049|2004|2026)(?:;(?:1|7|12|25|1049))*[hl]$/
const INSERTS = /^4[hl]$/
/** Two-character escapes: save, restore, index, keypad. */
const SHORT = /[78DEHM=>]/
const CHARSETS = /^[()][0AB]$/
const RESET =
  "\u001b[0m\u001b(B\u001b[?1l\u001b>\u001b[?7h\u001b[?25h\u001b[4l\u001b[?5l\u001b[?66l\u001b[?2026l\u001b[0 q\u001b[?1000l\u001b[?1002l\u001b[?1003l\u001b[?1004l\u001b[?1006l\u001b[?2004l"

const isHarmless = (sequence: string): boolean =>
  sequence === WHERE || [MOVES, SCROLLS, ERASES, REMEMBERS, MODES].some((form) => form.test(sequence))
const isProgram = (sequence: string): boolean =>
  isHarmless(sequence) || [DRAWS, ASKS, SHAPES, SETS, INSERTS].some((form) => form.test(sequence))

export interface Screen {
  show(bytes: Uint8Array): void
  /** What of it may be shown. */
  pass(bytes: Uint8Array): string
  /** What takes back all that a program may have set. */
  reset(): string
}

type State = "text" | "escape" | "intermediate" | "sequence" | "string"

const afterEscape = (char: string): State => {
  if (char === ESCAPE) return "escape"
  if (char === "[") return "sequence"
  if ("]PX^_".includes(char)) return "string"
  return /[ -/]/.test(char) ? "intermediate" : "text"
}

/** `wide`: the person's terminal shows more than ASCII. */
export const createScreen = (write: (text: string) => void, wide?: boolean, whole?: "program"): Screen => {
  const decoder = new TextDecoder()
  const mayPass = whole === undefined ? isHarmless : isProgram
  let other = false
  let margins = false
  let origin = false
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
        sequence = char
        at = afterEscape(char)
        if (at === "text") return whole !== undefined && SHORT.test(char) ? ESCAPE + char : ""
        if (at === "sequence") sequence = ""
        return ""
      case "intermediate":
        if (char === ESCAPE) {
          at = "escape"
          return ""
        }
        if (sequence.length < LONGEST) sequence += char
        if (/[ -/]/.test(char)) return ""
        at = "text"
        return whole !== undefined && CHARSETS.test(sequence) ? ESCAPE + sequence : ""
      case "sequence":
        if (char === ESCAPE) {
          at = "escape"
          return ""
        }
        if (sequence.length < LONGEST) sequence += char
        if (!/[@-~]/.test(char)) return ""
        at = "text"
        if (!mayPass(sequence)) return ""
        if (/^\?.*(?:1049|1047|\b47)/.test(sequence)) other = char === "h"
        if (char === "r") margins = true
        if (/^\?6[hl]/.test(sequence)) origin = char === "h"
        return `${ESCAPE}[${sequence}`
      case "string":
        // As terminals do: an escape ends the string, whatever follows it.
        if (char === ESCAPE) at = "escape"
        else if (char === "\u0007" || char === "\u009c") at = "text"
        return ""
    }
  }
  const pass = (bytes: Uint8Array): string => {
    let text = ""
    for (const char of decoder.decode(bytes, { stream: true })) text += take(char)
    return asLocale(text, wide)
  }
  return {
    show: (bytes) => {
      const text = pass(bytes)
      if (text !== "") write(text)
    },
    pass,
    // Margins are taken back where the cursor was: setting them moves it.
    reset: () =>
      `${other ? "\u001b[?1049l" : ""}${origin ? "\u001b[?6l\u001b[9999;1H" : ""}${margins ? "\u001b7\u001b[r\u001b8" : ""}${RESET}`,
  }
}
