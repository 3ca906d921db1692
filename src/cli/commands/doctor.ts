/**
 * `caisson doctor`: every control, the canary's evidence, and what to do where it does not hold.
 *
 * Guarantees: exit code 5 if a control that calls need is absent. Control groups are not: without them limits hold
 * per process, which the limits' own canaries report.
 */
import type { ControlReport } from "../../sandbox/backend.ts"
import { exit } from "../exit.ts"
import { withHost } from "../host.ts"
import { table } from "../render/table.ts"
import { type Colors, resultJson, type Terminal } from "../terminal.ts"
import { inline } from "../visible.ts"
import type { ListFlags } from "./tools.ts"

const optional: ReadonlySet<string> = new Set(["cgroups"])

const stateText = (state: ControlReport["state"], paint: Colors): string =>
  state === "enforced" ? paint.green(state) : state === "degraded" ? paint.yellow(state) : paint.red(state)

export const run = async (flags: ListFlags, terminal: Terminal): Promise<number> =>
  withHost(flags, terminal, async (host) => {
    const reports = await terminal.during(host.doctor(), "trying each control")
    const isWhole = reports.every((report) => report.state !== "absent" || optional.has(report.control))
    if (flags.json === true || !terminal.isInteractive) resultJson(terminal, { ok: isWhole, controls: reports })
    else {
      const paint = terminal.paintResult
      const rows = reports.map((report) => [
        paint.bold(report.control),
        stateText(report.state, paint),
        inline(report.evidence) + (report.fix === undefined ? "" : `\n${paint.cyan("fix")} ${inline(report.fix)}`),
      ])
      terminal.result(table(["CONTROL", "STATE", "EVIDENCE"], rows, terminal.width))
    }
    return isWhole ? exit.ok : exit.hostBroken
  })
