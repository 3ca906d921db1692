/**
 * What a call would change, as a person reads it: text line by line, everything else in a sentence.
 *
 * Guarantees: every effect has its place, deletions first, and none is summarised away; what is long is cut, and says so.
 * Content is the workspace's and the tool's own: whoever shows it on a terminal makes it visible first. What one file may
 * cost is bounded. Does not: decide anything. What is approved is the layer, by its digest.
 */
import { structuredPatch } from "diff"
import type { Looked, LookBounds, Side } from "../../sandbox/layers/look.ts"
import { hostLimits } from "../limits.ts"
import type { ContentChange, ReportedEffect } from "../types.ts"

export const lookBounds: LookBounds = {
  fileBytes: hostLimits.diffFileBytes.value,
  totalBytes: hostLimits.diffBytes.value,
  files: hostLimits.diffFiles.value,
}

const removes = ({ kind }: ReportedEffect): boolean => kind === "delete" || kind === "rmdir"
/** What is lost comes first; within each, by path. */
export const deletionsFirst = (effects: readonly ReportedEffect[]): readonly ReportedEffect[] => [
  ...effects.filter(removes),
  ...effects.filter((effect) => !removes(effect)),
]

const said = ({ size, why }: Side): string => {
  const what =
    why === "binary" ? "binary, " : why === "unreadable" ? "cannot be read, " : why === "large" ? "large, " : ""
  return `${what}${size} bytes`
}

/** Of no lines the form has the line before. */
const startOf = (start: number, lines: number): number => (lines === 0 ? start - 1 : start)

/** Lines of a unified diff, without the names; undefined where it would cost too much. */
const linesOf = (before: string, after: string): readonly string[] | undefined => {
  const patch = structuredPatch("", "", before, after, undefined, undefined, {
    context: 3,
    maxEditLength: hostLimits.diffEdits.value,
    timeout: hostLimits.diffMs.value,
  })
  return patch?.hunks.flatMap(({ oldStart, oldLines, newStart, newLines, lines }) => [
    `@@ -${startOf(oldStart, oldLines)},${oldLines} +${startOf(newStart, newLines)},${newLines} @@`,
    ...lines,
  ])
}

const cut = (lines: readonly string[]): Pick<ContentChange, "diff" | "note"> => {
  const most = hostLimits.diffLines.value
  if (lines.length <= most) return { diff: lines.join("\n") }
  return { diff: lines.slice(0, most).join("\n"), note: `${lines.length - most} more lines` }
}

const whole = (sign: "+" | "-", text: string): readonly string[] => {
  const lines = text.split("\n")
  if (lines.at(-1) === "") lines.pop()
  return lines.map((line) => sign + line)
}

const contentOf = ({ before, after }: Looked): Pick<ContentChange, "diff" | "note"> => {
  const [old, now] = [before?.text, after?.text]
  const isText = (before === undefined || old !== undefined) && (after === undefined || now !== undefined)
  if (!isText) return { note: [before, after].map((side) => (side === undefined ? "nothing" : said(side))).join(" → ") }
  if (old === now) return {}
  const lines = linesOf(old ?? "", now ?? "")
  if (lines !== undefined) return cut(lines)
  return { ...cut([...whole("-", old ?? ""), ...whole("+", now ?? "")]), note: "too different to compare line by line" }
}

const modeText = (mode: number | undefined): string =>
  mode === undefined ? "none" : (mode & 0o7777).toString(8).padStart(4, "0")

export const changesOf = (
  effects: readonly ReportedEffect[],
  looked: readonly Looked[] | undefined,
): readonly ContentChange[] => {
  const contents = new Map((looked ?? []).map((one) => [one.path, one]))
  return deletionsFirst(effects).map((effect) => {
    const { kind, path, declared, mode, target, from } = effect
    const content = contents.get(path)
    return {
      kind,
      path,
      declared,
      ...(mode === undefined ? {} : { mode: `${modeText(mode.before)} → ${modeText(mode.after)}` }),
      ...(target === undefined ? {} : { target }),
      ...(from === undefined ? {} : { from }),
      ...(content === undefined ? {} : contentOf(content)),
    }
  })
}
