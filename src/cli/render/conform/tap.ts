/**
 * A conformance run as TAP 14.
 *
 * Guarantees: one line a case, whatever its name holds; what could not be tried counts as not ok. Pure.
 */
import { inline, noRunnerCommand } from "../../visible.ts"
import type { Tried } from "./report.ts"

const named = (said: string): string => inline(said, true).replace(/[\\#]/g, "\\$&")

const quoted = (said: string): string => JSON.stringify(noRunnerCommand(inline(said, true)))

const point = ({ each, result }: Tried, at: number): string => {
  const { outcome, why, code } = result
  const line = `${outcome === "passed" || outcome === "skipped" ? "ok" : "not ok"} ${at + 1} - ${named(each.title)}`
  if (outcome === "passed") return line
  if (outcome === "skipped") return `${line} # SKIP ${named(why[0] ?? "")}`
  const facts = [
    `message: ${quoted(why[0] ?? "")}`,
    `severity: ${outcome === "blocked" ? "error" : "fail"}`,
    ...(code === undefined ? [] : [`code: ${quoted(code)}`]),
    `at: ${quoted(`${each.file}${each.line === undefined ? "" : `:${each.line}`}`)}`,
    ...(why.length > 1 ? ["more:", ...why.slice(1).map((more) => `  - ${quoted(more)}`)] : []),
  ]
  return [line, "  ---", ...facts.map((fact) => `  ${fact}`), "  ..."].join("\n")
}

export const tapOf = (tried: readonly Tried[]): string =>
  `${["TAP version 14", `1..${tried.length}`, ...tried.map(point)].join("\n")}\n`
