/**
 * Questions about receipts, as callers ask them.
 *
 * Guarantees: what is asked is checked before anything is looked for. A caller is told of its own user's entries, an
 * operator of all of its tenant; what is somebody else's is not there.
 */
import { isAbsolute, normalize } from "node:path"
import { takingTurns } from "../../sandbox/effects/breath.ts"
import { type Caller, isOperator } from "../access/caller.ts"
import { callErrorOf, type Failure } from "../failure.ts"
import { hostLimits } from "../limits.ts"
import { reasons } from "../reasons.ts"
import { type AuditEvent, parseEvent } from "../receipts/event.ts"
import type { ReceiptIndex } from "../receipts/index-file.ts"
import { linesOfLog } from "../receipts/segments.ts"
import type { ReceiptQuery } from "../receipts/query.ts"
import { mayBeTold } from "../receipts/whose.ts"
import type { ReceiptsExport, ReceiptsOptions, ReceiptsReport } from "../types.ts"

type Asked = Omit<ReceiptsOptions, "caller">
type Read = { readonly ok: true; readonly query: ReceiptQuery; readonly after?: number } | Failure

const bad = (field: string, message: string, hint: string): Failure => ({
  ok: false,
  code: "input_invalid",
  message: `\`${field}\` ${message}`,
  hint,
  details: { field },
})
const INSTANT = /^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d:\d\d))?$/
const TOOL = /^[A-Za-z0-9?][A-Za-z0-9._/-]{0,255}(@[0-9]{1,9})?$/
const HOST = /^[^\s/?#@]{1,255}$/
/** A tool's own codes are `domain:code`. */
const OWN_CODE = /^[A-Za-z0-9._-]{1,128}:[A-Za-z0-9._-]{1,128}$/
const isVerdict = (text: string): boolean => text === "ok" || Object.hasOwn(reasons, text) || OWN_CODE.test(text)
const CURSOR = /^[0-9]{1,15}$/

const readReceiptQuery = ({ since, until, cursor, limit: _limit, ...rest }: Asked): Read => {
  for (const [field, value] of Object.entries({ since, until }))
    if (value !== undefined && (!INSTANT.test(value) || Number.isNaN(Date.parse(value))))
      return bad(field, "is no date-time", "write it as 2026-01-31 or 2026-01-31T12:00:00Z")
  if (since !== undefined && until !== undefined && Date.parse(until) <= Date.parse(since))
    return bad("until", "is not after `since`", "name a later day or moment")
  if (rest.tool !== undefined && !TOOL.test(rest.tool))
    return bad("tool", "is no tool's name", "write `id` or `id@major`")
  if (rest.verdict !== undefined && !isVerdict(rest.verdict))
    return bad("verdict", "is none that a call can end with", "write `ok`, or a code of docs/reasons.md")
  if (rest.host !== undefined && !HOST.test(rest.host))
    return bad("host", "is no host", "write `host` or `host:port`, without a scheme or a path")
  if (rest.wrote !== undefined && !isAbsolute(rest.wrote))
    return bad("wrote", "is not an absolute path", "name the folder or file from the root, such as /srv/work/notes")
  if (cursor !== undefined && !CURSOR.test(cursor))
    return bad("cursor", "is none that an answer gave", "take `next` of the page before")
  return {
    ok: true,
    query: {
      ...rest,
      ...(rest.wrote === undefined ? {} : { wrote: normalize(rest.wrote) }),
      ...(since === undefined ? {} : { since: Date.parse(since) }),
      ...(until === undefined ? {} : { until: Date.parse(until) }),
    },
    ...(cursor === undefined ? {} : { after: Number(cursor) }),
  }
}

export const tellReceipts = async (index: ReceiptIndex, asked: Asked, caller: Caller): Promise<ReceiptsReport> => {
  const read = readReceiptQuery(asked)
  if (!read.ok) return { ok: false, error: callErrorOf(read) }
  const limit = Math.min(asked.limit ?? 50, hostLimits.receiptsTold.value)
  const found = await index.find(
    read.query,
    { limit, ...(read.after === undefined ? {} : { after: read.after }) },
    caller,
  )
  if (found === undefined)
    return {
      ok: false,
      error: callErrorOf({
        ok: false,
        code: "overloaded",
        message: "the log of receipts is still being indexed",
        hint: "ask again in a moment",
        details: {},
      }),
    }
  return { ok: true, receipts: found.entries, ...(found.next === undefined ? {} : { next: String(found.next) }) }
}

type Found = { readonly ok: true; readonly found: AsyncIterable<AuditEvent> } | Extract<ReceiptsReport, { ok: false }>

async function* pagesOf(data: string, query: ReceiptQuery, most: number): AsyncGenerator<AuditEvent> {
  const { openReceiptIndex } = await import("../receipts/index-file.ts")
  using index = openReceiptIndex(data, "own")
  const isReceipt = ({ action }: AuditEvent): boolean => action !== "audit.note"
  const limit = hostLimits.receiptsTold.value
  const last: AuditEvent[] = []
  let after: number | undefined
  do {
    const first = most === Number.POSITIVE_INFINITY
    const page = await index.find(query, { limit, first, ...(after === undefined ? {} : { after }) })
    after = page?.next
    const receipts = page?.entries.filter(isReceipt) ?? []
    if (first) yield* receipts
    else last.push(...receipts)
  } while (after !== undefined && last.length < most)
  yield* last.slice(0, most).reverse()
}

/** Of a folder that need be no host's, for whoever can read it: the first in the log first; of the last `most`. */
export const receiptsIn = (data: string, asked: Asked, most = Number.POSITIVE_INFINITY): Found => {
  const read = readReceiptQuery(asked)
  return read.ok ? { ok: true, found: pagesOf(data, read.query, most) } : { ok: false, error: callErrorOf(read) }
}

/** Whole lines alone. One that is being written meanwhile is for the next time. */
export async function* exportedLines(
  data: string,
  fits: (line: string) => boolean = () => true,
): AsyncGenerator<string> {
  const breath = takingTurns()
  for (const { text, terminated } of linesOfLog(data)) {
    await breath.take()
    if (terminated && fits(text)) yield `${text}\n`
  }
}

export const exportReceipts = (data: string, caller: Caller): ReceiptsExport => {
  if (!isOperator(caller))
    return {
      ok: false,
      error: callErrorOf({ ok: false, code: "unauthorised", message: "only operators export receipts", details: {} }),
    }
  // Whoever owns the folder can read the file anyway, and only all of it can be verified as a chain.
  if (caller.how === "process" || caller.how === "socket") return { ok: true, lines: exportedLines(data) }
  const isOfTenant = (line: string): boolean => {
    const parsed = parseEvent(line)
    return parsed.ok && mayBeTold(parsed.event, caller)
  }
  return { ok: true, lines: exportedLines(data, isOfTenant) }
}
