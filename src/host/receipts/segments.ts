/**
 * The log in parts: what was closed lies in `audit/segments`, each part with a signed head of its own, and the newest entries
 * lie in the log itself.
 *
 * Guarantees: parts follow on each other by number and hash, and each head says which entry came before its first. A part
 * that was moved aside while it is read is read all the same, once. A head that was written for a part that was not moved
 * (the writer died) counts for nothing. Does not: decide when a part is closed or removed; `log.ts` does.
 */
import { closeSync, constants, fstatSync, openSync, readdirSync, readFileSync, renameSync } from "node:fs"
import { join } from "node:path"
import { auditFolder, auditLogFile, auditSegmentsFolder } from "../../data-folder/paths.ts"
import { jcs } from "../../manifest/values/digest.ts"
import type { JsonObject } from "../../manifest/types.ts"
import { syncFolder, writeWhole } from "../data/write-whole.ts"
import { parseEvent } from "./event.ts"
import { type PublishedKey, type Signer, verifySignature } from "./keys.ts"
import { linesOf } from "./lines.ts"

/** What the head of a closed part says, signed. */
export interface SegmentHead {
  readonly first: number
  /** its last entry */
  readonly seq: number
  readonly hash: string
  /** hash of the entry before its first, or GENESIS */
  readonly before: string
  readonly ts: string
  readonly size: number
}

interface Segment {
  /** number of its first entry */
  readonly first: number
  readonly file: string
  readonly headFile: string
  /** false: only its head is left */
  readonly isThere: boolean
}

const NAME = /^(\d{12})\.(jsonl|head\.json)$/
const named = (first: number, what: "jsonl" | "head.json"): string => `${String(first).padStart(12, "0")}.${what}`

/** Its first entry; undefined of a file that is empty, or does not begin with one. */
const firstOf = (file: string): { readonly seq: number; readonly before: string } | undefined => {
  for (const { text, terminated } of linesOf(file)) {
    const parsed = terminated ? parseEvent(text) : undefined
    return parsed?.ok === true ? { seq: parsed.event.seq, before: parsed.event.prevHash } : undefined
  }
  return undefined
}

/** In order; `log`: the newest part, wherever it was opened. */
export const segmentsOf = (data: string, log: string = auditLogFile(data)): readonly Segment[] => {
  const folder = auditSegmentsFolder(data)
  let names: readonly string[]
  try {
    names = readdirSync(folder)
  } catch (error) {
    if (["ENOENT", "ENOTDIR"].includes((error as NodeJS.ErrnoException).code ?? "")) return []
    throw error
  }
  const end = firstOf(log)?.seq ?? Number.POSITIVE_INFINITY
  const firsts = new Set(names.flatMap((name) => NAME.exec(name)?.[1] ?? []).map(Number))
  return [...firsts]
    .filter((first) => first < end)
    .toSorted((a, b) => a - b)
    .map((first) => ({
      first,
      file: join(folder, named(first, "jsonl")),
      headFile: join(folder, named(first, "head.json")),
      isThere: names.includes(named(first, "jsonl")),
    }))
}

const isHead = (value: unknown): value is SegmentHead => {
  if (typeof value !== "object" || value === null) return false
  const { first, seq, hash, before, ts, size } = value as Record<string, unknown>
  return (
    [first, seq, size].every((number) => Number.isSafeInteger(number) && (number as number) >= 0) &&
    [hash, before, ts].every((text) => typeof text === "string") &&
    (first as number) <= (seq as number)
  )
}

/** Undefined where there is none, or none that one of these keys signed. */
export const readSegmentHead = (
  { first, headFile }: Segment,
  keys: readonly PublishedKey[],
): SegmentHead | undefined => {
  try {
    const { head, signature } = JSON.parse(readFileSync(headFile, "utf8")) as {
      head: unknown
      signature: { publicKeyRef: string; value: string }
    }
    const key = keys.find(({ id }) => id === signature.publicKeyRef)
    if (key === undefined || !isHead(head) || head.first !== first) return undefined
    return verifySignature(key, Buffer.from(jcs(head as unknown as JsonObject)), signature.value) ? head : undefined
  } catch {
    return undefined
  }
}

/**
 * Close the log as it is: its head first, then it is moved. Whoever appends holds the log's lock. False: nothing was
 * changed, because the log does not begin with an entry.
 */
export const closeSegment = (
  data: string,
  end: Pick<SegmentHead, "seq" | "hash" | "ts" | "size">,
  signer: Signer,
): boolean => {
  const log = auditLogFile(data)
  const begin = firstOf(log)
  if (begin === undefined) return false
  const folder = auditSegmentsFolder(data)
  const { seq, hash, ts, size } = end
  const head: SegmentHead = { first: begin.seq, seq, hash, before: begin.before, ts, size }
  const text = JSON.stringify({
    head,
    signature: {
      alg: "Ed25519",
      publicKeyRef: signer.keyId,
      value: signer.sign(Buffer.from(jcs(head as unknown as JsonObject))),
    },
  })
  writeWhole(join(folder, named(begin.seq, "head.json")), `${text}\n`, 0o600)
  renameSync(log, join(folder, named(begin.seq, "jsonl")))
  syncFolder(folder)
  syncFolder(auditFolder(data))
  return true
}

/** The parts that are there, the newest last, as they were at one moment; closed when disposed of. */
export interface OpenParts extends Disposable {
  /** the newest, by whichever name it has by now; absent: there is none */
  readonly log?: string
  readonly size: number
  readonly segments: readonly Segment[]
  readonly files: readonly string[]
  /** where an entry of this number lies */
  fileOf(seq: number): string | undefined
}

export const openParts = (data: string): OpenParts => {
  let fd: number | undefined
  try {
    fd = openSync(auditLogFile(data), constants.O_RDONLY)
  } catch (error) {
    if (!["ENOENT", "ENOTDIR"].includes((error as NodeJS.ErrnoException).code ?? "")) throw error
  }
  try {
    const log = fd === undefined ? undefined : `/proc/self/fd/${fd}`
    const segments = segmentsOf(data, log)
    const there = segments.filter(({ isThere }) => isThere)
    const begin = log === undefined ? undefined : firstOf(log)?.seq
    const own = fd
    return {
      ...(log === undefined ? {} : { log }),
      size: own === undefined ? 0 : fstatSync(own).size,
      segments,
      files: [...there.map(({ file }) => file), ...(log === undefined ? [] : [log])],
      fileOf: (seq) => (begin !== undefined && seq >= begin ? log : there.findLast(({ first }) => first <= seq)?.file),
      [Symbol.dispose]: () => {
        if (own !== undefined) closeSync(own)
      },
    }
  } catch (error) {
    if (fd !== undefined) closeSync(fd)
    throw error
  }
}

/** Every line that is there, the oldest first. */
export function* linesOfLog(data: string): Generator<{ readonly text: string; readonly terminated: boolean }> {
  using parts = openParts(data)
  for (const file of parts.files) yield* linesOf(file)
}
