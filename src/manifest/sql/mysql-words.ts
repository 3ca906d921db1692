/**
 * The words of a statement as MySQL and MariaDB read it. Pure.
 *
 * Guarantees: what stands in quotes and comments is told apart as a server does whose `sql_mode` knows backslashes in
 * strings and no double-quoted names. A comment that a server carries out (`/*!`, `/*M!`, `/*+`) is a mark of its own.
 * Does not: know the grammar.
 */

export interface SqlWord {
  /** `name`: in backticks */
  readonly kind: "word" | "name" | "text" | "mark" | "command"
  /** of a word: in capitals; of what is quoted: nothing */
  readonly text: string
}

const WORD = /[A-Za-z0-9_$\u0080-\uffff]+/y
const SPACE = /[\u0001-\u0020]+/y
const LINE = /(?:#|--(?=[\u0001-\u0020\u007f]|$))[^\n]*/y
const BLOCK = /\/\*(?!!|M!|\+)(?:[^*]|\*(?!\/))*\*\//y
const STRINGS = /'(?:[^'\\]|\\[^])*'|"(?:[^"\\]|\\[^])*"/y
const NAME = /`[^`]*`/y

const at = (pattern: RegExp, sql: string, index: number): string | undefined => {
  pattern.lastIndex = index
  return pattern.exec(sql)?.[0]
}

const blank = (sql: string, index: number): string | undefined =>
  at(SPACE, sql, index) ?? at(LINE, sql, index) ?? at(BLOCK, sql, index)

const wordAt = (sql: string, index: number): readonly [SqlWord, number] | undefined => {
  const word = at(WORD, sql, index)
  if (word !== undefined) return [{ kind: "word", text: word.toUpperCase() }, word.length]
  const quoted = at(STRINGS, sql, index)
  if (quoted !== undefined) return [{ kind: "text", text: "" }, quoted.length]
  const name = at(NAME, sql, index)
  if (name !== undefined) return [{ kind: "name", text: "" }, name.length]
  const rest = sql.slice(index, index + 3)
  if (rest.startsWith("/*")) return /^\/\*(?:!|M|\+)/.test(rest) ? [{ kind: "command", text: rest }, 2] : undefined
  // A quote that nothing closes, or an end that only some servers see.
  if (/^['"`\0]/.test(rest)) return undefined
  const mark = rest.startsWith(":=") ? ":=" : rest.slice(0, 1)
  return [{ kind: "mark", text: mark }, mark.length]
}

/** Undefined: a quote or a comment is not closed. */
export const mysqlWords = (sql: string): readonly SqlWord[] | undefined => {
  const words: SqlWord[] = []
  for (let index = 0; index < sql.length; ) {
    const skipped = blank(sql, index)
    if (skipped !== undefined) {
      index += skipped.length
      continue
    }
    const found = wordAt(sql, index)
    if (found === undefined) return undefined
    words.push(found[0])
    index += found[1]
  }
  return words
}

/** How many values a statement asks for. */
export const mysqlPlaces = (sql: string): number =>
  (mysqlWords(sql) ?? []).filter(({ kind, text }) => kind === "mark" && text === "?").length
