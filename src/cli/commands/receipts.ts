/** `caisson receipts`: the audit entries of calls, oldest first, as they stand in the log. Reads only. */
import type { AuditEvent } from "../../host/receipts/event.ts"
import { dataFolderOf } from "../../host/data/folder.ts"
import { exit } from "../exit.ts"
import { table } from "../render/table.ts"
import { resultJson, type Terminal } from "../terminal.ts"
import { inline } from "../visible.ts"
import { says } from "../texts.ts"

export interface ReceiptFlags {
  readonly call?: string
  readonly json?: boolean
}

const text = (value: unknown): string =>
  typeof value === "string" ? inline(value) : value === undefined ? "" : inline(JSON.stringify(value))

const rowOf = (event: AuditEvent): string[] => {
  const metadata = event.metadata ?? {}
  return [
    event.ts,
    text(metadata["call"]),
    text(event.subject.ref),
    text(metadata["verdict"]),
    `sha256:${event.hash.slice(0, 12)}…`,
  ]
}

export const run = async (flags: ReceiptFlags, terminal: Terminal): Promise<number> => {
  const { readReceipts } = await import("../../host/receipts/verify.ts")
  const found = readReceipts(dataFolderOf(undefined), flags.call === undefined ? {} : { call: flags.call })
  if (flags.call !== undefined && found.length === 0) {
    terminal.say(`caisson: there is no receipt of call ${inline(flags.call)} in ${inline(dataFolderOf(undefined))}`)
    return exit.usage
  }
  if (flags.json === true || !terminal.isInteractive) resultJson(terminal, found)
  else if (flags.call !== undefined) resultJson(terminal, found)
  else if (found.length === 0) terminal.say(says.noReceipts)
  else terminal.result(table(["TIME", "CALL", "TOOL", "VERDICT", "RECEIPT"], found.map(rowOf), terminal.width))
  return exit.ok
}
