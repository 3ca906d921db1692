/** `caisson why`: each driver with the phase and reason that kept or dropped it, then the profile of the call. */
import type { WhyReport } from "../../host/types.ts"
import { exit, exitOfError } from "../exit.ts"
import { withHost } from "../host.ts"
import { profileRows } from "../render/profile.ts"
import { table } from "../render/table.ts"
import { resultJson, type Terminal, visible } from "../terminal.ts"
import { type CallFlags, requestFrom } from "./call.ts"

const show = (report: WhyReport, terminal: Terminal): void => {
  const paint = terminal.paintResult
  const rows = report.rows.map((row) => {
    const phase =
      row.phase === "selected" ? paint.green(row.phase) : row.phase === "rank" ? row.phase : paint.red(row.phase)
    return [visible(row.driver), row.kind, phase, visible(row.reason)]
  })
  terminal.result(table(["DRIVER", "KIND", "PHASE", "REASON"], rows, terminal.width))
  if (report.error !== undefined) {
    terminal.result(`\n${paint.red(report.error.code)}  ${visible(report.error.message)}`)
    terminal.result(`${paint.cyan("hint")}  ${visible(report.error.hint)}`)
  }
  if (report.profile === undefined) return
  terminal.result("")
  terminal.result(
    table(
      ["SEALED", "PROFILE"],
      profileRows(report.profile).map((row) => [...row]),
      terminal.width,
    ),
  )
  if (report.profileDigest !== undefined) terminal.result(paint.dim(`profile ${report.profileDigest}`))
}

/** Files placed in the sandbox are told by size; their bytes help nobody here. */
const plain = (report: WhyReport): object => ({
  ...report,
  ...(report.profile === undefined
    ? {}
    : {
        profile: {
          ...report.profile,
          files: Object.fromEntries(
            Object.entries(report.profile.files).map(([path, bytes]) => [path, { bytes: bytes.length }]),
          ),
        },
      }),
})

export const run = async (tool: string, flags: CallFlags, terminal: Terminal): Promise<number> => {
  const request = requestFrom(tool, flags)
  return withHost(flags, terminal, async (host) => {
    const report = await terminal.during(host.why(request), tool)
    if (flags.json === true || !terminal.isInteractive) resultJson(terminal, plain(report))
    else show(report, terminal)
    return report.error === undefined ? exit.ok : exitOfError(report.error)
  })
}
