/**
 * Runs of one command, or of one tool → what its contract and driver have to allow, each with the receipts that showed it.
 *
 * Guarantees: nothing is proposed that was not seen; what was seen and cannot be proposed is told. Pure.
 */
import { parseEgressEntry } from "../../manifest/values/egress-entry.ts"
import { type ProposedGlob, readGlobs, writeGlobs } from "./globs.ts"
import { limits } from "./limits.ts"
import { type Observation, type Seen, union } from "./observation.ts"

export interface Needs {
  readonly write: readonly ProposedGlob[]
  /** absent: nobody watched what was read */
  readonly read?: readonly ProposedGlob[]
  readonly hosts: readonly Seen<string>[]
  readonly spawn: readonly Seen<string>[]
  readonly timeoutMs: number
  /** bytes that a call may print, and send and get; absent where nobody counted, or nothing was reached */
  readonly outputBytes?: number
  readonly network?: { readonly bytesOut: number; readonly bytesIn: number }
  readonly receipts: readonly string[]
  /** seen, and not proposed, each with why */
  readonly left: readonly { readonly what: string; readonly why: string; readonly receipts: readonly string[] }[]
}

const PROGRAM = /^[A-Za-z0-9_][A-Za-z0-9._+-]{0,127}$/
/** Programs that run what they are given: allowing one allows nearly everything that the sandbox has. */
const SHELLS =
  /^(?:sh|bash|dash|ash|zsh|ksh|mksh|fish|busybox|env|python[\d.]*|perl[\d.]*|ruby[\d.]*|node|nodejs|php[\d.]*|lua[\d.]*)$/

export const runsOthers = (program: string): boolean => SHELLS.test(program)

const isName = (name: string): boolean => PROGRAM.test(name) && name !== "." && name !== ".."
const isHost = (host: string): boolean => {
  const entry = parseEgressEntry(host)
  return entry.ok && !host.includes("*")
}
const same = (text: string): string => text

export const needsOf = (runs: readonly Observation[]): Needs => {
  const write = writeGlobs(runs)
  const read = readGlobs(runs)
  const hosts = union(runs, ({ reached }) => reached, same)
  const spawn = union(runs, ({ started }) => started, same)
  const fits =
    (isGood: (text: string) => boolean) =>
    ({ value }: Seen<string>, at: number) =>
      at < limits.names && isGood(value)
  const all = runs.map(({ receipt }) => receipt)
  const left = [
    ...[...write.unspelt, ...(read?.unspelt ?? [])].map((what) => ({
      what,
      why: "no manifest can name this path, or there are too many",
      receipts: all,
    })),
    ...hosts
      .filter((each, at) => !fits(isHost)(each, at))
      .map(({ value, receipts }) => ({ what: value, why: "no egress entry names this host", receipts })),
    ...spawn
      .filter((each, at) => !fits(isName)(each, at))
      .map(({ value, receipts }) => ({ what: value, why: "no manifest can name this program", receipts })),
    ...union(runs, ({ unreached }) => unreached, same).map(({ value, receipts }) => ({
      what: value,
      why: "it was dialled and not reached: allow it for a run (--allow) to learn what comes of it",
      receipts,
    })),
    ...union(runs, ({ barred }) => barred, same).map(({ value, receipts }) => ({
      what: value,
      why: "it asked for what lies outside of the workspace, and was not shown it",
      receipts,
    })),
    ...union(runs, ({ kept }) => kept, same).map(({ value, receipts }) => ({
      what: value,
      why: "it was kept from starting this program",
      receipts,
    })),
  ]
  const longest = Math.max(0, ...runs.map(({ wallMs }) => wallMs))
  const most = (of: (run: Observation) => number | undefined): number | undefined => {
    const counted = runs.map(of)
    if (counted.length === 0 || counted.includes(undefined)) return undefined
    return Math.max(limits.leastBytes, limits.bytesFactor * Math.max(...counted.map((each) => each ?? 0)))
  }
  const outputBytes = most(({ printed }) => printed)
  const [bytesOut, bytesIn] = [most(({ sent }) => sent), most(({ got }) => got)]
  const isCounted = hosts.length > 0 && bytesOut !== undefined && bytesIn !== undefined
  const seconds = Math.ceil(Math.max(limits.leastTimeMs, longest * limits.timeFactor) / 1000)
  return {
    write: write.globs,
    ...(read === undefined ? {} : { read: read.globs }),
    hosts: hosts.filter(fits(isHost)),
    spawn: spawn.filter(fits(isName)),
    timeoutMs: seconds * 1000,
    ...(outputBytes === undefined ? {} : { outputBytes }),
    ...(isCounted ? { network: { bytesOut, bytesIn } } : {}),
    receipts: all,
    left,
  }
}

/** `seen in sha256:1234567890ab, …`: what a line of a manifest cites. */
export const citing = (receipts: readonly string[], more = ""): string => {
  const named = receipts.slice(0, limits.cited).map((each) => each.replace(/^(sha256:[0-9a-f]{16})[0-9a-f]*$/, "$1"))
  const others = receipts.length - named.length
  return `${more}seen in ${named.join(", ")}${others > 0 ? ` and ${others} more` : ""}`
}
