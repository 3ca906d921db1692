/**
 * Where a text stops being JSON.
 *
 * Guarantees: for every text that `JSON.parse` refuses, the offset of the first character that no JSON document could
 * have there (the text's length where it ends too early). Pure; depth is bounded by the text's length, not the stack.
 */

const blank = /[ \t\n\r]*/y
const number = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y
const word = /true|false|null/y
const string = /"(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"/y

const skip = (pattern: RegExp, text: string, at: number): number => {
  pattern.lastIndex = at
  const match = pattern.exec(text)
  return match === null ? -1 : at + match[0].length
}

/** How far a string literal that does not end well is still right. */
const brokenString = (text: string, at: number): number => {
  const end = skip(/"(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*/y, text, at)
  return end
}

const scalar = (text: string, at: number): { next: number } | { broken: number } => {
  if (text[at] === '"') {
    const next = skip(string, text, at)
    return next >= 0 ? { next } : { broken: brokenString(text, at) }
  }
  const next = Math.max(skip(number, text, at), skip(word, text, at))
  return next >= 0 ? { next } : { broken: at }
}

type Expect = "value" | "value-or-end" | "key" | "key-or-end" | "colon" | "comma-or-end"

export const whereJsonBreaks = (text: string): number => {
  const open: ("{" | "[")[] = []
  let expect: Expect = "value"
  let at = 0
  for (;;) {
    at = skip(blank, text, at)
    const char = text[at]
    if (expect === "comma-or-end" && open.length === 0) return at
    if (char === undefined) return text.length
    const inner: "{" | "[" | undefined = open.at(-1)
    const closes = (char === "}" && inner === "{") || (char === "]" && inner === "[")
    if (closes && (expect === "comma-or-end" || expect === "value-or-end" || expect === "key-or-end")) {
      open.pop()
      expect = "comma-or-end"
      at += 1
    } else if (expect === "comma-or-end") {
      if (char !== ",") return at
      expect = inner === "{" ? "key" : "value"
      at += 1
    } else if (expect === "colon") {
      if (char !== ":") return at
      expect = "value"
      at += 1
    } else if (expect === "key" || expect === "key-or-end") {
      if (char !== '"') return at
      const key = scalar(text, at)
      if ("broken" in key) return key.broken
      at = key.next
      expect = "colon"
    } else if (char === "{" || char === "[") {
      open.push(char)
      expect = char === "{" ? "key-or-end" : "value-or-end"
      at += 1
    } else {
      const value = scalar(text, at)
      if ("broken" in value) return value.broken
      at = value.next
      expect = "comma-or-end"
    }
  }
}

export const lineAndColumn = (text: string, offset: number): { line: number; column: number } => {
  const before = text.slice(0, offset)
  const line = before.split("\n").length
  return { line, column: offset - before.lastIndexOf("\n") }
}
