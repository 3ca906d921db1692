/**
 * Calls under way, on disk, so that a killed host still leaves a receipt of what it was doing.
 *
 * Guarantees: a call has a marker from before its first step until its receipt is written. The marker is locked by its
 * process for as long as that lives, so a marker that can be locked belongs to a dead one, in whatever pid namespace. A
 * later host writes the receipt in its place, once, with the verdict `internal`, unless the log has one of that call: then
 * the host died between its receipt and the end of its marker.
 */
import { closeSync, existsSync, openSync, readdirSync, readFileSync, renameSync, rmSync, writeSync } from "node:fs"
import { join } from "node:path"
import { callsFolder } from "../../data-folder/paths.ts"
import { shown } from "../../manifest/values/diagnostics.ts"
import type { JsonObject } from "../../manifest/types.ts"
import { flock, LOCK } from "../../linux/files.ts"
import { SyscallError } from "../../linux/libc.ts"
import { parseEvent } from "./event.ts"
import type { AuditLog } from "./log.ts"
import { linesOfLog } from "./segments.ts"

interface Marker {
  readonly call: string
  readonly tool: string
  /** whose call it is, for the receipt */
  readonly whose?: JsonObject
}

const SUFFIX = ".json"

export const openCall = (data: string, call: string, tool: string, whose: JsonObject = {}): Disposable => {
  const file = join(callsFolder(data), `${call}${SUFFIX}`)
  const fd = openSync(`${file}.new`, "w", 0o600)
  flock(fd, LOCK.EXCLUSIVE | LOCK.NONBLOCK)
  const marker: Marker = { call, tool: shown(tool), whose }
  writeSync(fd, JSON.stringify(marker))
  renameSync(`${file}.new`, file)
  return {
    [Symbol.dispose]: () => {
      try {
        rmSync(file, { force: true })
      } catch {
        // How the call ended is on record by now; a marker that stays is closed by the next host, as unknown.
      } finally {
        closeSync(fd)
      }
    },
  }
}

const isAbandoned = (file: string): boolean => {
  let fd: number
  try {
    fd = openSync(file, "r")
  } catch {
    return false
  }
  try {
    flock(fd, LOCK.EXCLUSIVE | LOCK.NONBLOCK)
    return true
  } catch (error) {
    if (error instanceof SyscallError) return false
    throw error
  } finally {
    closeSync(fd)
  }
}

const readMarker = (file: string): Partial<Marker> => {
  try {
    return JSON.parse(readFileSync(file, "utf8")) as Partial<Marker>
  } catch {
    return {}
  }
}

/** Of these calls, those that the log has a receipt of. */
const receiptsOf = (data: string, calls: readonly string[]): ReadonlySet<string> => {
  const found = new Set<string>()
  for (const { text, terminated } of linesOfLog(data))
    for (const call of calls) {
      if (!terminated || found.has(call) || !text.includes(`"call":${JSON.stringify(call)}`)) continue
      const parsed = parseEvent(text)
      if (parsed.ok && parsed.event.action === "tool.invoked" && parsed.event.metadata?.["call"] === call)
        found.add(call)
    }
  return found
}

/** Write the receipts of calls whose host died. Answers how many. */
export const closeAbandonedCalls = async (data: string, log: AuditLog): Promise<number> => {
  let closed = 0
  const abandoned = readdirSync(callsFolder(data))
    .sort()
    .map((name) => ({ name, file: join(callsFolder(data), name) }))
    .filter(({ name, file }) => name.endsWith(SUFFIX) && isAbandoned(file))
    .map(({ name, file }) => ({ file, call: name.slice(0, -SUFFIX.length), tool: "?", ...readMarker(file) }))
  if (abandoned.length === 0) return 0
  const recorded = receiptsOf(
    data,
    abandoned.map(({ call }) => call),
  )
  for (const { file, call, tool, whose = {} } of abandoned) {
    if (recorded.has(call)) {
      rmSync(file, { force: true })
      continue
    }
    const written = await log.append(
      {
        actor: { id: "caisson", role: "host" },
        action: "tool.invoked",
        subject: { kind: "tool", ref: shown(tool) || "?" },
        metadata: {
          call: shown(call),
          ...whose,
          ok: false,
          verdict: "internal",
          class: "infrastructure",
          crashed: true,
          details: { commit: "unknown" },
        },
      },
      { still: () => existsSync(file), after: () => rmSync(file, { force: true }) },
    )
    if (written !== undefined) closed += 1
  }
  return closed
}
