/**
 * A conformance run as TAP 14.
 *
 * Guarantees: one line a case, whatever its name holds; what could not be tried counts as not ok. Pure.
 */
import { inline } from "../../visible.ts"
import type { Tried } from "./report.ts"

const named = (said: string): string => inline(said, true).replace(/[\\#]/g, "\\$&")

const point = ({ each, result }: Tried, at: number): string => {
  const { outcome, why, code } = result
  const line = `${outcome === "passed" || outcome === "skipped" ? "ok" : "not ok"} ${at + 1} - ${named(each.title)}`
  if (outcome === "passed") return line
  if (outcome === "skipped") return `${line} # SKIP ${named(why[0] ?? "")}`
  const facts = [
    `message: ${JSON.stringify(inline(why[0] ?? "", true))}`,
    `severity: ${outcome === "blocked" ? "error" : "fail"}`,
    ...(code === undefined ? [] : [`code: ${JSON.stringify(inline(code, true))}`]),
    `at: ${JSON.stringify(inline(`${each.file}${each.line === undefined ? "" : `:${each.line}`}`, true))}`,
    ...(why.length > 1 ? ["more:", ...why.slice(1).map((more) => `  - ${JSON.stringify(inline(more, true))}`)] : []),
  ]
  return [line, "  ---", ...facts.map((fact) => `  ${fact}`), "  ..."].join("\n")
}

export const tapOf = (tried: readonly Tried[]): string =>
  `${["TAP version 14", `1..${tried.length}`, ...tried.map(point)].join("\n")}\n`
