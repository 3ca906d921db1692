/**
 * What a held call would change, as the text of a question.
 *
 * Guarantees: pure; bounded. Every path is named before the first line of any file, with where a link leads and which rights
 * it has from then on; each file has its share of the room, so that no long one hides another. What is not all is said to be
 * so first, with where all of it is. Paths and lines are the tool's own: none begins a line of ours, and nothing of them
 * steers a terminal or is invisible.
 */
import type { ContentChange, HeldApprovalDetail } from "../../host/types.ts"
import { mcpLimits } from "../limits.ts"

const STEERING = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu
export const inline = (text: string): string =>
  text.replace(STEERING, (char) => (char === "\t" ? char : `\\u{${(char.codePointAt(0) ?? 0).toString(16)}}`))

const headOf = ({ kind, path, mode, target, from, declared }: ContentChange): string =>
  [
    `${kind} ${inline(path)}`,
    ...(from === undefined ? [] : [`from ${inline(from)}`]),
    ...(target === undefined ? [] : [`→ ${inline(target)}`]),
    ...(mode === undefined ? [] : [`(mode ${inline(mode)})`]),
    ...(declared ? [] : ["(not declared)"]),
  ].join(" ")

interface Cut {
  readonly lines: readonly string[]
  /** how many there are besides */
  readonly more: number
}
const within = (lines: readonly string[], most: number): Cut => {
  let left = most
  const fit: string[] = []
  for (const line of lines) {
    left -= line.length + 1
    if (left < 0) break
    fit.push(line)
  }
  return { lines: fit, more: lines.length - fit.length }
}

const linesOf = ({ diff, note }: ContentChange): readonly string[] => [
  ...(diff === undefined ? [] : diff.split("\n")).map((line) => `    ${inline(line)}`),
  ...(note === undefined ? [] : [`    (${inline(note)})`]),
]

const lengthOf = (lines: readonly string[]): number => lines.reduce((sum, line) => sum + line.length + 1, 0)

/** Short ones first: what they leave of their share is the others'. */
const bodiesOf = (changes: readonly ContentChange[], most: number): ReadonlyMap<ContentChange, Cut> => {
  const all = changes.map((change) => [change, linesOf(change)] as const).filter(([, lines]) => lines.length > 0)
  const sorted = all.toSorted(([, one], [, other]) => lengthOf(one) - lengthOf(other))
  let left = most
  return new Map(
    sorted.map(([change, lines], at) => {
      const cut = within(lines, Math.floor(left / (sorted.length - at)))
      left -= lengthOf(cut.lines)
      return [change, cut] as const
    }),
  )
}

export const changesText = ({ id, tool, workspace, content }: HeldApprovalDetail): string => {
  const most = mcpLimits.changeChars.value
  const heads = within(content.map(headOf), Math.floor(most / 3))
  const named = content.slice(0, heads.lines.length)
  const bodies = bodiesOf(named, most - 2 * lengthOf(heads.lines))
  const shown = named.flatMap((change) => {
    const body = bodies.get(change)
    if (body === undefined) return []
    return [headOf(change), ...body.lines, ...(body.more === 0 ? [] : [`    … ${body.more} more lines`])]
  })
  const isCut = heads.more > 0 || [...bodies.values()].some(({ more }) => more > 0)
  const whole = `; not all of it is shown here: see it with \`caisson approvals show ${id}\`, or at /v1/approvals/${id} of the daemon, before you say yes`
  const count = `${content.length} path${content.length === 1 ? "" : "s"}`
  return [
    `${inline(tool)} changed ${count} of ${inline(workspace)}${isCut ? whole : ""}. Keep these changes?`,
    "",
    ...heads.lines,
    ...(heads.more === 0 ? [] : [`… ${heads.more} more paths`]),
    ...(shown.length === 0 ? [] : ["", ...shown]),
  ].join("\n")
}
