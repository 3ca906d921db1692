/**
 * A conformance run for GitHub's actions: an annotation where an example stands, and a summary as Markdown.
 *
 * Guarantees: what tools and manifests say begins no command of the runner's and no markup of the page's. Pure.
 */
import { relative } from "node:path"
import { inline } from "../../visible.ts"
import { countsOf, summaryOf, type Tried } from "./report.ts"

const data = (said: string): string =>
  inline(said, true).replaceAll("%", "%25").replaceAll("\r", "%0D").replaceAll("\n", "%0A")
const property = (said: string): string => data(said).replaceAll(":", "%3A").replaceAll(",", "%2C")

const placeOf = (file: string, root: string): string => {
  const path = relative(root, file)
  return path.startsWith("..") ? file : path
}

export const annotationsOf = (tried: readonly Tried[], root: string): readonly string[] =>
  tried
    .filter(({ result: { outcome } }) => outcome === "failed" || outcome === "blocked")
    .map(({ each, result }) => {
      const facts = [
        `file=${property(placeOf(each.file, root))}`,
        ...(each.line === undefined ? [] : [`line=${each.line}`]),
        `title=${property(each.title)}`,
      ]
      return `::error ${facts.join(",")}::${data(result.why.join(" · "))}`
    })

const cell = (said: string): string =>
  inline(said, true)
    .replace(/[&<>]/g, (mark) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;" })[mark] as string)
    .replace(/[\\`*_[\]|~#!@]/g, "\\$&")

const signs = { passed: "✓", failed: "✗", blocked: "!", skipped: "–" } as const

export const markdownOf = (tried: readonly Tried[]): string => {
  const rows = tried.map(({ each, result }) => {
    const cells = [signs[result.outcome], each.driver, each.tool, each.name, result.why.join(" · ")]
    return `| ${cells.map(cell).join(" | ")} |`
  })
  const head = `### caisson conform: ${summaryOf(countsOf(tried))}`
  return [head, "", "| | driver | tool | example | |", "|---|---|---|---|---|", ...rows, ""].join("\n")
}
