/**
 * Plain columns for people. Pure.
 *
 * Guarantees: no line is longer than the width, unless a single painted word is. The last column takes the rest of the
 * width and wraps; where the others leave it too little, the widest that has several words wraps too, else each row
 * becomes a short block. The headings stay either way.
 */
import { continued, hanging, length, wrap } from "../wrap.ts"

const pad = (text: string, width: number): string => text + " ".repeat(Math.max(0, width - length(text)))

/** Less room than this for the last column is hard to read. */
const leastRest = 24
const gap = 2
/** In a block: where its last cell stands. */
const blockIndent = 4

const blocks = (rows: readonly (readonly string[])[], width: number): string =>
  rows
    .flatMap((row) => {
      const start = row.slice(0, -1).filter((cell) => cell !== "")
      return [
        ...hanging(wrap(start.join(" "), Math.max(1, width - continued)), continued),
        ...wrap(row.at(-1) ?? "", Math.max(1, width - blockIndent)).map((line) => " ".repeat(blockIndent) + line),
      ].map((line) => line.trimEnd())
    })
    .join("\n")

const longestWord = (text: string): number => Math.max(...text.split(/[ \n]/).map(length))

/** The widths of all columns but the last, the widest of them narrowed where that leaves the last enough; else nothing. */
const fittingWidths = (all: readonly (readonly string[])[], width: number): number[] | undefined => {
  const widest = (measure: (cell: string) => number): number[] =>
    (all[0] ?? []).map((_, column) => Math.max(...all.map((row) => measure(row[column] ?? ""))))
  const widths = widest(length)
  const last = widths.pop() ?? 0
  const lacking = Math.min(leastRest, last) - (width - widths.reduce((sum, each) => sum + each + gap, 0))
  if (lacking <= 0) return widths
  const column = widths.indexOf(Math.max(...widths))
  const narrowed = (widths[column] ?? 0) - lacking
  return narrowed < (widest(longestWord)[column] ?? 0) ? undefined : widths.with(column, narrowed)
}

export const table = (head: readonly string[], rows: readonly (readonly string[])[], width: number): string => {
  const all = [head, ...rows]
  const widths = fittingWidths(all, width)
  if (widths === undefined) return blocks(all, width)
  const rest = width - widths.reduce((sum, each) => sum + each + gap, 0)
  return all
    .flatMap((row) => {
      const cells = [...widths, rest].map((each, column) => wrap(row[column] ?? "", each))
      return Array.from({ length: Math.max(...cells.map((lines) => lines.length)) }, (_, line) =>
        cells
          .map((lines, column) => pad(lines[line] ?? "", (widths[column] ?? 0) + gap))
          .join("")
          .trimEnd(),
      )
    })
    .join("\n")
}
