/**
 * Recompute the chain and name the first bad line.
 *
 * Guarantees: any change, removal, insertion or reordering of lines is found, a cut-off end included (the signed head
 * names the last entry), and so is a chain that is gone or was begun anew (a signed copy of the head lies apart from it);
 * a line that records found damage counts as bad. An absent chain is a finding. Works from the files alone, also where
 * none of them may be written; where the private key is at hand too, the head must be signed with a key that was
 * published next to it; where the verifier brings keys, with one of those.
 * The schemas that entries name lie beside the log, as their digests say.
 * Does not: change, make or lock for writing anything.
 */
import { existsSync, statSync } from "node:fs"
import { auditAnchorFile, auditHeadFile, auditLogFile } from "../../data-folder/paths.ts"
import { jcs } from "../../manifest/values/digest.ts"
import type { JsonObject } from "../../manifest/types.ts"
import { type AuditEvent, GENESIS, hashOfEvent, parseEvent } from "./event.ts"
import { type HeadRead, isOnTheWay, readHead } from "./head.ts"
import { localKey, type PublishedKey, readPublishedKeys } from "./keys.ts"
import { linesOf } from "./lines.ts"
import { schemasIn } from "./schemas.ts"
import { lookBetweenAppends } from "./lock.ts"

export type ChainCode =
  | "chain.absent"
  | "chain.broken"
  | "chain.tampered"
  | "chain.seq_gap"
  | "schema.invalid"
  | "schema.missing"
  | "signature.invalid"
export type ChainVerdict =
  | { readonly ok: true; readonly entries: number; readonly head: string; readonly notes: readonly string[] }
  | { readonly ok: false; readonly line: number; readonly code: ChainCode; readonly message: string }

/** What a verifier knows from elsewhere. */
export interface KnownElsewhere {
  /** the head must be signed with one of these, whatever is published beside the log */
  readonly keys?: readonly PublishedKey[]
  /** hash of an entry that the chain must hold, with or without `sha256:` */
  readonly head?: string
}

interface Snapshot {
  readonly size: number
  readonly head: HeadRead
  readonly anchor: HeadRead
}

/** Size and heads as of one instant between two appends; the log only grows after it. */
const snapshot = (data: string, keys: readonly PublishedKey[]): Promise<Snapshot> =>
  lookBetweenAppends(data, () => ({
    size: statSync(auditLogFile(data), { throwIfNoEntry: false })?.size ?? 0,
    head: readHead(auditHeadFile(data), keys),
    anchor: readHead(auditAnchorFile(data), keys),
  }))

const bad = (line: number, code: ChainCode, message: string): ChainVerdict => ({ ok: false, line, code, message })

const checkLine = (text: string, number: number, previous: AuditEvent | undefined): ChainVerdict | AuditEvent => {
  const parsed = parseEvent(text)
  if (!parsed.ok) return bad(number, "schema.invalid", parsed.message)
  const { event } = parsed
  if (jcs(event as unknown as JsonObject) !== text)
    return bad(number, "chain.tampered", "the line is not in canonical form: its bytes are not those that were written")
  if (hashOfEvent(event) !== event.hash)
    return bad(number, "chain.tampered", "the entry's hash does not fit its content")
  const expected = previous === undefined ? 0 : previous.seq + 1
  if (event.seq !== expected)
    return bad(number, "chain.seq_gap", `the entry has seq ${event.seq} where ${expected} belongs`)
  const link = previous === undefined ? GENESIS : previous.hash
  if (event.prevHash !== link)
    return bad(number, "chain.broken", "the entry's prevHash is not the hash of the entry before it")
  const damage = event.action === "audit.note" ? event.metadata?.["damage"] : undefined
  if (damage !== undefined)
    return bad(
      number,
      "chain.broken",
      `the host found the log damaged when it wrote this line: ${JSON.stringify(damage)}`,
    )
  return event
}

/** A schema that an entry names must be there, and be what its digest says. */
const missingSchema = ({ metadata }: AuditEvent, there: ReadonlySet<string>): string | undefined => {
  const named = metadata?.["schemas"]
  if (typeof named !== "object" || named === null || Array.isArray(named)) return undefined
  return Object.values(named).find((digest): digest is string => typeof digest === "string" && !there.has(digest))
}

interface End {
  readonly lines: number
  readonly last: AuditEvent | undefined
  /** hash of the entry that the head names, where the log has it */
  readonly hashAtHead: string | undefined
  /** likewise of the entry that the copy of the head names */
  readonly hashAtAnchor: string | undefined
  readonly torn: boolean
}

const absent = (data: string, anchor: HeadRead): ChainVerdict =>
  bad(
    1,
    "chain.absent",
    anchor.found && anchor.signed
      ? `the chain in ${data} is gone: ${anchor.head.seq + 1} entries were written here, and none is left`
      : existsSync(data)
        ? `there is no chain of receipts in ${data}: no call was made on this data folder, or its evidence was removed`
        : `there is no folder ${data}, and so no chain of receipts`,
  )

const checkHead = (data: string, { head, anchor }: Snapshot, end: End, given: boolean): ChainVerdict => {
  const { lines: line, last, torn } = end
  if (last === undefined && !torn && !head.found) return absent(data, anchor)
  const notes: string[] = []
  const good = (): ChainVerdict => {
    if (anchor.found && !anchor.signed)
      return bad(Math.max(line, 1), "signature.invalid", `the copy of the head was changed: ${anchor.message}`)
    if (anchor.found && anchor.signed && end.hashAtAnchor !== anchor.head.hash)
      return bad(
        Math.min(line, anchor.head.seq) + 1,
        "chain.broken",
        `the signed copy of the head names an entry ${anchor.head.seq} that this log does not have: the chain was replaced`,
      )
    return { ok: true, entries: line, head: last === undefined ? GENESIS : `sha256:${last.hash}`, notes }
  }
  if (!head.found) {
    return bad(
      Math.max(line, 1),
      "signature.invalid",
      "there is no signed head pointer, so entries may be missing from the end",
    )
  }
  if (!head.signed) return bad(Math.max(line, 1), "signature.invalid", head.message)
  const local = given ? undefined : localKey(data)
  if (local !== undefined && !readPublishedKeys(data).some((key) => key.id === local.id))
    return bad(
      Math.max(line, 1),
      "signature.invalid",
      "this machine's own key is not among the published ones: the key list was replaced",
    )
  const { seq, hash } = head.head
  const seqAtEnd = last?.seq ?? -1
  const stopped = isOnTheWay(head.head, { seq: seqAtEnd, hash: last?.hash ?? GENESIS })
  if (torn && !stopped)
    return bad(
      line + 1,
      "chain.broken",
      "the last line is torn, and the signed head names no append that could have torn it",
    )
  if (stopped) {
    notes.push(
      `a writer was stopped in the middle of appending seq ${seq}; the next append repairs it${torn ? " and records the torn line" : ""}`,
    )
    return good()
  }
  if (seqAtEnd < seq)
    return bad(
      line + 1,
      "chain.broken",
      `the log ends at seq ${seqAtEnd} but its signed head names seq ${seq}: ${seq - seqAtEnd} entries are missing from the end`,
    )
  if (end.hashAtHead !== hash)
    return bad(seq + 1, "signature.invalid", "the signed head names another entry here: the log was rewritten")
  if (seqAtEnd > seq)
    return bad(seq + 2, "signature.invalid", `entries from seq ${seq + 1} on are not covered by the signed head`)
  return good()
}

export const verifyChain = async (data: string, elsewhere: KnownElsewhere = {}): Promise<ChainVerdict> => {
  const own = localKey(data)
  const keys = elsewhere.keys ?? [...readPublishedKeys(data), ...(own === undefined ? [] : [own])]
  const seen = await snapshot(data, keys)
  const { size, head, anchor } = seen
  const named = head.found && head.signed ? head.head.seq : -1
  const anchored = anchor.found && anchor.signed ? anchor.head.seq : -1
  const wanted = elsewhere.head?.replace(/^sha256:/, "").toLowerCase()
  let lines = 0
  let hashAtHead: string | undefined
  let hashAtAnchor: string | undefined
  let last: AuditEvent | undefined
  let torn = false
  let met = wanted === undefined
  let schemas: ReadonlySet<string> | undefined
  let lost: ChainVerdict | undefined
  for (const line of linesOf(auditLogFile(data), size)) {
    if (!line.terminated) {
      torn = true
      break
    }
    const checked = checkLine(line.text, line.number, last)
    if ("ok" in checked) return checked
    const schema = missingSchema(checked, (schemas ??= schemasIn(data)))
    lost ??=
      schema === undefined
        ? undefined
        : bad(
            line.number,
            "schema.missing",
            `the entry names the schema ${schema}, which is not in \`audit/schemas\`, or was changed`,
          )
    last = checked
    lines = line.number
    met ||= checked.hash === wanted
    if (checked.seq === named) hashAtHead = checked.hash
    if (checked.seq === anchored) hashAtAnchor = checked.hash
  }
  const verdict = checkHead(data, seen, { lines, last, hashAtHead, hashAtAnchor, torn }, elsewhere.keys !== undefined)
  if (!verdict.ok) return verdict
  if (met) return lost ?? verdict
  return bad(lines + 1, "chain.broken", `the chain does not hold the entry sha256:${wanted}: it was replaced or cut`)
}

/** The entries of calls, oldest first; of one call when `call` is given. Lines that are no entries are left out. */
export const readReceipts = (data: string, filter: { readonly call?: string } = {}): readonly AuditEvent[] => {
  const found: AuditEvent[] = []
  for (const line of linesOf(auditLogFile(data))) {
    if (!line.terminated) continue
    const parsed = parseEvent(line.text)
    if (!parsed.ok || parsed.event.action === "audit.note") continue
    if (filter.call === undefined || parsed.event.metadata?.["call"] === filter.call) found.push(parsed.event)
  }
  return found
}
