/**
 * What files hold before and after, for a person at a terminal.
 *
 * Guarantees: every byte is the tool's or the workspace's and is made visible; a line of a file is one line here, so that no
 * content can pass for another file's header.
 */
import type { ContentChange } from "../../host/types.ts"
import type { Colors } from "../terminal.ts"
import { inline } from "../visible.ts"

const coloured = (line: string, paint: Colors): string => {
  const shown = `    ${inline(line)}`
  if (line.startsWith("+")) return paint.green(shown)
  if (line.startsWith("-")) return paint.red(shown)
  return line.startsWith("@@") ? paint.cyan(shown) : shown
}

const headOf = ({ kind, path, mode, target, from }: ContentChange): string =>
  [
    `${kind} ${inline(path)}`,
    ...(from === undefined ? [] : [`from ${inline(from)}`]),
    ...(mode === undefined ? [] : [`mode ${mode}`]),
    ...(target === undefined ? [] : [`→ ${inline(target)}`]),
  ].join("  ")

/** Of those that have content to show; the rest is told by the list of effects. */
export const changeLines = (changes: readonly ContentChange[], paint: Colors): string[] => {
  const shown = changes.filter(({ diff, note }) => diff !== undefined || note !== undefined)
  if (shown.length === 0) return []
  return [
    paint.bold("content"),
    ...shown.flatMap((change) => [
      `  ${headOf(change)}`,
      ...(change.diff === undefined ? [] : change.diff.split("\n").map((line) => coloured(line, paint))),
      ...(change.note === undefined ? [] : [paint.dim(`    (${inline(change.note)})`)]),
    ]),
  ]
}
