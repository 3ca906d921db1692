/**
 * `caisson receipts`: the audit entries of calls, oldest first, as they stand in the log; exit 3 where there is no log, as
 * `caisson verify` has it. `receipts export`: the same as lines of JSON, and without a filter the log itself.
 *
 * Guarantees: reads only, so that it works on a copy that nobody may write; an export holds no more in memory than a few
 * entries, however long the log is.
 */
import { resolve } from "node:path"
import type { AuditEvent } from "../../../host/receipts/event.ts"
import { jcs } from "../../../manifest/values/digest.ts"
import { dataFolderOf } from "../../../host/data/folder.ts"
import type { CallError } from "../../../host/types.ts"
import { exit, exitOfError } from "../../exit.ts"
import { table } from "../../render/table.ts"
import { resultJson, type Terminal } from "../../terminal.ts"
import { inline } from "../../visible.ts"
import { says } from "../../texts.ts"

export interface ReceiptFilters {
  readonly call?: string
  readonly tool?: string
  readonly user?: string
  readonly verdict?: string
  readonly since?: string
  readonly until?: string
  readonly wrote?: string
  readonly host?: string
  readonly denied?: boolean
}
export interface ReceiptFlags extends ReceiptFilters {
  readonly limit?: string
  readonly json?: boolean
}

const text = (value: unknown): string =>
  typeof value === "string" ? inline(value) : value === undefined ? "" : inline(JSON.stringify(value))

const driverOf = (value: unknown): string => {
  const { id, version } = (value ?? {}) as { readonly id?: unknown; readonly version?: unknown }
  return [id, version]
    .filter((part) => part !== undefined)
    .map(text)
    .join("@")
}
const deniedOf = (value: unknown): string =>
  (Array.isArray(value) ? (value as readonly { readonly layer?: unknown; readonly target?: unknown }[]) : [])
    .map(({ layer, target }) => `${text(layer)} ${text(target)}`)
    .join(", ")

/** What became of a call; of what is no call, what was done (`grant.created`). */
const verdictOf = ({ action, metadata = {} }: AuditEvent): string =>
  [...(action === "tool.invoked" ? [] : [action]), text(metadata["verdict"])].filter((part) => part !== "").join(" ")

const tableOf = (found: readonly AuditEvent[], isOfDenials: boolean, width: number): string =>
  table(
    ["TIME", "CALL", "TOOL", "DRIVER", "VERDICT", isOfDenials ? "DENIED" : "RECEIPT"],
    found.map((event) => {
      const { ts, subject, metadata = {}, hash } = event
      return [
        ts,
        text(metadata["call"]),
        text(subject.ref),
        driverOf(metadata["driver"]),
        verdictOf(event),
        isOfDenials ? deniedOf(metadata["denied"]) : `sha256:${hash.slice(0, 12)}…`,
      ]
    }),
    width,
  )

const refused = (error: CallError, terminal: Terminal): number => {
  terminal.say(`caisson: ${error.code}: ${inline(error.message)}`)
  terminal.say(`hint: ${inline(error.hint)}`)
  return exitOfError(error)
}

const filtersOf = ({
  call,
  tool,
  user,
  verdict,
  since,
  until,
  wrote,
  host,
  denied,
}: ReceiptFilters): ReceiptFilters => {
  const given = { call, tool, user, verdict, since, until, wrote: wrote && resolve(wrote), host, denied }
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined))
}

/** Whoever asks here can read the file: nothing of it is kept from them. */
const openFound = async (data: string, filters: ReceiptFilters, limit = Number.POSITIVE_INFINITY) => {
  const { receiptsIn } = await import("../../../host/questions/receipts.ts")
  return receiptsIn(data, filters, limit)
}

const countOf = (limit: string | undefined): number | undefined =>
  limit === undefined ? Number.POSITIVE_INFINITY : /^[1-9][0-9]{0,8}$/.test(limit) ? Number(limit) : undefined

/** Exit 3 and why, where there is no chain to read from. */
const absent = async (data: string, terminal: Terminal): Promise<boolean> => {
  const { verifyChain } = await import("../../../host/receipts/verify.ts")
  const verdict = await verifyChain(data)
  if (verdict.ok || verdict.code !== "chain.absent") return false
  terminal.say(`caisson: ${verdict.code}: ${inline(verdict.message)}`)
  return true
}

export const run = async (flags: ReceiptFlags, terminal: Terminal): Promise<number> => {
  const data = dataFolderOf(undefined)
  const limit = countOf(flags.limit)
  if (limit === undefined) {
    terminal.say(`caisson: --limit takes a whole number above 0, not ${inline(flags.limit ?? "")}`)
    return exit.usage
  }
  const asked = await openFound(data, filtersOf(flags), limit)
  if (!asked.ok) return refused(asked.error, terminal)
  const found: AuditEvent[] = []
  for await (const event of asked.found) found.push(event)
  const asJson = flags.json === true || !terminal.isInteractive
  if (found.length === 0 && (await absent(data, terminal))) {
    if (flags.call === undefined && asJson) resultJson(terminal, found)
    return exit.refused
  }
  if (flags.call !== undefined && found.length === 0) {
    terminal.say(`caisson: there is no receipt of call ${inline(flags.call)} in ${inline(data)}`)
    return exit.usage
  }
  if (asJson || flags.call !== undefined) resultJson(terminal, found)
  else if (found.length === 0) terminal.say(says.noReceipts)
  else terminal.result(tableOf(found, flags.denied === true, terminal.width))
  return exit.ok
}

/** Waits for whoever reads it. */
const put = (line: string): Promise<void> | undefined =>
  process.stdout.write(line) ? undefined : new Promise((done) => process.stdout.once("drain", () => done()))

export const exported = async (flags: ReceiptFilters, terminal: Terminal): Promise<number> => {
  const data = dataFolderOf(undefined)
  const filters = filtersOf(flags)
  let count = 0
  if (Object.keys(filters).length === 0) {
    const { exportedLines } = await import("../../../host/questions/receipts.ts")
    for await (const line of exportedLines(data)) {
      count += 1
      await put(line)
    }
  } else {
    const asked = await openFound(data, filters)
    if (!asked.ok) return refused(asked.error, terminal)
    for await (const event of asked.found) {
      count += 1
      await put(`${jcs(event)}\n`)
    }
  }
  return count === 0 && (await absent(data, terminal)) ? exit.refused : exit.ok
}
