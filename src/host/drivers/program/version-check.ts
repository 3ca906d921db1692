/**
 * A driver's version check: which program it starts, what it says, and for how long that is remembered.
 *
 * Guarantees: nothing is run here; the check goes to the injected `probe`, which runs it inside the sandbox. A version is
 * remembered per driver digest and program file (path, inode, times, size): a changed manifest or program is checked
 * again. A check that ran out of time is remembered for a while, one that could not run never.
 */
import { createHash } from "node:crypto"
import path from "node:path"
import type { DriverContract, VersionCheck } from "../../../manifest/types.ts"
import { parseVersionOutput } from "../../../manifest/schema/version.ts"
import { hostLimits } from "../../limits.ts"
import { inside } from "../paths.ts"
import { type Located, locateSystemProgram, type Program } from "./program.ts"
import { splitWords } from "./shell-words.ts"

/** A version check to be run inside the sandbox: no network, no workspace, no secrets. */
export interface ProbeRequest {
  readonly driver: DriverContract
  /** what is started: the driver's program, another one its command names, or `sh` when `shell` */
  readonly program: Program
  /** argv[0] and on */
  readonly argv: readonly string[]
  readonly timeoutMs: number
  /** the command needs a shell (C-32): `argv` is `sh -c COMMAND`, and `spawn` lists what it may start */
  readonly shell: boolean
  readonly spawn: Readonly<Record<string, Program>>
  /** variables that the driver sets */
  readonly env: Readonly<Record<string, string>>
  /** may the program start others of its own? */
  readonly children: boolean
}
export type ProbeResult =
  /** `exit` is null when it was ended by a limit or a signal */
  | { readonly ran: true; readonly exit: number | null; readonly stdout: string; readonly stderr: string }
  | { readonly ran: false; readonly reason: string; readonly fix: string }
export type Probe = (request: ProbeRequest) => Promise<ProbeResult>

/** Where versions outlive the process. Its values are only ever text that this file wrote. */
export interface VersionStore {
  get(key: string): Promise<string | undefined>
  set(key: string, version: string): Promise<void>
}

type FoundVersion =
  | { readonly ok: true; readonly version: string }
  | { readonly ok: false; readonly reason: string; readonly fix: string }

/** What is checked: the driver's program as its kind found it. */
interface Checkable<Check = VersionCheck> {
  readonly check: Check
  readonly program: Program
  /** as the manifest calls the program */
  readonly bin: string
  /** variables that the driver sets */
  readonly env: Readonly<Record<string, string>>
  /** may it start others of its own? */
  readonly children: boolean
}

/** The version of the program that a driver runs. */
export type VersionChecks = (driver: DriverContract, what: Checkable) => Promise<FoundVersion>

type Prepared =
  | { readonly ok: true; readonly request: ProbeRequest }
  | { readonly ok: false; readonly reason: string; readonly fix: string }

/** The program that a check starts, and what it may start in turn. */
export const prepareProbe = (
  driver: DriverContract,
  { check, program, bin, env, children }: Checkable<Pick<VersionCheck, "cmd" | "timeoutMs">>,
  folders: readonly string[],
): Prepared => {
  const split = splitWords(check.cmd, { ...env, HOME: inside.home })
  const isOwn = (word: string): boolean =>
    word === bin || word === program.found || path.basename(word) === program.name
  const base = { driver, timeoutMs: check.timeoutMs, env, children }
  const fix = "correct `version_check.cmd` in the driver"
  if (split.ok) {
    const [head = "", ...rest] = split.words
    const located: Located = isOwn(head) ? { ok: true, program } : locateSystemProgram(head, folders)
    if (!located.ok) return { ok: false, reason: `its version check starts another program: ${located.reason}`, fix }
    return { ok: true, request: { ...base, program: located.program, argv: [head, ...rest], shell: false, spawn: {} } }
  }
  if (!split.needsShell) return { ok: false, reason: `its version check cannot be read: ${split.problem}`, fix }
  const shell = locateSystemProgram("sh", folders)
  if (!shell.ok)
    return { ok: false, reason: `its version check needs a shell (${split.why}), and ${shell.reason}`, fix }
  return {
    ok: true,
    request: {
      ...base,
      program: shell.program,
      argv: ["sh", "-c", check.cmd],
      shell: true,
      spawn: { [program.name]: program },
    },
  }
}

const keyOf = (driver: DriverContract, own: Program, { program }: ProbeRequest): string => {
  const facts = [own, program].map(({ path: at, identity }) => [at, identity])
  return createHash("sha256")
    .update(JSON.stringify([driver.source.digest, facts]))
    .digest("hex")
}

type Checked =
  | { readonly ok: true; readonly version: string }
  | { readonly ok: false; readonly reason: string; readonly fix: string; readonly remember: "yes" | "a while" | "no" }

const runCheck = async (request: ProbeRequest, check: VersionCheck, probe: Probe): Promise<Checked> => {
  const result = await probe(request)
  if (!result.ran)
    return {
      ok: false,
      reason: `its version check could not be run: ${result.reason}`,
      fix: result.fix,
      remember: "no",
    }
  if (result.exit === null) {
    return {
      ok: false,
      reason: `its version check did not finish within ${check.timeoutMs} ms`,
      fix: "run the check by hand, or raise `version_check.timeout_ms`",
      remember: "a while",
    }
  }
  const parsed = parseVersionOutput(check.parse, result.stdout, result.stderr)
  if (parsed.ok) return { ok: true, version: parsed.version }
  return {
    ok: false,
    reason: `its version check exited with ${result.exit}: ${parsed.message}`,
    fix: "correct `version_check` in the driver, or reinstall the program",
    remember: "yes",
  }
}

export interface VersionCheckOptions {
  readonly probe: Probe
  readonly store?: VersionStore
  readonly folders: readonly string[]
}

export const createVersionChecks = ({ probe, store, folders }: VersionCheckOptions): VersionChecks => {
  const remembered = new Map<string, Promise<Checked>>()

  const fresh = async (key: string, request: ProbeRequest, check: VersionCheck): Promise<Checked> => {
    const stored = await store?.get(key)
    if (stored !== undefined) return { ok: true, version: stored }
    const checked = await runCheck(request, check, probe)
    if (checked.ok) await store?.set(key, checked.version)
    else if (checked.remember === "no") remembered.delete(key)
    else if (checked.remember === "a while")
      setTimeout(() => remembered.delete(key), hostLimits.probeRetryMs.value).unref()
    return checked
  }

  const versionOf = (key: string, request: ProbeRequest, check: VersionCheck): Promise<Checked> => {
    const known = remembered.get(key)
    if (known !== undefined) return known
    const running = fresh(key, request, check)
    remembered.set(key, running)
    running.catch(() => remembered.delete(key))
    return running
  }

  return async (driver, what) => {
    const prepared = prepareProbe(driver, what, folders)
    if (!prepared.ok) return prepared
    return versionOf(keyOf(driver, what.program, prepared.request), prepared.request, what.check)
  }
}
