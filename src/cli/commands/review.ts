/**
 * `caisson review DRIVER [--accept DIGEST]`: what its server says of its tools, what changed since it was accepted, and a yes.
 *
 * Guarantees: a server's words are shown with everything in them that steers a terminal made visible.
 */
import { reasons } from "../../host/reasons.ts"
import type { ReviewedTool, ReviewReport } from "../../host/types.ts"
import { exit } from "../exit.ts"
import { type HostFlags, withHost } from "../host.ts"
import { resultJson, type Terminal } from "../terminal.ts"
import { says } from "../texts.ts"
import { typedAgain } from "../typed-again.ts"
import { inline } from "../visible.ts"

interface ReviewFlags extends HostFlags {
  readonly json?: boolean
  readonly accept?: string
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
  if (report.tools.length === 0) return terminal.say(says.nothingReviewed)
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
    const { accept } = flags
    const report = await terminal.during(host.review(driver, accept === undefined ? {} : { accept }), driver)
    const asJson = flags.json === true || !terminal.isInteractive
    if (asJson) resultJson(terminal, report)
    if (!report.ok || !asJson) show(report, flags, terminal)
    if (report.ok) return exit.ok
    const { code } = report.error
    return Object.hasOwn(reasons, code) ? reasons[code as keyof typeof reasons].exit : exit.usage
  })
