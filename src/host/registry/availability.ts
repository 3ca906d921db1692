/**
 * Whether a driver's program is on this machine, in the version it asks for, and if not, why and what to do.
 *
 * Guarantees: nothing is run here; the version check goes to the injected `probe`, which runs it inside the sandbox. A
 * version is remembered per driver digest and program file (path, inode, times, size): a changed manifest or program is
 * checked again. A check that ran out of time is remembered for a while, one that could not run never. What is not known is unavailable.
 * Does not: install (that is asked for by a person), judge login state.
 */
import { cliOf } from "../../manifest/kinds/body.ts"
import { createHash } from "node:crypto"
import path from "node:path"
import type { DriverContract, DriverKind, VersionCheck } from "../../manifest/types.ts"
import { parseVersionOutput, satisfies } from "../../manifest/version.ts"
import { hostLimits } from "../limits.ts"
import type { ReasonCode } from "../reasons.ts"
import { installFix } from "./install-fix.ts"
import { type Machine, unmetRequirement } from "./machine.ts"
import { type Located, locateSystemProgram, locateVendoredProgram, systemFolders } from "./program.ts"
import type { DriverAvailability, Probe, ProbeRequest, Program, RegisteredDriver } from "./types.ts"
import { splitWords } from "./words.ts"

/** Where versions outlive the process. Its values are only ever text that this file wrote. */
export interface VersionStore {
  get(key: string): Promise<string | undefined>
  set(key: string, version: string): Promise<void>
}

export interface AvailabilityOptions {
  readonly machine: Machine
  readonly probe: Probe
  readonly store?: VersionStore
  /** the sandbox's environment, for `$NAME` and `~` in check commands; default: the driver's `env.set` */
  readonly env?: (driver: DriverContract) => Readonly<Record<string, string>>
  /** the kinds this host can run; default: cli */
  readonly kinds?: readonly DriverKind[]
  readonly folders?: readonly string[]
}

export interface AvailabilityChecker {
  of(driver: RegisteredDriver): Promise<DriverAvailability>
}

const unavailable = (code: ReasonCode, reason: string, fix: string): DriverAvailability => ({
  available: false,
  code,
  reason,
  fix,
})

/** The author's order decides between the program brought along and the system's. */
const locate = (driver: DriverContract, bin: string, folders: readonly string[]): Located => {
  const bundle = path.dirname(driver.source.file)
  const usable = driver.install.filter((method) => method.usable)
  const vendored = usable.find((method) => method.method === "vendored")
  const relative = bin.includes("/") && !path.isAbsolute(bin) ? bin : vendored?.path
  if (relative === undefined) return locateSystemProgram(bin, folders)
  const brought = (): Located => locateVendoredProgram(relative, bundle, folders)
  if (relative === bin) return brought()
  const vendoredFirst = usable[0]?.method === "vendored"
  const first = vendoredFirst ? brought() : locateSystemProgram(bin, folders)
  if (first.ok) return first
  const second = vendoredFirst ? locateSystemProgram(bin, folders) : brought()
  return second.ok ? second : first
}

type Prepared =
  | { readonly ok: true; readonly request: ProbeRequest }
  | { readonly ok: false; readonly reason: string; readonly fix: string }

const prepareProbe = (
  driver: DriverContract,
  check: VersionCheck,
  program: Program,
  env: Readonly<Record<string, string>>,
  folders: readonly string[],
): Prepared => {
  const bin = cliOf(driver)?.bin ?? program.name
  const split = splitWords(check.cmd, env)
  const isOwn = (word: string): boolean =>
    word === bin || word === program.found || path.basename(word) === program.name
  const base = { driver, timeoutMs: check.timeoutMs }
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

export const createAvailability = ({
  machine,
  probe,
  store,
  env,
  kinds = ["cli"],
  folders = systemFolders,
}: AvailabilityOptions): AvailabilityChecker => {
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

  const of = async ({ contract, refusal }: RegisteredDriver): Promise<DriverAvailability> => {
    if (refusal !== undefined) return unavailable(refusal.code, refusal.reason, refusal.fix)
    if (contract.unusable !== undefined)
      return unavailable("tool_unavailable", contract.unusable, "run `caisson validate` on the driver")
    const cli = cliOf(contract)
    if (!kinds.includes(contract.body.kind) || cli === undefined) {
      return unavailable(
        "tool_unavailable",
        `this host does not run drivers of kind ${contract.body.kind}`,
        `register a driver of kind ${kinds.join(" or ")}`,
      )
    }
    const unmet = unmetRequirement(contract, machine)
    if (unmet !== undefined) return unavailable("tool_unavailable", unmet, "register a driver for this machine")
    const located = locate(contract, cli.bin, folders)
    if (!located.ok) return unavailable("tool_unavailable", located.reason, installFix(contract))
    const { program } = located
    const check = contract.versionCheck
    if (check === undefined) return { available: true, program }
    const prepared = prepareProbe(contract, check, program, env?.(contract) ?? cli.sandbox.env.set, folders)
    if (!prepared.ok) return unavailable("tool_unavailable", prepared.reason, prepared.fix)
    const checked = await versionOf(keyOf(contract, program, prepared.request), prepared.request, check)
    if (!checked.ok) return unavailable("tool_unavailable", checked.reason, checked.fix)
    const { version } = checked
    if (satisfies(version, check.range)) return { available: true, version, program }
    return unavailable(
      "version_mismatch",
      `version ${version} is installed, and the driver asks for ${check.range}`,
      `${installFix(contract)}, in a version that satisfies ${check.range}`,
    )
  }
  return Object.freeze({ of })
}
