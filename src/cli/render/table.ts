/**
 * Plain columns for people. Pure.
 *
 * Guarantees: no line is longer than the width, unless a single painted word is. The last column takes the rest of the
 * width and wraps; where the others leave it too little, each row becomes a short block instead.
 */
import { stripVTControlCharacters } from "node:util"

const length = (text: string): number => stripVTControlCharacters(text).length
const pad = (text: string, width: number): string => text + " ".repeat(Math.max(0, width - length(text)))

/** Less room than this for the last column is hard to read. */
const leastRest = 24
const blockIndent = 4

/** A word that fits no line is cut; one with colours in it is left whole. */
const pieces = (word: string, width: number): string[] =>
  length(word) <= width || word.includes("\u001b") ? [word] : (word.match(new RegExp(`.{1,${width}}`, "gsu")) ?? [word])

const wrap = (text: string, width: number): string[] => {
  const lines: string[] = []
  for (const paragraph of text.split("\n")) {
    let line = ""
    for (const word of paragraph.split(" ").flatMap((each) => pieces(each, width))) {
      if (line !== "" && length(line) + 1 + length(word) > width) {
        lines.push(line)
        line = word
      } else line = line === "" ? word : `${line} ${word}`
    }
    lines.push(line)
  }
  return lines
}

const blocks = (rows: readonly (readonly string[])[], width: number): string =>
  rows
    .flatMap((row) => {
      const start = row.slice(0, -1).filter((cell) => cell !== "")
      const indent = " ".repeat(blockIndent)
      return [
        ...wrap(start.join(" "), width),
        ...wrap(row.at(-1) ?? "", Math.max(1, width - blockIndent)).map((line) => indent + line),
      ].map((line) => line.trimEnd())
    })
    .join("\n")

export const table = (head: readonly string[], rows: readonly (readonly string[])[], width: number): string => {
  const all = [head, ...rows]
  const widths = head.map((_, column) => Math.max(...all.map((row) => length(row[column] ?? ""))))
  const fixed = widths.slice(0, -1).reduce((sum, each) => sum + each + 2, 0)
  const rest = width - fixed
  if (rest < leastRest && (widths.at(-1) ?? 0) > rest) return blocks(rows, width)
  return all
    .flatMap((row) => {
      const start = row
        .slice(0, -1)
        .map((cell, column) => pad(cell, (widths[column] ?? 0) + 2))
        .join("")
      return wrap(row.at(-1) ?? "", rest)
        .map((part, index) => (index === 0 ? start : " ".repeat(fixed)) + part)
        .map((line) => line.trimEnd())
    })
    .join("\n")
}
