/**
 * Text from tools, manifests and other people, made safe to look at. Pure, but for the locale read once.
 *
 * Guarantees: nothing that passes through here can move the cursor, recolour or rename the terminal, change the
 * direction of text, hide characters, or, where it stands in a line of ours, begin another line. JSON keeps its value.
 * Where the locale is not UTF-8, what comes out is ASCII.
 */

/** Whether the locale can show more than ASCII, by the order that POSIX gives its variables. */
export const isUnicodeLocale = (env: Readonly<Record<string, string | undefined>>): boolean =>
  /utf-?8/i.test(env["LC_ALL"] || env["LC_CTYPE"] || env["LANG"] || "")

const unicode = isUnicodeLocale(process.env)

/** Controls (C0, DEL, C1), invisible and direction-changing format characters, line separators, lone surrogates. */
const steering = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu
const beyondAscii = /[^\0-\x7f]/gu
/** Joiners belong to the spelling of several scripts and of emoji. */
const harmlessInText: ReadonlySet<string> = new Set(["\n", "\t", "\u200c", "\u200d"])
const named: Readonly<Record<string, string>> = { "\n": "\\n", "\r": "\\r", "\t": "\\t" }

const escaped = (char: string): string => {
  const code = char.codePointAt(0) ?? 0
  return named[char] ?? (code <= 0xff ? `\\x${code.toString(16).padStart(2, "0")}` : `\\u{${code.toString(16)}}`)
}
/** Spelt in ASCII where the locale has nothing else. */
export const asLocale = (text: string, wide = unicode): string => (wide ? text : text.replace(beyondAscii, escaped))

/** Whether a character of a text of several lines does anything but stand there. */
export const steersText = (char: string): boolean => char.search(steering) >= 0 && !harmlessInText.has(char)

/** Text of several lines: newlines and tabs stay, nothing else steers. */
export const visible = (text: string, wide = unicode): string =>
  asLocale(
    text.replace(steering, (char) => (harmlessInText.has(char) ? char : escaped(char))),
    wide,
  )

/** Text that stands in one of our own lines. */
export const inline = (text: string, wide = unicode): string => asLocale(text.replace(steering, escaped), wide)

/** A name in one of our own lines; quoted where it could be taken for more than a name. */
export const nameText = (name: string, wide = unicode): string => {
  const shown = inline(name, wide)
  const isPlain = shown === name && !/^\s|\s$|\s{2}|["']|^$/.test(name)
  return isPlain ? name : `"${inline(name.replace(/["\\]/g, "\\$&"), wide)}"`
}

const utf16 = (text: string): string =>
  Array.from({ length: text.length }, (_, at) => `\\u${text.charCodeAt(at).toString(16).padStart(4, "0")}`).join("")

/** What a CI runner takes for a command wherever it stands in a line. */
const RUNNER = "##["
/** The same text, in which no CI runner finds a command. */
export const noRunnerCommand = (text: string): string => text.replaceAll(RUNNER, "#\\u{23}[")

/** JSON of the same value in which no character steers. */
export const safeJson = (value: unknown, indent: number, wide = unicode): string => {
  const text = JSON.stringify(value, null, indent)
    .replace(steering, (char) => (char === "\n" ? char : utf16(char)))
    .replaceAll(RUNNER, "#\\u0023[")
  return wide ? text : text.replace(beyondAscii, utf16)
}

const plainGlyphs: Readonly<Record<string, string>> = { "✗": "x", "×": "x", "→": "->", "·": "-", "…": "..." }

/** Our own lines, with our few signs beyond ASCII spelt in it where the locale has no others. */
export const ownLine = (text: string, wide = unicode): string =>
  wide ? text : text.replace(beyondAscii, (char) => plainGlyphs[char] ?? escaped(char))
