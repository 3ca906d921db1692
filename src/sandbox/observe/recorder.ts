/**
 * Requests of a sandbox's processes, told apart and counted, each with what became of it.
 *
 * Guarantees: memory is bounded; a path is looked into once for each thing that is done with it, and again where there are
 * more of them than are remembered. However many there are, each counts in a row: where there is no room for its own, in that
 * of a folder that it lies in, so that nobody hides what they do behind what they ask for as well. What is told is what the
 * sandbox's view, its mounts and this machine say at that moment: the kernel alone decides, and this decides nothing.
 * Assumes: may look at the sandbox's root and at this machine.
 */
import { accessSync, constants, lstatSync, readlinkSync, type Stats } from "node:fs"
import { join, normalize } from "node:path"
import type { Op } from "./calls.ts"
import { OBSERVE } from "./limits.ts"
import type { ObservedPath } from "./observed.ts"
import { foldedRows, keyOf, type Row } from "./fold.ts"
import { isCache, isCredential, isGuarded, isProgramPath, isStarted, placeOf } from "./places.ts"

type Told = Pick<ObservedPath, "op" | "verdict" | "reason" | "notable" | "bytes">

const existsHere = (path: string): boolean => lstatSync(path, { throwIfNoEntry: false }) !== undefined
const quietly = (look: () => boolean): boolean => {
  try {
    return look()
  } catch {
    return false
  }
}
const isProgramHere = (path: string): boolean =>
  quietly(() => {
    accessSync(path, constants.X_OK)
    return true
  })

interface RecorderOptions {
  /** what a path leads to inside */
  readonly look: (path: string) => Stats | undefined
  /** is the workspace there to be read alone? */
  readonly isWorkspaceClosed: () => boolean
  /** the workspace's folder on this machine */
  readonly workspace: string
  /** may what lies in /tmp be started? */
  readonly startsScratch: boolean
}

export class Recorder {
  readonly #options: RecorderOptions
  #rows = new Map<string, Row>()
  /** by what was asked for, as it was: the row it counts for, or none */
  readonly #known = new Map<string, Row | null>()
  #chars = 0
  seen = 0
  constructor(options: RecorderOptions) {
    this.#options = options
  }

  /** `path`: absolute, inside. */
  record(op: Op, writes: boolean, path: string): void {
    this.seen += 1
    const kind = op === "exec" ? "start" : op === "look" ? "look" : writes ? "write" : "read"
    const key = `${kind} ${path}`
    let row = this.#known.get(key)
    if (row === undefined) {
      if (this.#known.size >= OBSERVE.paths || this.#chars + key.length > OBSERVE.pathChars) this.#makeRoom()
      this.#chars += key.length
      row = this.#rowFor(kind, normalize(path))
      this.#known.set(key, row)
    }
    if (row !== null) row.count += 1
  }

  /** What was told apart so far becomes as few rows as are told in the end. */
  #makeRoom(): void {
    const rows = foldedRows([...this.#rows.values()].filter(({ count }) => count > 0))
    this.#rows = new Map(rows.map((row) => [keyOf(row), { ...row }]))
    this.#known.clear()
    this.#chars = 0
  }

  #rowFor(kind: "start" | "look" | "write" | "read", path: string): Row | null {
    const told = kind === "start" || kind === "look" ? this.#started(path, kind) : this.#asked(kind, path)
    if (told === undefined) return null
    // The same program is looked for in several folders: it is one.
    const name = told.reason === "not_listed" ? path.slice(path.lastIndexOf("/")) : path
    const key = `${told.op} ${told.verdict} ${name}`
    const known = this.#rows.get(key)
    if (known !== undefined) return known
    const row: Row = { path, ...told, count: 0 }
    this.#rows.set(key, row)
    return row
  }

  #started(path: string, kind: "start" | "look"): Told | undefined {
    const inside = this.#options.look(path)
    if (kind === "look" && (inside !== undefined || !isProgramPath(path))) return undefined
    if (inside === undefined) {
      if (isProgramHere(path) && placeOf(path) === "system")
        return { op: "start", verdict: "denied", reason: "not_listed", notable: true }
      return kind === "look" ? undefined : { op: "start", verdict: "absent" }
    }
    const place = placeOf(path)
    const isOpen = place === "system" || place === "own" || place === "outside" || place === "kernel"
    return isOpen || (place === "scratch" && this.#options.startsScratch)
      ? { op: "start", verdict: "allowed" }
      : { op: "start", verdict: "denied", reason: "not_startable", notable: true }
  }

  #asked(op: "read" | "write", path: string): Told {
    const place = placeOf(path)
    if (op === "write") {
      const isClosed = place === "workspace" && this.#options.isWorkspaceClosed()
      if (!isClosed && (place === "workspace" || place === "kernel")) return { op, verdict: "allowed" }
      if (place === "scratch") return { op, verdict: "discarded" }
      if (place === "home")
        return { op, verdict: "discarded", ...(isStarted(path) ? { reason: "own_home", notable: true } : {}) }
      return { op, verdict: "denied", reason: "read_only", ...(isCache(path) ? {} : { notable: true }) }
    }
    const inside = this.#options.look(path)
    if (inside !== undefined) return { op, verdict: "allowed", ...(inside.isFile() ? { bytes: inside.size } : {}) }
    const denied = (isTold: boolean, reason: "not_shown" | "hidden" = "not_shown"): Told => ({
      op,
      verdict: "denied",
      reason,
      ...(isTold ? { notable: true } : {}),
    })
    switch (place) {
      case "workspace": {
        const there = join(this.#options.workspace, path.slice("/workspace".length))
        return quietly(() => existsHere(there)) ? denied(true, "hidden") : { op, verdict: "absent" }
      }
      case "home":
        return isCredential(path) ? denied(true) : { op, verdict: "absent" }
      case "outside":
        return denied(true)
      case "scratch":
        return quietly(() => existsHere(path)) ? denied(true) : { op, verdict: "absent" }
      case "system":
        if (isGuarded(path)) return denied(true)
        return quietly(() => existsHere(path)) ? denied(false) : { op, verdict: "absent" }
      default:
        return { op, verdict: "absent" }
    }
  }

  /** What it all comes to, and how many requests are told by a folder that is not theirs alone. */
  told(): { readonly paths: readonly ObservedPath[]; readonly lost: number } {
    const rows = foldedRows([...this.#rows.values()].filter(({ count }) => count > 0))
    return {
      paths: rows.map(({ crowded: _crowded, ...row }) => row),
      lost: rows.reduce((sum, { crowded, count }) => (crowded === true ? sum + count : sum), 0),
    }
  }
}

/** Where a relative path starts from; undefined where nobody can tell any more. */
export const startOf = (pid: number, dir: number | undefined): string | undefined => {
  const AT_FDCWD = -100
  try {
    const link = readlinkSync(dir === undefined || dir === AT_FDCWD ? `/proc/${pid}/cwd` : `/proc/${pid}/fd/${dir}`)
    return link.startsWith("/") ? link : undefined
  } catch {
    return undefined
  }
}
