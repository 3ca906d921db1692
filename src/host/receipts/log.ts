/**
 * The append-only audit log: one line an entry, chained, locked, on disk before `append` resolves.
 *
 * Guarantees: entries of all processes form one chain with contiguous `seq` and monotone `ts`. An append is one
 * O_APPEND write and one fdatasync, so an entry that was acknowledged survives a crash of the process and of the
 * machine; the wait for the disk is nobody else's. What a crash left torn, or what somebody changed, is never passed over: the next append first writes an
 * `audit.note` that says what was found. A full disk gives back a reserve kept for receipts.
 * Assumes: a local file system. Does not: prevent the folder's owner from rewriting the file (`verify` shows it).
 */
import { createHash } from "node:crypto"
import {
  closeSync,
  constants,
  existsSync,
  fdatasync,
  fstatSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  rmSync,
  statSync,
  writeFileSync,
  writeSync,
} from "node:fs"
import { promisify } from "node:util"
import { auditAnchorFile, auditFolder, auditHeadFile, auditLogFile, auditReserveFile } from "../../data-folder/paths.ts"
import type { JsonObject } from "../../manifest/types.ts"
import { hostLimits } from "../limits.ts"
import { type AuditEvent, type EventDraft, GENESIS, parseEvent, sealEvent } from "./event.ts"
import { type HeadRead, readHead, writeHead } from "./head.ts"
import { openSigner, readPublishedKeys, type Signer } from "./keys.ts"
import { linesOf, tailOf } from "./lines.ts"
import { openLogLock } from "./lock.ts"

interface AppendGuard {
  /** asked under the lock; false: nothing is appended */
  readonly still?: () => boolean
  /** done under the lock once the entry is on disk */
  readonly after?: () => void
}

export interface AuditLog extends AsyncDisposable {
  append(draft: EventDraft, guard?: AppendGuard): Promise<AuditEvent | undefined>
}

interface Tail {
  readonly seq: number
  readonly hash: string
  readonly ts: string
  readonly size: number
}

interface Written {
  readonly event: AuditEvent
  readonly tail: Tail
}

const noteDraft = (metadata: JsonObject): EventDraft => ({
  actor: { id: "caisson", role: "host" },
  action: "audit.note",
  subject: { kind: "audit-log" },
  metadata,
})

/** What the signed head says of the log's end: nothing to tell, or a note to write. */
const compare = (tail: Tail, head: HeadRead, anchor: HeadRead): JsonObject | undefined => {
  // A log that ends before the last entry that was complete once, a new one in its place included.
  if (anchor.found && anchor.signed && anchor.head.seq > tail.seq)
    return {
      damage: "entries-missing",
      head_seq: anchor.head.seq,
      head_hash: anchor.head.hash,
      found_seq: tail.seq,
      found_hash: tail.hash,
    }
  if (!head.found) return tail.seq < 0 ? undefined : { damage: "head-missing", found_seq: tail.seq }
  if (!head.signed) return { damage: "head-unsigned", message: head.message, found_seq: tail.seq }
  const { seq, hash, state, before } = head.head
  if (tail.seq === seq && tail.hash === hash) return undefined
  if (state === "appending" && before !== undefined && tail.seq === before.seq && tail.hash === before.hash)
    return undefined
  if (tail.seq > seq) return { repair: "unsigned-tail", head_seq: seq, found_seq: tail.seq }
  return {
    damage: tail.seq === seq ? "head-mismatch" : "entries-missing",
    head_seq: seq,
    head_hash: hash,
    found_seq: tail.seq,
    found_hash: tail.hash,
  }
}

const tailFromLine = (line: string, size: number): Tail | undefined => {
  const parsed = parseEvent(line)
  return parsed.ok ? { seq: parsed.event.seq, hash: parsed.event.hash, ts: parsed.event.ts, size } : undefined
}

/** The last line that is an entry at all, when the very last one is not. */
const lastReadable = (data: string, size: number): Tail => {
  let tail: Tail = { seq: -1, hash: GENESIS, ts: "", size }
  for (const line of linesOf(auditLogFile(data))) tail = tailFromLine(line.text, size) ?? tail
  return tail
}

/** Read where the log stands, cut a torn line off, and say what has to be noted about it. */
const inspect = (data: string, fd: number): { tail: Tail; notes: readonly JsonObject[] } => {
  const notes: JsonObject[] = []
  const size = fstatSync(fd).size
  const { line, torn } = tailOf(fd, size)
  const whole = size - torn.length
  if (torn.length > 0) {
    ftruncateSync(fd, whole)
    notes.push({
      repair: "torn-line",
      bytes: torn.length,
      digest: `sha256:${createHash("sha256").update(torn).digest("hex")}`,
    })
  }
  let tail: Tail | undefined =
    line === undefined ? { seq: -1, hash: GENESIS, ts: "", size: whole } : tailFromLine(line, whole)
  if (tail === undefined) {
    tail = lastReadable(data, whole)
    notes.push({ damage: "unreadable-line", found_seq: tail.seq })
  }
  const keys = readPublishedKeys(data)
  const told = compare(tail, readHead(auditHeadFile(data), keys), readHead(auditAnchorFile(data), keys))
  if (told !== undefined) notes.push(told)
  return { tail, notes }
}

const onDisk = promisify(fdatasync)

const isDiskFull = (error: unknown): boolean =>
  ["ENOSPC", "EDQUOT"].includes((error as NodeJS.ErrnoException).code ?? "")

export const openAuditLog = (data: string): AuditLog => {
  mkdirSync(auditFolder(data), { recursive: true, mode: 0o700 })
  const lock = openLogLock(data)
  const fd = openSync(auditLogFile(data), constants.O_RDWR | constants.O_APPEND | constants.O_CREAT, 0o600)
  let signer: Signer | undefined
  let tail: Tail | undefined
  let queue: Promise<unknown> = Promise.resolve()

  const keepReserve = (): void => {
    try {
      if (statSync(auditReserveFile(data), { throwIfNoEntry: false }) === undefined)
        writeFileSync(auditReserveFile(data), Buffer.alloc(hostLimits.auditReserveBytes.value, 1), { mode: 0o600 })
    } catch {
      rmSync(auditReserveFile(data), { force: true })
    }
  }

  const writeLine = async (line: string): Promise<void> => {
    const bytes = Buffer.from(line)
    if (writeSync(fd, bytes) !== bytes.length) throw Object.assign(new Error("short write"), { code: "ENOSPC" })
    await onDisk(fd)
  }

  const writeOnce = async (draft: EventDraft, at: Tail, signWith: Signer): Promise<Written> => {
    const now = new Date().toISOString()
    const place = { seq: at.seq + 1, prevHash: at.hash, ts: now > at.ts ? now : at.ts }
    const { event, line } = sealEvent(draft, place)
    const end = { seq: event.seq, hash: event.hash, size: at.size + Buffer.byteLength(line) }
    const before = { seq: at.seq, hash: at.hash, size: at.size }
    writeHead(auditHeadFile(data), { ...end, state: "appending", before }, signWith)
    await writeLine(line)
    writeHead(auditHeadFile(data), { ...end, state: "complete" }, signWith)
    writeHead(auditAnchorFile(data), { ...end, state: "complete" }, signWith)
    return { event, tail: { ...end, ts: event.ts } }
  }

  /** On a full disk nothing of the entry stays, the reserve is given back, and it is tried once more. */
  const write = async (draft: EventDraft, at: Tail, signWith: Signer): Promise<Written> => {
    try {
      return await writeOnce(draft, at, signWith)
    } catch (error) {
      if (!isDiskFull(error) || !existsSync(auditReserveFile(data))) throw error
      ftruncateSync(fd, at.size)
      rmSync(auditReserveFile(data), { force: true })
      return await writeOnce(draft, at, signWith)
    }
  }

  const appendLocked = async (draft: EventDraft, guard: AppendGuard | undefined): Promise<AuditEvent | undefined> => {
    if (guard?.still !== undefined && !guard.still()) return undefined
    if (signer === undefined) {
      signer = openSigner(data)
      keepReserve()
    }
    let current = tail
    tail = undefined
    if (current === undefined || fstatSync(fd).size !== current.size) {
      const found = inspect(data, fd)
      current = found.tail
      for (const note of found.notes) current = (await write(noteDraft(note), current, signer)).tail
    }
    const written = await write(draft, current, signer)
    tail = written.tail
    guard?.after?.()
    return written.event
  }

  return {
    append(draft, guard) {
      const done = queue.then(async () => {
        const held = await lock.acquire("exclusive")
        try {
          return await appendLocked(draft, guard)
        } finally {
          held.release()
        }
      })
      queue = done.catch(() => undefined)
      return done
    },
    async [Symbol.asyncDispose]() {
      await queue
      closeSync(fd)
      lock[Symbol.dispose]()
    },
  }
}
