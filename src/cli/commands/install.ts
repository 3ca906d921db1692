/**
 * `caisson install DRIVER`: its packages, installed and frozen, and its version checked.
 *
 * Guarantees: what happens is told on stderr while it does; stdout carries the report alone. Ctrl-C ends it, and leaves
 * nothing half there.
 */
import { reasons } from "../../host/reasons.ts"
import type { InstallProgress } from "../../host/index.ts"
import type { InstallReport } from "../../host/types.ts"
import { exit } from "../exit.ts"
import { type HostFlags, withHost } from "../host.ts"
import { onInterrupt } from "../interrupt.ts"
import { resultJson, type Terminal } from "../terminal.ts"
import { says } from "../texts.ts"
import { inline } from "../visible.ts"

interface InstallFlags extends HostFlags {
  readonly json?: boolean
}

/** How far a download is, in steps that a person can read. */
const STEP = 10

const lineOf = (progress: InstallProgress): string => {
  const line = `${progress.phase} ${inline(progress.what)}`
  if (progress.phase === "passing over") return `${line}: ${inline(progress.reason)}`
  if (progress.phase !== "downloading" || progress.total === undefined || progress.total === 0) return line
  return `${line} ${Math.floor(((progress.bytes / progress.total) * 100) / STEP) * STEP} %`
}

const show = (report: InstallReport, terminal: Terminal): void => {
  if (!report.ok) {
    terminal.say(`caisson: ${report.error.code}: ${inline(report.error.message)}`)
    terminal.say(`hint: ${inline(report.error.hint)}`)
    return
  }
  const { driver, version, layers } = report
  terminal.result(`${inline(driver)} is there${version === undefined ? "" : ` in version ${inline(version)}`}`)
  if (layers.length === 0) terminal.say(says.nothingToInstall)
  for (const { source, digest, packages } of layers)
    terminal.result(`  ${source}  ${digest}  ${packages.length} ${packages.length === 1 ? "package" : "packages"}`)
}

export const run = async (driver: string, flags: InstallFlags, terminal: Terminal): Promise<number> => {
  using interrupt = onInterrupt(() => terminal.say(`caisson: ${says.cancelling}`))
  return await withHost(flags, terminal, async (host) => {
    let last = ""
    const report = await terminal.during(
      host.install(driver, {
        signal: interrupt.signal,
        onProgress: (progress) => {
          const line = lineOf(progress)
          if (line !== last && progress.phase !== "done") terminal.say(line)
          last = line
        },
      }),
      driver,
    )
    if (flags.json === true || !terminal.isInteractive) resultJson(terminal, report)
    if (!report.ok || (flags.json !== true && terminal.isInteractive)) show(report, terminal)
    if (report.ok) return exit.ok
    const { code } = report.error
    return Object.hasOwn(reasons, code) ? reasons[code as keyof typeof reasons].exit : exit.usage
  })
}
