/**
 * The append-only audit log: one line an entry, chained, locked, on disk before `append` resolves.
 *
 * Guarantees: entries of all processes form one chain with contiguous `seq` and monotone `ts`. Those that are asked for
 * while the disk is waited for are appended together: one O_APPEND write and one fdatasync, so that an entry that was
 * acknowledged survives a crash of the process and of the machine; the wait for the disk is nobody else's. What a crash
 * left torn, or what somebody changed, is never passed over: the next append first writes an `audit.note` that says what
 * was found. A log that is full is closed as a part, and the chain goes on in the next one; old parts are removed only
 * where the operator says so, and on record. A full disk gives back a reserve kept for receipts.
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
import { type HeadRead, isOnTheWay, readHead, writeHead } from "./head.ts"
import { openSigner, readPublishedKeys, type Signer } from "./keys.ts"
import { linesOf, tailOf } from "./lines.ts"
import { openLogLock } from "./lock.ts"
import { closeSegment, readSegmentHead, type SegmentHead, segmentsOf } from "./segments.ts"

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

type Sealed = ReturnType<typeof sealEvent>
interface Written {
  readonly events: readonly AuditEvent[]
  readonly tail: Tail
}
interface Asked {
  readonly draft: EventDraft
  readonly guard: AppendGuard | undefined
  readonly done: (event: AuditEvent | undefined) => void
  readonly failed: (error: unknown) => void
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
  const { seq, hash } = head.head
  if (tail.seq === seq && tail.hash === hash) return undefined
  if (isOnTheWay(head.head, tail)) return undefined
  if (tail.seq > seq) return { repair: "unsigned-tail", head_seq: seq, found_seq: tail.seq }
  return {
    damage: tail.seq === seq ? "head-mismatch" : "entries-missing",
    head_seq: seq,
    head_hash: hash,
    found_seq: tail.seq,
    found_hash: tail.hash,
  }
}

/** Where the log stands that holds no entry yet: behind the last part that was closed. */
const behindSegments = (data: string, size: number, notes: JsonObject[]): Tail => {
  const segment = segmentsOf(data).at(-1)
  if (segment === undefined) return { seq: -1, hash: GENESIS, ts: "", size }
  const head = readSegmentHead(segment, readPublishedKeys(data))
  if (head !== undefined) return { seq: head.seq, hash: head.hash, ts: head.ts, size }
  notes.push({ damage: "segment-head", first: segment.first })
  let tail: Tail = { seq: segment.first - 1, hash: GENESIS, ts: "", size }
  for (const line of linesOf(segment.file)) tail = tailFromLine(line.text, size) ?? tail
  return tail
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
  let tail: Tail | undefined = line === undefined ? behindSegments(data, whole, notes) : tailFromLine(line, whole)
  if (tail === undefined) {
    tail = lastReadable(data, whole)
    notes.push({ damage: "unreadable-line", found_seq: tail.seq })
  }
  const keys = readPublishedKeys(data)
  const told = compare(tail, readHead(auditHeadFile(data), keys), readHead(auditAnchorFile(data), keys))
  if (told !== undefined) notes.push(told)
  return { tail, notes }
}

/** What is asked for under a guard goes by itself: the one before it may be what it looks at. */
const nextOf = (waiting: Asked[]): readonly Asked[] => {
  const guarded = waiting.findIndex(({ guard }) => guard !== undefined)
  const free = guarded < 0 ? waiting.length : Math.max(guarded, 1)
  return waiting.splice(0, Math.min(free, hostLimits.auditGroup.value))
}

const onDisk = promisify(fdatasync)

const isDiskFull = (error: unknown): boolean =>
  ["ENOSPC", "EDQUOT"].includes((error as NodeJS.ErrnoException).code ?? "")

interface LogOptions {
  /** a log of this size is closed, and another begun */
  readonly segmentBytes?: number
  /** closed parts whose last entry is older are removed, and that is recorded; absent: none is */
  readonly keepMs?: number
}

const openLog = (data: string): number => {
  mkdirSync(auditFolder(data), { recursive: true, mode: 0o700 })
  return openSync(auditLogFile(data), constants.O_RDWR | constants.O_APPEND | constants.O_CREAT, 0o600)
}

/** Closed parts that are older, oldest first; the first that is not, or whose head is not to be had, ends them. */
const outlived = (data: string, keepMs: number): readonly { readonly file: string; readonly head: SegmentHead }[] => {
  const keys = readPublishedKeys(data)
  const old: { file: string; head: SegmentHead }[] = []
  for (const segment of segmentsOf(data)) {
    const head = readSegmentHead(segment, keys)
    if (head === undefined || !(Date.parse(head.ts) < Date.now() - keepMs)) break
    if (segment.isThere) old.push({ file: segment.file, head })
  }
  return old
}

export const openAuditLog = (data: string, options: LogOptions = {}): AuditLog => {
  const { segmentBytes = hostLimits.auditSegmentBytes.value, keepMs } = options
  mkdirSync(auditFolder(data), { recursive: true, mode: 0o700 })
  const lock = openLogLock(data)
  let fd = openLog(data)
  let signer: Signer | undefined
  let tail: Tail | undefined

  const keepReserve = (): void => {
    try {
      if (statSync(auditReserveFile(data), { throwIfNoEntry: false }) === undefined)
        writeFileSync(auditReserveFile(data), Buffer.alloc(hostLimits.auditReserveBytes.value, 1), { mode: 0o600 })
    } catch {
      rmSync(auditReserveFile(data), { force: true })
    }
  }

  const writeLines = async (lines: string): Promise<void> => {
    const bytes = Buffer.from(lines)
    if (writeSync(fd, bytes) !== bytes.length) throw Object.assign(new Error("short write"), { code: "ENOSPC" })
    await onDisk(fd)
  }

  const writeOnce = async (drafts: readonly EventDraft[], at: Tail, signWith: Signer): Promise<Written> => {
    const sealed: Sealed[] = []
    let ts = at.ts
    for (const draft of drafts) {
      const now = new Date().toISOString()
      ts = now > ts ? now : ts
      const last = sealed.at(-1)?.event ?? at
      sealed.push(sealEvent(draft, { seq: last.seq + 1, prevHash: last.hash, ts }))
    }
    const events = sealed.map(({ event }) => event)
    const lines = sealed.map(({ line }) => line).join("")
    const last = events.at(-1) ?? at
    const end = { seq: last.seq, hash: last.hash, size: at.size + Buffer.byteLength(lines) }
    const before = { seq: at.seq, hash: at.hash, size: at.size }
    const between = events.slice(0, -1).map(({ hash }) => hash)
    const begun = { ...end, state: "appending", before, ...(between.length === 0 ? {} : { between }) } as const
    writeHead(auditHeadFile(data), begun, signWith)
    await writeLines(lines)
    writeHead(auditHeadFile(data), { ...end, state: "complete" }, signWith)
    writeHead(auditAnchorFile(data), { ...end, state: "complete" }, signWith)
    return { events, tail: { ...end, ts } }
  }

  const cutAt = (size: number): void => {
    try {
      ftruncateSync(fd, size)
    } catch {
      // The next append finds what is there, and says so.
    }
  }

  /** Where it fails nothing of it stays. On a full disk the reserve is given back, and it is tried once more. */
  const write = async (drafts: readonly EventDraft[], at: Tail, signWith: Signer): Promise<Written> => {
    for (;;) {
      try {
        return await writeOnce(drafts, at, signWith)
      } catch (error) {
        cutAt(at.size)
        if (!isDiskFull(error) || !existsSync(auditReserveFile(data))) throw error
        rmSync(auditReserveFile(data), { force: true })
      }
    }
  }

  /** Another process may have closed the part that this one has open. */
  const isCurrent = (): boolean => {
    const [own, there] = [fstatSync(fd), statSync(auditLogFile(data), { throwIfNoEntry: false })]
    return there !== undefined && there.ino === own.ino && there.dev === own.dev
  }
  const reopen = (): void => {
    const old = fd
    fd = openLog(data)
    closeSync(old)
  }
  const nextPart = (at: Tail, signWith: Signer): Tail => {
    try {
      if (!closeSegment(data, at, signWith)) return at
    } catch (error) {
      // A log that is too long is no harm: the next append tries again.
      if (isCurrent()) return at
      throw error
    }
    reopen()
    return { ...at, size: 0 }
  }
  /** On record before it is done, so that what is gone was never taken away in silence. */
  const forget = async (at: Tail, signWith: Signer): Promise<Tail> => {
    const old = keepMs === undefined ? [] : outlived(data, keepMs)
    if (old.length === 0) return at
    const segments = old.map(({ head: { first, seq, hash } }) => ({ first, last: seq, hash }))
    const told = { ...noteDraft({ segments }), action: "audit.pruned" }
    const { tail: after } = await write([told], at, signWith)
    for (const { file } of old) rmSync(file, { force: true })
    return after
  }

  const standing = async (signWith: Signer): Promise<Tail> => {
    let current = tail
    tail = undefined
    if (!isCurrent()) {
      reopen()
      current = undefined
    }
    const isFirst = current === undefined
    if (current === undefined || fstatSync(fd).size !== current.size) {
      const found = inspect(data, fd)
      current = found.tail
      for (const note of found.notes) current = (await write([noteDraft(note)], current, signWith)).tail
    }
    const isFull = current.size >= segmentBytes
    if (isFull) current = nextPart(current, signWith)
    return isFull || isFirst ? forget(current, signWith) : current
  }

  /** Answers what each is to be told. */
  const appendLocked = async (group: readonly Asked[]): Promise<readonly (AuditEvent | undefined)[]> => {
    const wanted = group.filter(({ guard }) => guard?.still?.() ?? true)
    if (wanted.length === 0) return group.map(() => undefined)
    if (signer === undefined) {
      signer = openSigner(data)
      keepReserve()
    }
    const written = await write(
      wanted.map(({ draft }) => draft),
      await standing(signer),
      signer,
    )
    tail = written.tail
    for (const { guard } of wanted) guard?.after?.()
    return group.map((asked) => written.events[wanted.indexOf(asked)])
  }

  const alone = async (asked: Asked): Promise<void> => {
    try {
      const [event] = await appendLocked([asked])
      asked.done(event)
    } catch (error) {
      asked.failed(error)
    }
  }
  const together = async (group: readonly Asked[]): Promise<void> => {
    let events: readonly (AuditEvent | undefined)[]
    try {
      events = await appendLocked(group)
    } catch {
      // One that there is no room for costs no other.
      for (const asked of group) await alone(asked)
      return
    }
    for (const [index, { done }] of group.entries()) done(events[index])
  }

  const waiting: Asked[] = []
  let running: Promise<void> | undefined
  const run = async (): Promise<void> => {
    // Whoever asks in the same turn is written with the first.
    await Promise.resolve()
    while (waiting.length > 0) {
      let held: { release(): void }
      try {
        held = await lock.acquire("exclusive")
      } catch (error) {
        for (const { failed } of waiting.splice(0)) failed(error)
        continue
      }
      try {
        const group = nextOf(waiting)
        const [first] = group
        if (first !== undefined) await (group.length === 1 ? alone(first) : together(group))
      } finally {
        held.release()
      }
    }
    running = undefined
  }

  return {
    append: (draft, guard) =>
      new Promise((done, failed) => {
        waiting.push({ draft, guard, done, failed })
        running ??= run()
      }),
    async [Symbol.asyncDispose]() {
      await running
      closeSync(fd)
      lock[Symbol.dispose]()
    },
  }
}
