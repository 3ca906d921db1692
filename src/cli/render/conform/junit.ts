/**
 * A conformance run as JUnit XML, in the dialect that Jenkins, GitLab and GitHub's actions read.
 *
 * Guarantees: well-formed XML 1.0 whatever tools and manifests say: what XML cannot hold, or what steers a terminal, is
 * spelt out. Pure.
 */
import { visible } from "../../visible.ts"
import { countsOf, type Tried } from "./report.ts"

const marks: Readonly<Record<string, string>> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&apos;" }
const noXml = /[\ufffe\uffff]/g

const text = (said: string): string =>
  visible(said, true)
    .replace(noXml, (char) => `\\u{${char.charCodeAt(0).toString(16)}}`)
    .replace(/[&<>"']/g, (mark) => marks[mark] as string)

const attribute = (said: string): string => text(said).replaceAll("\n", "&#10;").replaceAll("\t", "&#9;")
const seconds = (ms: number): string => (ms / 1000).toFixed(3)

const caseXml = ({ each, result }: Tried): string => {
  const { outcome, why, ms } = result
  const facts = [
    `name="${attribute(each.name)}"`,
    `classname="${attribute(each.tool === "" ? each.driver : `${each.driver}.${each.tool}`)}"`,
    `file="${attribute(each.file)}"`,
    ...(each.line === undefined ? [] : [`line="${each.line}"`]),
    `time="${seconds(ms)}"`,
  ].join(" ")
  if (outcome === "passed") return `    <testcase ${facts}/>`
  const element = { failed: "failure", blocked: "error", skipped: "skipped" }[outcome]
  const type = outcome === "skipped" ? "" : ` type="${attribute(result.code ?? outcome)}"`
  const message = `message="${attribute(why[0] ?? outcome)}"`
  return `    <testcase ${facts}>\n      <${element} ${message}${type}>${text(why.join("\n"))}</${element}>\n    </testcase>`
}

const figures = (tried: readonly Tried[]): string => {
  const { failed, blocked, skipped } = countsOf(tried)
  const time = tried.reduce((sum, { result }) => sum + result.ms, 0)
  return `tests="${tried.length}" failures="${failed}" errors="${blocked}" skipped="${skipped}" time="${seconds(time)}"`
}

export const junitOf = (tried: readonly Tried[]): string => {
  const suites = Map.groupBy(tried, ({ each }) => each.driver)
  const bodies = Array.from(
    suites,
    ([driver, cases]) =>
      `  <testsuite name="${attribute(driver)}" ${figures(cases)}>\n${cases.map(caseXml).join("\n")}\n  </testsuite>`,
  )
  const head = `<?xml version="1.0" encoding="UTF-8"?>\n<testsuites name="caisson conform" ${figures(tried)}>`
  return `${[head, ...bodies].join("\n")}\n</testsuites>\n`
}
