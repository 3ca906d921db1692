/** `caisson prune`: installed packages that no registered driver asks for, removed. */
import { reasons } from "../../host/reasons.ts"
import { exit } from "../exit.ts"
import { type HostFlags, withHost } from "../host.ts"
import { resultJson, type Terminal } from "../terminal.ts"
import { inline } from "../visible.ts"

export const run = (flags: HostFlags & { readonly json?: boolean }, terminal: Terminal): Promise<number> =>
  withHost(flags, terminal, async (host) => {
    const report = await terminal.during(host.prune())
    if (!report.ok) {
      terminal.say(`caisson: ${inline(report.error.message)}`)
      return reasons.unauthorised.exit
    }
    if (flags.json === true || !terminal.isInteractive) resultJson(terminal, report)
    else
      terminal.result(
        `${report.removed.length} ${report.removed.length === 1 ? "layer" : "layers"} removed, ${Math.ceil(report.bytes / 2 ** 20)} MiB`,
      )
    return exit.ok
  })
