/**
 * Recompute the chain and name the first bad line.
 *
 * Guarantees: any change, removal, insertion or reordering of lines is found, a cut-off end included (the signed head
 * names the last entry), and so is a chain that is gone or was begun anew (a signed copy of the head lies apart from it);
 * a line that records found damage counts as bad. An absent chain is a finding. Works from the files alone, also where
 * none of them may be written; where the private key is at hand too, the head must be signed with a key that was
 * published next to it; where the verifier brings keys, with one of those.
 * The schemas that entries name lie beside the log, as their digests say. Closed parts follow on each other, each under a
 * signed head; one that is gone must have been removed on record, and its head is what the chain goes on from.
 * Does not: change, make or lock for writing anything.
 */
import { existsSync } from "node:fs"
import { basename } from "node:path"
import { auditAnchorFile, auditHeadFile } from "../../data-folder/paths.ts"
import { jcs } from "../../manifest/values/digest.ts"
import type { JsonObject } from "../../manifest/types.ts"
import { type AuditEvent, GENESIS, hashOfEvent, parseEvent } from "./event.ts"
import { type HeadRead, isOnTheWay, readHead } from "./head.ts"
import { localKey, type PublishedKey, readPublishedKeys } from "./keys.ts"
import { linesOf } from "./lines.ts"
import { schemasIn } from "./schemas.ts"
import { linesOfLog, openParts, type OpenParts, readSegmentHead, type SegmentHead } from "./segments.ts"
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
  readonly parts: OpenParts
  readonly head: HeadRead
  readonly anchor: HeadRead
}

/** Parts, their sizes and heads as of one instant between two appends; the log only grows after it. */
const snapshot = (data: string, keys: readonly PublishedKey[]): Promise<Snapshot> =>
  lookBetweenAppends(data, () => ({
    parts: openParts(data),
    head: readHead(auditHeadFile(data), keys),
    anchor: readHead(auditAnchorFile(data), keys),
  }))

const bad = (line: number, code: ChainCode, message: string): ChainVerdict => ({ ok: false, line, code, message })

type Entry = Pick<AuditEvent, "seq" | "hash">

const checkLine = (text: string, number: number, previous: Entry | undefined): ChainVerdict | AuditEvent => {
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
  /** of the log itself */
  readonly lines: number
  /** of all parts that are there */
  readonly entries: number
  readonly last: Entry | undefined
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
    return { ok: true, entries: end.entries, head: last === undefined ? GENESIS : `sha256:${last.hash}`, notes }
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

/** Which parts an entry says that this host removed. */
const removedBy = ({ action, metadata }: AuditEvent): readonly string[] => {
  const segments = action === "audit.pruned" ? metadata?.["segments"] : undefined
  return Array.isArray(segments) ? segments.map((each) => jcs(each as JsonObject)) : []
}

/** Numbers of the entries that the two heads name. */
interface NamedEntries {
  readonly head: number
  readonly anchor: number
}

/** Entry by entry, part by part. */
class Walk {
  last: Entry | undefined
  entries = 0
  hashAtHead: string | undefined
  hashAtAnchor: string | undefined
  met: boolean
  lost: ChainVerdict | undefined
  /** parts of which only the head is left */
  readonly #gone: SegmentHead[] = []
  readonly #removed = new Set<string>()
  readonly #data: string
  readonly #named: NamedEntries
  readonly #wanted: string | undefined
  #schemas: ReadonlySet<string> | undefined
  constructor(data: string, named: NamedEntries, wanted: string | undefined) {
    this.#data = data
    this.#named = named
    this.#wanted = wanted
    this.met = wanted === undefined
  }
  #take(entry: Entry): void {
    this.last = entry
    this.met ||= entry.hash === this.#wanted
    if (entry.seq === this.#named.head) this.hashAtHead = entry.hash
    if (entry.seq === this.#named.anchor) this.hashAtAnchor = entry.hash
  }
  /** Every line of one file; what is wrong with one, or how many there are and whether the last is torn. */
  lines(file: string, size?: number): ChainVerdict | { readonly lines: number; readonly torn: boolean } {
    let lines = 0
    for (const line of linesOf(file, size)) {
      if (!line.terminated) return { lines, torn: true }
      const checked = checkLine(line.text, line.number, this.last)
      if ("ok" in checked) return checked
      const schema = missingSchema(checked, (this.#schemas ??= schemasIn(this.#data)))
      this.lost ??=
        schema === undefined
          ? undefined
          : bad(
              line.number,
              "schema.missing",
              `the entry names the schema ${schema}, which is not in \`audit/schemas\`, or was changed`,
            )
      for (const removed of removedBy(checked)) this.#removed.add(removed)
      this.#take(checked)
      this.entries += 1
      lines = line.number
    }
    return { lines, torn: false }
  }
  /** A closed part: it goes on from the one before, and ends as its head says. */
  segment(segment: OpenParts["segments"][number], keys: readonly PublishedKey[]): ChainVerdict | undefined {
    const { file, isThere } = segment
    const name = basename(file)
    const inPart = (verdict: ChainVerdict): ChainVerdict =>
      verdict.ok ? verdict : { ...verdict, message: `in segments/${name}: ${verdict.message}` }
    const head = readSegmentHead(segment, keys)
    if (head === undefined)
      return inPart(bad(1, "signature.invalid", "it has no head that was signed with a published key"))
    const [expected, before] = [(this.last?.seq ?? -1) + 1, this.last?.hash ?? GENESIS]
    if (head.first !== expected || head.before !== before)
      return inPart(
        bad(1, head.first === expected ? "chain.broken" : "chain.seq_gap", "it does not go on from the part before it"),
      )
    if (!isThere) {
      this.#gone.push(head)
      this.#take(head)
      return undefined
    }
    const read = this.lines(file)
    if ("ok" in read) return inPart(read)
    if (read.torn || this.last?.seq !== head.seq || this.last.hash !== head.hash)
      return inPart(bad(read.lines + 1, "chain.broken", "it does not end as its signed head says"))
    return undefined
  }
  /** What was removed, where that is on record. */
  removed(): ChainVerdict | { readonly notes: readonly string[] } {
    const silent = this.#gone.find(({ first, seq, hash }) => !this.#removed.has(jcs({ first, last: seq, hash })))
    if (silent !== undefined)
      return bad(
        1,
        "chain.broken",
        `the entries ${silent.first} to ${silent.seq} are gone, and none says that they were removed`,
      )
    return {
      notes: this.#gone.map(({ first, seq }) => `the entries ${first} to ${seq} were removed on record`),
    }
  }
}

const endOf = (read: Pick<End, "lines" | "torn">, { entries, last, hashAtHead, hashAtAnchor }: Walk): End => ({
  ...read,
  entries,
  last,
  hashAtHead,
  hashAtAnchor,
})

export const verifyChain = async (data: string, elsewhere: KnownElsewhere = {}): Promise<ChainVerdict> => {
  const own = localKey(data)
  const keys = elsewhere.keys ?? [...readPublishedKeys(data), ...(own === undefined ? [] : [own])]
  const seen = await snapshot(data, keys)
  using parts = seen.parts
  const { head, anchor } = seen
  const wanted = elsewhere.head?.replace(/^sha256:/, "").toLowerCase()
  const named = {
    head: head.found && head.signed ? head.head.seq : -1,
    anchor: anchor.found && anchor.signed ? anchor.head.seq : -1,
  }
  const walk = new Walk(data, named, wanted)
  for (const segment of parts.segments) {
    const fault = walk.segment(segment, keys)
    if (fault !== undefined) return fault
  }
  const read = parts.log === undefined ? { lines: 0, torn: false } : walk.lines(parts.log, parts.size)
  if ("ok" in read) return read
  const verdict = checkHead(data, seen, endOf(read, walk), elsewhere.keys !== undefined)
  if (!verdict.ok) return verdict
  const removed = walk.removed()
  if ("ok" in removed) return removed
  if (!walk.met)
    return bad(
      read.lines + 1,
      "chain.broken",
      `the chain does not hold the entry sha256:${wanted}: it was replaced or cut`,
    )
  return walk.lost ?? { ...verdict, notes: [...verdict.notes, ...removed.notes] }
}

/** The entries of calls, oldest first; of one call when `call` is given. Lines that are no entries are left out. */
export const readReceipts = (data: string, filter: { readonly call?: string } = {}): readonly AuditEvent[] => {
  const found: AuditEvent[] = []
  for (const line of linesOfLog(data)) {
    if (!line.terminated) continue
    const parsed = parseEvent(line.text)
    if (!parsed.ok || parsed.event.action === "audit.note") continue
    if (filter.call === undefined || parsed.event.metadata?.["call"] === filter.call) found.push(parsed.event)
  }
  return found
}
