/** Plain columns for people. Pure. The last column takes the rest of the width and wraps. */
import { stripVTControlCharacters } from "node:util"

const length = (text: string): number => stripVTControlCharacters(text).length
const pad = (text: string, width: number): string => text + " ".repeat(Math.max(0, width - length(text)))

const wrap = (text: string, width: number): string[] => {
  const lines: string[] = []
  for (const paragraph of text.split("\n")) {
    let line = ""
    for (const word of paragraph.split(" ")) {
      if (line !== "" && length(line) + 1 + length(word) > width) {
        lines.push(line)
        line = word
      } else line = line === "" ? word : `${line} ${word}`
    }
    lines.push(line)
  }
  return lines
}

export const table = (head: readonly string[], rows: readonly (readonly string[])[], width: number): string => {
  const all = [head, ...rows]
  const widths = head.map((_, column) => Math.max(...all.map((row) => length(row[column] ?? ""))))
  const fixed = widths.slice(0, -1).reduce((sum, each) => sum + each + 2, 0)
  const rest = Math.max(24, width - fixed)
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
