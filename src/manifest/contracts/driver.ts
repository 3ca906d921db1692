/**
 * DRIVER.md, SDK.md, HTTP.md and MCP.md (AIP-30 and its subtypes) → DriverContract.
 *
 * Guarantees: the universal schema is applied first, then the one of its `kind`; the leniencies of compat mode are
 * each named in the contract's source; what can be parsed but never serve a call is marked `unusable`.
 * Does not: meet the tool's contract; binding.ts does.
 */
import { readConform } from "../kinds/conform.ts"
import { sourceOf } from "../values/context.ts"
import type { Context } from "../values/context.ts"
import { checkCredentials } from "../values/credentials.ts"
import { joinPath, nearest, shown } from "../values/diagnostics.ts"
import type { Report } from "../values/diagnostics.ts"
import { readEgress } from "../values/egress-block.ts"
import {
  defined,
  object,
  objects,
  optionalNumber,
  optionalObject,
  optionalText,
  text,
  texts,
} from "../values/fields.ts"
import { deepFreeze } from "../values/freeze.ts"
import { dialect, readCost, readImplementation } from "./implementation.ts"
import { mendDriver } from "./driver-mend.ts"
import { readAuth } from "../kinds/auth.ts"
import { cliOf, readBody } from "../kinds/body.ts"
import { readHealth } from "../kinds/health.ts"
import { splitInstall } from "../kinds/install.ts"
import { liftRuntime, readEgressBudget, readLimits, readRunner } from "../kinds/runner.ts"
import { readSetup } from "../kinds/setup.ts"
import { limits } from "../limits.ts"
import { checkTokensNamed, readTokenCapture } from "./token-capture.ts"
import { compilePattern } from "../schema/pattern.ts"
import { checkShape, ownSchema } from "../schema/shape.ts"
import { secretsIn } from "../templates/template-tree.ts"
import { readRetry } from "./tool.ts"
import type { DriverContract, DriverKind, Implementation, JsonObject, VersionCheck } from "../types.ts"
import { majorOf, parseRange, rangesMeet } from "../schema/version.ts"

/** Where a driver's front matter came from, when not from DRIVER.md itself. */
interface Origin {
  /** the front matter as written, for the digest */
  readonly written: JsonObject
  /** for each `implements[]` entry made from a CLI.md's `commands`: its path there */
  readonly commands: ReadonlyMap<number, readonly string[]>
}

const KINDS: readonly DriverKind[] = ["cli", "http", "mcp", "sdk", "builtin"]
const keysOf = (name: Parameters<typeof ownSchema>[0]): readonly string[] =>
  Object.keys(object(ownSchema(name), "properties"))
const known = new Map<DriverKind, { readonly universal: readonly string[]; readonly own: readonly string[] }>()

function knownKeys(kind: DriverKind): { readonly universal: readonly string[]; readonly own: readonly string[] } {
  const found = known.get(kind)
  if (found !== undefined) return found
  const universal = keysOf("driver")
  const made = { universal, own: keysOf(`driver-${kind}`).filter((key) => !universal.includes(key)) }
  known.set(kind, made)
  return made
}

function checkKeys(front: JsonObject, kind: DriverKind, context: Context): void {
  const { universal, own } = knownKeys(kind)
  for (const key of Object.keys(front)) {
    if (universal.includes(key) || own.includes(key)) continue
    const near = nearest(key, [...universal, ...own])
    const say = context.mode === "strict" ? context.report.error : context.report.lenient
    say(
      "unknown-key",
      joinPath("", key),
      `\`${shown(key, 40)}\` is not a known key of a ${kind} driver${context.mode === "strict" ? "" : " and is ignored"}`,
      near === undefined ? "remove it, or move it under `metadata`" : `did you mean \`${near}\`?`,
    )
  }
}

function readVersionCheck(front: JsonObject, context: Context): VersionCheck | undefined {
  const block = optionalObject(front, "version_check")
  if (block === undefined) return undefined
  const pattern = compilePattern(text(block, "parse"))
  if (!pattern.ok) context.report.error("version-pattern", "version_check.parse", pattern.message, pattern.fix)
  else if (!pattern.pattern.groups)
    context.report.error(
      "version-pattern",
      "version_check.parse",
      "the pattern has no group; the version is read from group 1",
      "put the version into parentheses, as in `jq-(\\d+\\.\\d+)`",
    )
  const range = parseRange(text(block, "range"))
  if (!range.ok) context.report.error("version-range", "version_check.range", range.message, range.fix)
  else if (range.translated) dialect("version_check.range", text(block, "range"), range.range, context)
  const asked = optionalNumber(block, "timeout_ms") ?? limits.versionCheckMs
  if (asked > limits.versionCheckMs)
    context.report.warn(
      "version-check-too-long",
      "version_check.timeout_ms",
      `${asked} ms is longer than a version check may take; it ends after ${limits.versionCheckMs}`,
      `write at most ${limits.versionCheckMs}, as in \`timeout_ms: 5000\``,
    )
  return {
    cmd: text(block, "cmd"),
    parse: text(block, "parse"),
    range: range.ok ? range.range : text(block, "range"),
    timeoutMs: Math.min(asked, limits.versionCheckMs),
  }
}

function readImplements(
  front: JsonObject,
  side: Parameters<typeof readImplementation>[2],
  origin: Origin,
  context: Context,
): readonly Implementation[] {
  const seen: Implementation[] = []
  return objects(front, "implements").flatMap((entry, i) => {
    const command = origin.commands.get(i)
    const path = command === undefined ? joinPath("implements", i) : `commands.${command.join(".")}`
    const made = readImplementation(entry, path, side, context, command)
    if (made === undefined) return []
    const twice = seen.find((other) => other.tool === made.tool && meet(other, made))
    if (twice !== undefined && command !== undefined) return []
    if (twice !== undefined)
      context.report.error(
        "implements-duplicate",
        path,
        `the tool \`${shown(made.tool)}\` is implemented twice by this driver, for versions that both take`,
        "keep one entry per tool and major, as in `version: ^1.0.0` and `version: ^2.0.0`",
      )
    seen.push(made)
    return [made]
  })
}

/** Can one version of the tool be meant by both? */
const meet = (a: Implementation, b: Implementation): boolean =>
  (a.major === undefined || b.major === undefined || a.major === b.major) && rangesMeet(a.versionRange, b.versionRange)

/** A secret that a template asks for is one that the driver's login or SECRETS.md gives it. */
function checkSecrets({ body, implements: entries, auth }: DriverContract, { report }: Context): void {
  if (auth?.ref !== undefined) return
  for (const name of secretsIn([body, entries]))
    if (auth?.state.env.includes(name) !== true)
      report.warn(
        "secret-undeclared",
        "auth.state.env",
        `\`\${secrets.${shown(name, 60)}}\` is used and nothing declares it; it has no value`,
        `add \`${shown(name, 60)}\` to \`auth.state.env\`, or name a SECRETS.md in \`auth.ref\``,
      )
}

/** A function of the host is not imported into a sandbox, and what is, is not of the host. */
function checkExecutable(kind: DriverKind, report: Report): void {
  if (kind === "builtin")
    report.error(
      "builtin-execute",
      "execute",
      "a builtin is a function of the host, and `execute` runs in a sandbox",
      "give the function to createHost as `builtins: { id: fn }`, or define the driver as `kind: sdk`",
    )
}

export function readDriver(written: JsonObject, context: Context, from?: Origin): DriverContract | undefined {
  const { report } = context
  const origin = from ?? { written, commands: new Map() }
  if (from === undefined) checkCredentials(written, report)
  const mended = mendDriver(liftRuntime(written, context), context)
  if (mended.stop === true) return undefined
  const install = splitInstall(mended.front["install"], context)
  const front = install === undefined ? mended.front : { ...mended.front, install: install.checked }
  const universal = checkShape("driver", front, report)
  const kind = KINDS.find((name) => name === front["kind"])
  const executes = context.code?.execute !== undefined
  if (kind === undefined) return undefined
  if (executes) checkExecutable(kind, report)
  else if (!checkShape(`driver-${kind}`, front, report)) return undefined
  if (!universal) return undefined
  checkKeys(front, kind, context)
  const sandboxBlock =
    kind === "cli" ? object(front, "sandbox") : kind === "mcp" ? optionalObject(front, "sandbox") : undefined
  const network = readEgress(optionalObject(front, "network"), sandboxBlock, report)
  const body = executes ? ({ kind: "code", as: kind } as const) : readBody(front, kind, network.egress, context)
  const metadata = object(front, "metadata")
  const runner = readRunner(front["runner"], context)
  const requires = object(front, "requires")
  const version = text(front, "version")
  const contract: DriverContract = defined({
    kind: "driver" as const,
    id: text(front, "id"),
    name: text(front, "name"),
    description: text(front, "description"),
    version,
    major: majorOf(version),
    body,
    code: context.code,
    bundle: mended.bundle,
    implements: readImplements(front, { body, egress: network.egress }, origin, context),
    install: install?.methods ?? [],
    versionCheck: readVersionCheck(front, context),
    auth: readAuth(front, cliOf({ body }), network.egress, context),
    ...network,
    region: Array.isArray(front["region"]) ? texts(front, "region") : ["global"],
    regionDeclared: Array.isArray(front["region"]),
    policyTags: texts(front, "policy_tags"),
    ...readCost(object(front, "cost_override")),
    timeoutMs: optionalNumber(front, "timeout_override_ms"),
    retry: readRetry(optionalObject(front, "retry_override")),
    healthCheck: readHealth(front, network.egress, context),
    requires: defined({
      os: texts(requires, "os"),
      arch: texts(requires, "arch"),
      minDiskMb: optionalNumber(requires, "min_disk_mb"),
      minMemoryMb: optionalNumber(requires, "min_memory_mb"),
    }),
    setup: readSetup(front, context),
    runner,
    limits: readLimits(runner, metadata),
    egressBudget: readEgressBudget(metadata),
    tokenCapture: readTokenCapture(metadata, context),
    examples: objects(front, "examples").map((each) =>
      defined({ goal: text(each, "goal"), note: optionalText(each, "note"), cmd: optionalText(each, "cmd") }),
    ),
    conform: readConform(metadata, "driver", context.report),
    tags: texts(front, "tags"),
    metadata,
    // What its kind would need to run it, `execute` does without.
    unusable: executes ? undefined : (mended.unusable ?? optionalText(metadata, "unusable")),
    source: sourceOf(context, origin.written),
  })
  checkSecrets(contract, context)
  checkTokensNamed(contract.auth, contract.tokenCapture, context)
  return report.failed ? undefined : deepFreeze(contract)
}
