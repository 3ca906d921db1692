/**
 * `caisson review DRIVER [--html FILE] [--accept DIGEST]`: one page on what a driver asks for, what it did, what is risky and
 * what changed since it was accepted; what its server says of its tools; and a yes.
 *
 * Guarantees: a server's words, and a driver's, are shown with everything in them that steers a terminal made visible. The
 * page of HTML is a new file.
 */
import { basename, dirname, resolve } from "node:path"
import { pageHtml, pageLines } from "../../authoring/review/page.ts"
import { reasons } from "../../host/reasons.ts"
import type { ReviewedTool, ReviewReport } from "../../host/types.ts"
import { exit } from "../exit.ts"
import { type HostFlags, withHost } from "../host.ts"
import { resultJson, type Terminal } from "../terminal.ts"
import { says } from "../texts.ts"
import { typedAgain } from "../typed-again.ts"
import { inline } from "../visible.ts"
import { asksFor, pageOf } from "./authoring/review-page.ts"
import { writeNew } from "./authoring/write-new.ts"

interface ReviewFlags extends HostFlags {
  readonly json?: boolean
  readonly accept?: string
  readonly html?: string
}

const textOf = (value: unknown): string => (value === undefined ? "(none)" : inline(JSON.stringify(value)))

/** One line for what was, one for what is, of each part that differs. */
const changes = ({ accepted, waiting }: ReviewedTool): readonly string[] => {
  if (waiting === undefined) return []
  const [before, now] = [accepted.offer ?? {}, waiting.offer ?? {}]
  return [...new Set([...Object.keys(before), ...Object.keys(now)])]
    .filter((key) => JSON.stringify(before[key]) !== JSON.stringify(now[key]))
    .flatMap((key) => [`  - ${inline(key)}: ${textOf(before[key])}`, `  + ${inline(key)}: ${textOf(now[key])}`])
}

const show = (report: ReviewReport, { manifests }: ReviewFlags, terminal: Terminal): void => {
  if (!report.ok) {
    terminal.say(`caisson: ${report.error.code}: ${inline(report.error.message)}`)
    terminal.say(`hint: ${inline(report.error.hint)}`)
    return
  }
  const { asks } = report
  if (asks?.waiting !== undefined) {
    const command = `caisson review ${report.driver} --accept ${asks.waiting.digest}`
    terminal.say(
      `what it asks for has changed since ${asks.accepted.at}; accept it with: ${inline(typedAgain(command, manifests))}`,
    )
  }
  if (report.tools.length === 0) return asks === undefined ? terminal.say(says.nothingReviewed) : undefined
  for (const tool of report.tools) {
    const { name, accepted, waiting } = tool
    terminal.result(`${inline(name)}  ${accepted.digest}  accepted ${accepted.at} by ${inline(accepted.by ?? "")}`)
    if (waiting === undefined) continue
    for (const line of changes(tool)) terminal.result(line)
    terminal.result(`  changed ${waiting.at}; accept it with:`)
    const command = `caisson review ${report.driver} --accept ${waiting.digest}`
    terminal.result(`  ${inline(typedAgain(command, manifests))}`)
  }
}

export const run = (driver: string, flags: ReviewFlags, terminal: Terminal): Promise<number> =>
  withHost(flags, terminal, async (host) => {
    const { accept, html } = flags
    const asks = (await asksFor(host, driver))?.map(({ text }) => text)
    const options = { ...(accept === undefined ? {} : { accept }), ...(asks === undefined ? {} : { asks }) }
    const report = await terminal.during(host.review(driver, options), driver)
    const asJson = flags.json === true || !terminal.isInteractive
    const page = report.ok ? await pageOf(host, report) : undefined
    if (asJson) resultJson(terminal, page === undefined ? report : { ...report, page: page.sections })
    else for (const line of page === undefined ? [] : pageLines(page)) terminal.result(inline(line))
    if (!report.ok || !asJson) show(report, flags, terminal)
    if (page !== undefined && html !== undefined) {
      const written = writeNew(dirname(resolve(html)), [{ path: basename(html), text: pageHtml(page) }])
      if (!written.ok) {
        terminal.say(`caisson: ${inline(written.message)}`)
        return exit.usage
      }
    }
    if (report.ok) return exit.ok
    const { code } = report.error
    return Object.hasOwn(reasons, code) ? reasons[code as keyof typeof reasons].exit : exit.usage
  })
