/**
 * User namespaces that map a folder's owner to a sandbox's user, for id-mapped mounts.
 *
 * Guarantees: one per owner and sandbox user, kept for the process's life; making one ends within a deadline, with the
 * cause where it fails, and a failure is not remembered: the next call tries again.
 * Assumes: root.
 */
import { type ChildProcess, spawn } from "node:child_process"
import { closeSync, openSync, readlinkSync, writeFileSync } from "node:fs"

export interface Identity {
  readonly uid: number
  readonly gid: number
}
/** Thrown when a folder cannot be layered; carries what to tell the caller. */
export class LayerUnavailable extends Error {
  readonly fix: string
  constructor(message: string, fix: string) {
    super(message)
    this.fix = fix
  }
}

const identityMap = (from: number, to: number): string => {
  const top = 0xfffffffe
  const [low, high] = from < to ? [from, to] : [to, from]
  const rows: (readonly [number, number, number])[] = [
    [from, to, 1],
    [0, 0, low],
    [low + 1, low + 1, high - low - 1],
    [high + 1, high + 1, top - high],
  ]
  return rows
    .filter(([, , count]) => count > 0)
    .map((row) => row.join(" "))
    .join("\n")
}

interface OwnerMapOptions {
  /** a program that enters a new user namespace and then repeats its input */
  readonly helper?: readonly [string, ...string[]]
  readonly withinMs?: number
}
const inNewNamespace = ["/usr/bin/unshare", "--user", "/bin/cat"] as const
/** On a machine under heavy load a process takes seconds to start. */
const helperWithinMs = 20_000

export class OwnerMaps {
  readonly #made = new Map<string, Promise<number>>()
  readonly #helper: readonly [string, ...string[]]
  readonly #withinMs: number
  constructor({ helper = inNewNamespace, withinMs = helperWithinMs }: OwnerMapOptions = {}) {
    this.#helper = helper
    this.#withinMs = withinMs
  }
  get(owner: Identity, sandbox: Identity): Promise<number> {
    const key = [owner.uid, owner.gid, sandbox.uid, sandbox.gid].join(":")
    let made = this.#made.get(key)
    if (made === undefined) {
      made = this.#make(owner, sandbox)
      this.#made.set(key, made)
      made.catch(() => this.#made.delete(key))
    }
    return made
  }
  async dispose(): Promise<void> {
    const all = [...this.#made.values()]
    this.#made.clear()
    for (const made of all) await made.then(closeSync, () => undefined)
  }

  async #make(owner: Identity, sandbox: Identity): Promise<number> {
    const [program, ...args] = this.#helper
    const holder = spawn(program, args, { stdio: ["pipe", "pipe", "pipe"], env: {} })
    try {
      await answered(holder, program, this.#withinMs)
      const pid = holder.pid
      if (pid === undefined || readlinkSync(`/proc/${pid}/ns/user`) === readlinkSync("/proc/self/ns/user"))
        throw unmappable("no user namespace was made")
      writeFileSync(`/proc/${pid}/uid_map`, identityMap(owner.uid, sandbox.uid))
      writeFileSync(`/proc/${pid}/gid_map`, identityMap(owner.gid, sandbox.gid))
      return openSync(`/proc/${pid}/ns/user`, "r")
    } catch (error) {
      throw error instanceof LayerUnavailable ? error : unmappable((error as Error).message)
    } finally {
      holder.kill("SIGKILL")
    }
  }
}

const unmappable = (why: string): LayerUnavailable =>
  new LayerUnavailable(
    `the owner of the workspace could not be mapped to the sandbox's user: ${why}`,
    "allow user namespaces (`sysctl user.max_user_namespaces`) and install util-linux, or run as the workspace's owner; see `caisson doctor`",
  )

/** The helper answers only after it has entered the new namespace; it may also fail, or never answer. */
const answered = (holder: ChildProcess, program: string, withinMs: number): Promise<void> =>
  new Promise((resolve, reject) => {
    let said = ""
    const fail = (why: string): void => reject(unmappable(said.trim() === "" ? why : `${why}: ${said.trim()}`))
    const deadline = setTimeout(() => fail(`${program} did not answer within ${withinMs} ms`), withinMs)
    holder.once("error", (error) => fail(`${program} could not be started (${error.message})`))
    // Not `exit`: what it wrote to the end is to be heard first.
    holder.once("close", (code, signal) => fail(`${program} ended with ${code ?? signal}`))
    holder.once("close", () => clearTimeout(deadline))
    holder.stderr?.setEncoding("utf8").on("data", (text: string) => {
      said = (said + text).slice(-400)
    })
    for (const stream of [holder.stdin, holder.stdout, holder.stderr]) stream?.on("error", () => undefined)
    holder.stdout?.once("data", () => {
      clearTimeout(deadline)
      resolve()
    })
    holder.stdin?.write("\n")
  })
