/**
 * Whether the daemon can serve, and what is in the way.
 *
 * Guarantees: what is told names a cause and what to do, and nothing of this host's paths, because anybody may ask. Looking
 * is bounded: the disk is asked each time, whether it can be written to and the store be read once in a while, the sandbox's
 * canaries (seconds of work) when first asked for and then rarely, never twice at once. A full disk stops calls before they
 * run; as soon as there is room again they run, with nobody's help.
 */
import { type StatsFs, statfsSync } from "node:fs"
import { open, rm } from "node:fs/promises"
import { healthFile } from "../../data-folder/paths.ts"
import type { Envelope, Host } from "../../host/types.ts"
import { refuse } from "../http/problem.ts"
import { daemonLimits } from "../limits.ts"

const CAUSES = {
  disk_full: [
    true,
    "the disk of the data folder is full: calls are refused",
    "free space on the disk of the data folder",
  ],
  disk_low: [false, "the disk of the data folder is nearly full", "free space on the disk of the data folder"],
  data_not_writable: [true, "the data folder cannot be written to", "mend its disk, mount or permissions"],
  store_unusable: [true, "what is remembered cannot be read", "look at the data folder's disk, then at its store"],
  sandbox_unavailable: [true, "no sandbox can be made", "run `caisson doctor` on this host"],
  controls_absent: [false, "some controls are not enforced here", "run `caisson doctor` on this host"],
  audit_failing: [true, "a receipt could not be written", "mend the data folder, then run `caisson verify`"],
  closing: [true, "the daemon is closing", "use another, or come back"],
} as const satisfies Record<string, readonly [stops: boolean, message: string, fix: string]>
type Cause = keyof typeof CAUSES

interface HealthReport {
  readonly status: "ok" | "degraded" | "unready"
  readonly live: true
  readonly ready: boolean
  readonly causes: readonly { readonly cause: Cause; readonly message: string; readonly fix: string }[]
}

interface Room {
  readonly bytes: number
  readonly share: number
  /** undefined: this file system does not count them */
  readonly inodes: number | undefined
}
const roomOf = ({ bavail, bsize, blocks, ffree, files }: StatsFs): Room => ({
  bytes: bavail * bsize,
  share: blocks === 0 ? 1 : bavail / blocks,
  inodes: files === 0 ? undefined : ffree,
})
const isFull = ({ bytes, inodes = Infinity }: Room): boolean =>
  bytes < daemonLimits.diskFullBytes.value || inodes < daemonLimits.diskFullInodes.value
const isLow = ({ bytes, share, inodes = Infinity }: Room): boolean =>
  (bytes < daemonLimits.diskLowBytes.value && share < 0.1) || share < 0.02 || inodes < 1_000

/** What was found, for as long as it counts. */
class Kept<T> {
  readonly #find: () => Promise<T>
  readonly #keepMs: (found: T) => number
  #at = -Infinity
  #found: T | undefined
  #finding: Promise<T> | undefined
  constructor(find: () => Promise<T>, keepMs: (found: T) => number) {
    this.#find = find
    this.#keepMs = keepMs
  }
  get isOld(): boolean {
    return this.#found === undefined || performance.now() - this.#at > this.#keepMs(this.#found)
  }
  /** as last found, or nothing yet */
  get last(): T | undefined {
    return this.#found
  }
  now(): Promise<T> {
    if (this.#found !== undefined && !this.isOld) return Promise.resolve(this.#found)
    this.#finding ??= this.#find()
      .then((found) => {
        this.#found = found
        this.#at = performance.now()
        return found
      })
      .finally(() => (this.#finding = undefined))
    return this.#finding
  }
  forget(): void {
    this.#at = -Infinity
  }
  /** what is being found */
  settled(): Promise<unknown> {
    return this.#finding ?? Promise.resolve()
  }
}

export class Health {
  readonly #data: string
  readonly #place: Kept<readonly Cause[]>
  readonly #sandbox: Kept<readonly Cause[]>
  /** how often the disk was seen full */
  #fulls = 0
  #isAuditFailing = false
  #isClosing = false
  constructor(host: Host) {
    this.#data = host.data
    const { placeMs, canaryMs, canaryAgainMs } = daemonLimits
    this.#place = new Kept(
      async (): Promise<readonly Cause[]> => [...(await cannotWrite(host.data)), ...(await cannotRead(host))],
      () => placeMs.value,
    )
    this.#sandbox = new Kept(
      async () => {
        const fulls = this.#fulls
        const found = await sandboxOf(host)
        this.#room()
        // What fails on a full disk says nothing of the sandbox.
        return fulls === this.#fulls ? found : []
      },
      (found) => (found.length === 0 ? canaryMs : canaryAgainMs).value,
    )
  }

  /** Before a call is begun: is there room for what it writes down? */
  refuseWithoutRoom(): void {
    const room = this.#room()
    if (room === undefined || !isFull(room)) return
    throw refuse(
      "internal",
      "the disk of the data folder is full: the call was not made, and nothing was changed",
      "free space there; the daemon goes on by itself",
      { "retry-after": "30" },
      503,
    )
  }
  #room(): Room | undefined {
    try {
      const room = roomOf(statfsSync(this.#data))
      if (isFull(room)) this.#fulls += 1
      return room
    } catch {
      return undefined
    }
  }
  /** How a call ended tells whether receipts are written, and sandboxes made. */
  note(envelope: Envelope): void {
    if (envelope.call === "none") return
    this.#isAuditFailing = envelope.receipt === "none"
    if (!envelope.ok && envelope.error.code === "sandbox_unavailable") this.#sandbox.forget()
  }
  close(): Promise<unknown> {
    this.#isClosing = true
    return Promise.all([this.#sandbox.settled(), this.#place.settled()])
  }

  async report(): Promise<HealthReport> {
    const room = this.#room()
    // Its canaries take seconds: they are heard of when they are through. One that failed is waited for.
    const isUntold = this.#isClosing || (room !== undefined && isFull(room))
    const sandbox = isUntold ? [] : this.#sandboxCauses()
    const causes: Cause[] = [
      ...(this.#isClosing ? (["closing"] as const) : []),
      ...(room === undefined
        ? []
        : isFull(room)
          ? (["disk_full"] as const)
          : isLow(room)
            ? (["disk_low"] as const)
            : []),
      ...(await this.#place.now()),
      ...(this.#isAuditFailing ? (["audit_failing"] as const) : []),
      ...sandbox,
    ]
    const ready = causes.every((cause) => !CAUSES[cause][0])
    return {
      status: ready ? (causes.length === 0 ? "ok" : "degraded") : "unready",
      live: true,
      ready,
      causes: causes.map((cause) => ({ cause, message: CAUSES[cause][1], fix: CAUSES[cause][2] })),
    }
  }
  #sandboxCauses(): readonly Cause[] {
    if (this.#sandbox.isOld) void this.#sandbox.now().catch(() => undefined)
    return this.#sandbox.last ?? []
  }
}

const cannotWrite = async (data: string): Promise<readonly Cause[]> => {
  const file = healthFile(data)
  try {
    const handle = await open(file, "w", 0o600)
    try {
      await handle.writeFile("here\n")
      await handle.datasync()
    } finally {
      await handle.close()
    }
    await rm(file, { force: true })
    return []
  } catch (error) {
    // A full disk is told of as such.
    const { code } = error as NodeJS.ErrnoException
    return code === "ENOSPC" || code === "EDQUOT" ? [] : ["data_not_writable"]
  }
}
const cannotRead = async (host: Host): Promise<readonly Cause[]> => {
  try {
    await host.calls({ limit: 1 })
    return []
  } catch {
    return ["store_unusable"]
  }
}
/** `cgroups` is one means of several. */
const OPTIONAL = new Set(["cgroups"])
const sandboxOf = async (host: Host): Promise<readonly Cause[]> => {
  try {
    const reports = await host.doctor()
    const absent = reports.filter(({ control, state }) => state === "absent" && !OPTIONAL.has(control))
    if (absent.length === 0) return []
    return absent.length === reports.length ? ["sandbox_unavailable"] : ["controls_absent"]
  } catch {
    return ["sandbox_unavailable"]
  }
}
