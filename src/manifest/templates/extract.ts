/**
 * What of a result is taken (`response_extract`, `result_extract`): JSONPath-lite → steps.
 *
 *   path = "$" { "." name | "[" index "]" | "[*]" | "[?(@." name "==" value ")]" }
 *
 * Guarantees: total and linear; nothing is ever evaluated: no scripts, no recursion (`..`), no slices. Both the length
 * and the number of steps are bounded.
 */
import type { Context } from "../values/context.ts"
import { shown } from "../values/diagnostics.ts"
import { limits } from "../limits.ts"

type ExtractStep =
  | { readonly take: "property"; readonly name: string }
  | { readonly take: "item"; readonly index: number }
  /** every item of a list; what follows is taken of each */
  | { readonly take: "all" }
  /** the items of a list in which `key` equals `value` */
  | { readonly take: "where"; readonly key: string; readonly value: string | number | boolean }
/** Empty: the whole result. */
export type ExtractPath = readonly ExtractStep[]

const NAME = "[A-Za-z_$][A-Za-z0-9_$-]*"
const STEP = new RegExp(
  `\\.(${NAME})|\\[(\\d{1,9})\\]|\\[(\\*)\\]|\\[\\?\\(@\\.(${NAME})\\s{0,8}==\\s{0,8}(?:'([^'\\\\]*)'|"([^"\\\\]*)"|(-?\\d{1,15}(?:\\.\\d{1,9})?|true|false))\\)\\]`,
  "y",
)
const literal = (text: string): string | number | boolean =>
  text === "true" ? true : text === "false" ? false : Number(text)

export function parseExtract(text: string): ExtractPath | undefined {
  if (!text.startsWith("$") || text.length > limits.extractLength) return undefined
  const steps: ExtractStep[] = []
  for (let at = 1; at < text.length; at = STEP.lastIndex) {
    STEP.lastIndex = at
    const found = STEP.exec(text)
    if (found === null || steps.length >= limits.extractSteps) return undefined
    const [, name, index, all, key = "", single, double, bare] = found
    if (name !== undefined) steps.push({ take: "property", name })
    else if (index !== undefined) steps.push({ take: "item", index: Number(index) })
    else if (all !== undefined) steps.push({ take: "all" })
    else steps.push({ take: "where", key, value: single ?? double ?? literal(bare ?? "") })
  }
  return steps
}

/** Absent: the whole result. */
export function readExtract(text: string | undefined, path: string, context: Context): ExtractPath {
  const parsed = text === undefined ? [] : parseExtract(text)
  if (parsed === undefined)
    context.report.error(
      "extract-syntax",
      path,
      `\`${shown(text)}\` is not a path into a result`,
      "write `$`, `.name`, `[0]`, `[*]` or `[?(@.key=='value')]`, as in `$.data[0].url`",
    )
  return parsed ?? []
}
