/**
 * Calls under way, on disk, so that a killed host still leaves a receipt of what it was doing.
 *
 * Guarantees: a call has a marker from before its first step until its receipt is written. The marker is locked by its
 * process for as long as that lives, so a marker that can be locked belongs to a dead one, in whatever pid namespace. A
 * later host writes the receipt in its place, once, with the verdict `internal`.
 */
import { closeSync, existsSync, openSync, readdirSync, readFileSync, renameSync, rmSync, writeSync } from "node:fs"
import { join } from "node:path"
import { callsFolder } from "../../data-folder/paths.ts"
import { shown } from "../../manifest/diagnostics.ts"
import { flock, LOCK, SyscallError } from "../../linux/syscalls.ts"
import type { AuditLog } from "./log.ts"

interface Marker {
  readonly call: string
  readonly tool: string
}

const SUFFIX = ".json"

export const openCall = (data: string, call: string, tool: string): Disposable => {
  const file = join(callsFolder(data), `${call}${SUFFIX}`)
  const fd = openSync(`${file}.new`, "w", 0o600)
  flock(fd, LOCK.EXCLUSIVE | LOCK.NONBLOCK)
  const marker: Marker = { call, tool: shown(tool) }
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

/** Write the receipts of calls whose host died. Answers how many. */
export const closeAbandonedCalls = async (data: string, log: AuditLog): Promise<number> => {
  let closed = 0
  for (const name of readdirSync(callsFolder(data)).sort()) {
    const file = join(callsFolder(data), name)
    if (!name.endsWith(SUFFIX) || !isAbandoned(file)) continue
    const { call = name.slice(0, -SUFFIX.length), tool = "?" } = readMarker(file)
    const written = await log.append(
      {
        actor: { id: "caisson", role: "host" },
        action: "tool.invoked",
        subject: { kind: "tool", ref: shown(tool) || "?" },
        metadata: {
          call: shown(call),
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
