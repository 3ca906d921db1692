/**
 * Text broken at its blanks, for a terminal of some width. Pure. Colours count for nothing.
 */
import { stripVTControlCharacters } from "node:util"

export const length = (text: string): number => stripVTControlCharacters(text).length

/** How much further in a line goes on. */
export const continued = 2

/** A word that fits no line is cut; one with colours in it is left whole. */
const pieces = (word: string, width: number): string[] =>
  length(word) <= width || word.includes("\u001b") ? [word] : (word.match(new RegExp(`.{1,${width}}`, "gsu")) ?? [word])

export const wrap = (text: string, width: number, cut = pieces): string[] => {
  const lines: string[] = []
  for (const paragraph of text.split("\n")) {
    let line = ""
    for (const word of paragraph.split(" ").flatMap((each) => cut(each, width))) {
      if (line !== "" && length(line) + 1 + length(word) > width) {
        lines.push(line)
        line = word
      } else line = line === "" ? word : `${line} ${word}`
    }
    lines.push(line)
  }
  return lines
}

export const hanging = (lines: readonly string[], indent: number): string[] =>
  lines.map((line, index) => (index === 0 ? line : " ".repeat(indent) + line))

/**
 * A line of ours at so narrow a terminal: broken at its blanks, what follows a little further in than it began. One that
 * fits is left as it is, blanks and all; so is a word that fits no line, a hash or a path that somebody copies.
 */
export const wrapLine = (line: string, width: number): string => {
  if (length(line) <= width) return line
  const [indent = ""] = /^ */.exec(line) ?? []
  const room = width - indent.length - continued
  if (room < 1) return line
  return hanging(
    wrap(line.slice(indent.length), room, (word) => [word]),
    continued,
  )
    .map((part) => `${indent}${part}`.trimEnd())
    .join("\n")
}
