/** `caisson why`: each driver with the phase and reason that kept or dropped it, then the profile of the call. */
import type { ToldWhy } from "../../host/questions/told.ts"
import { exit, exitOfError } from "../exit.ts"
import { onInterrupt } from "../interrupt.ts"
import { withCaisson } from "../reach/with-caisson.ts"
import { profileRows } from "../render/profile.ts"
import { table } from "../render/table.ts"
import { resultJson, type Terminal } from "../terminal.ts"
import { inline } from "../visible.ts"
import { says } from "../texts.ts"
import { type CallFlags, reachOf, requestFrom } from "./call.ts"

const show = (report: ToldWhy, terminal: Terminal): void => {
  const paint = terminal.paintResult
  const rows = report.rows.map((row) => {
    const phase =
      row.phase === "selected" ? paint.green(row.phase) : row.phase === "rank" ? row.phase : paint.red(row.phase)
    return [inline(row.driver), row.kind, phase, inline(row.reason)]
  })
  if (rows.length > 0) terminal.result(`${table(["DRIVER", "KIND", "PHASE", "REASON"], rows, terminal.width)}\n`)
  if (report.error !== undefined) {
    terminal.result(`${paint.red(report.error.code)}  ${inline(report.error.message)}`)
    terminal.result(`${paint.cyan("hint")}  ${inline(report.error.hint)}`)
  }
  if (report.profile === undefined) return
  terminal.result(
    table(
      ["SEALED", "PROFILE"],
      [...profileRows(report, report.profile).map((row) => [...row]), ["digest", report.profileDigest ?? "none"]],
      terminal.width,
    ),
  )
}

export const run = async (tool: string, flags: CallFlags, terminal: Terminal): Promise<number> => {
  using interrupt = onInterrupt(() => terminal.say(`caisson: ${says.cancelling}`))
  const { request, options } = await requestFrom(tool, flags, interrupt.signal)
  return await withCaisson({ ...flags, ...reachOf(options) }, terminal, async (caisson) => {
    const report = await terminal.during(caisson.why(request, options), tool)
    if (flags.json === true || !terminal.isInteractive) resultJson(terminal, report)
    else show(report, terminal)
    return report.error === undefined ? exit.ok : exitOfError(report.error)
  })
}
