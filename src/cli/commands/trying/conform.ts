/**
 * `caisson conform [NAME…]`: the examples of contracts and drivers, run sealed, each told.
 *
 * Guarantees: runs in a host of its own. Each case is told on stderr as it ends; stdout carries the report alone, as
 * JSON, or as TAP where that was asked for. Exit code 0 where every example that was tried holds, 1 where one does not;
 * where one could not be tried, that of the reason; 2 where there was nothing to try.
 */
import { appendFileSync, closeSync, constants, openSync, writeFileSync } from "node:fs"
import { resolve, sep } from "node:path"
import type { ConformCase, ConformPlan } from "../../../host/conform/types.ts"
import { type ReasonCode, reasons } from "../../../host/reasons.ts"
import type { Host } from "../../../host/types.ts"
import { exit } from "../../exit.ts"
import { type HostFlags, withHost } from "../../host.ts"
import { onInterrupt } from "../../interrupt.ts"
import { annotationsOf, markdownOf } from "../../render/conform/github.ts"
import { junitOf } from "../../render/conform/junit.ts"
import { countsOf, reportJson, summaryOf, type Tried } from "../../render/conform/report.ts"
import { tapOf } from "../../render/conform/tap.ts"
import { resultJson, type Terminal } from "../../terminal.ts"
import { says } from "../../texts.ts"
import { completed } from "../../typed-again.ts"
import { inline, nameText, noRunnerCommand } from "../../visible.ts"

interface ConformFlags extends HostFlags {
  readonly all?: boolean
  readonly outside?: boolean
  readonly junit?: string
  readonly tap?: boolean
  readonly json?: boolean
}

const isBelow = (file: string, folders: readonly string[]): boolean =>
  folders.some((folder) => file.startsWith(resolve(folder) + sep))

/** Names stand for a driver, else for a tool; without names, for all that lies in the folders that were named. */
const planFor = async (host: Host, names: readonly string[], flags: ConformFlags): Promise<ConformPlan> => {
  const { planConform } = await import("../../../host/conform/conform.ts")
  const outside = flags.outside === true
  if (names.length === 0) {
    const plan = await planConform(host, { outside })
    if (flags.all === true) return plan
    const here = (file: string): boolean => isBelow(file, flags.manifests ?? [])
    return {
      cases: plan.cases.filter(({ file }) => here(file)),
      without: plan.without.filter(({ file }) => here(file)),
      unknown: [],
    }
  }
  const registered = new Set((await host.drivers()).map(({ contract: { id } }) => id))
  const isDriver = (name: string): boolean => registered.has(name.replace(/@\d+$/, ""))
  const tools = new Set((await host.tools()).map(({ contract: { id } }) => id))
  const isTool = (name: string): boolean => !isDriver(name) && tools.has(name.replace(/@\d+$/, ""))
  return planConform(host, {
    driver: names.filter((name) => !isTool(name)),
    tool: names.filter(isTool),
    outside,
  })
}

const tellUnknown = ({ unknown }: ConformPlan, { manifests }: HostFlags, terminal: Terminal): void => {
  for (const { what, name, nearest } of unknown) {
    const hint =
      nearest === undefined
        ? `${completed("`caisson drivers`", manifests)} lists them`
        : `did you mean ${inline(nearest)}?`
    terminal.say(`caisson: there is no ${what} ${nameText(name)}; ${hint}`)
  }
}

/** What lies in the folders that were named and could not be read: where a name that is missing may be. */
const tellRefused = (host: Host, { manifests = [] }: HostFlags, terminal: Terminal): void => {
  for (const { file, availability } of host
    .unloaded()
    .filter((each) => isBelow(each.file, manifests))
    .slice(0, 5))
    if (!availability.available)
      terminal.say(`caisson: ${inline(file)}: ${inline(availability.reason)}; ${inline(availability.fix)}`)
}

const tellWithout = ({ without }: ConformPlan, terminal: Terminal): void => {
  for (const { driver, file, tools } of without) {
    terminal.say(`caisson: ${inline(driver)} has no example that can be run: nothing shows that it keeps its contract`)
    terminal.say(`fix: ${says.writeExample} in ${inline(tools[0] ?? file)}; docs/conform.md tells more`)
  }
}

/** In one line, which steers neither a terminal nor the runner. */
const told = (text: string): string => noRunnerCommand(inline(text))

const tellCase = ({ each, result }: Tried, terminal: Terminal): void => {
  const { paint } = terminal
  const { outcome, why, ms } = result
  if (outcome === "passed") {
    if (terminal.isInteractive) terminal.say(`${paint.green("ok")}      ${told(each.title)} ${paint.dim(`${ms} ms`)}`)
    return
  }
  const word = { failed: paint.red("failed "), blocked: paint.red("blocked"), skipped: paint.yellow("skipped") }[
    outcome
  ]
  if (outcome === "skipped" && !terminal.isInteractive) return
  terminal.say(`${word} ${told(each.title)}`)
  for (const line of why) terminal.say(`        ${told(line)}`)
  if (outcome === "failed") terminal.say(`        ${told(each.file)}${each.line === undefined ? "" : `:${each.line}`}`)
}

const runAll = async (
  cases: readonly ConformCase[],
  flags: ConformFlags,
  signal: AbortSignal,
  terminal: Terminal,
): Promise<readonly Tried[]> => {
  const tried: Tried[] = []
  for (const each of cases) {
    if (signal.aborted) break
    const ran = await terminal.during(each.run({ signal }), each.title)
    // Of everything, what this machine has no program for is no finding.
    const isAbsent = flags.all === true && ran.outcome === "blocked" && ran.envelope === undefined
    const result = isAbsent ? ({ ...ran, outcome: "skipped" } as const) : ran
    tried.push({ each, result })
    tellCase({ each, result }, terminal)
  }
  return tried
}

const exitOfRun = (tried: readonly Tried[]): number => {
  if (tried.some(({ result }) => result.outcome === "failed")) return exit.toolFailed
  const code = tried.find(({ result }) => result.outcome === "blocked")?.result.code
  if (code === undefined) return exit.ok
  return Object.hasOwn(reasons, code) ? reasons[code as ReasonCode].exit : exit.hostBroken
}

/** Over a report of before, never through a link that lies in its place. */
const writeReport = (file: string, text: string): void => {
  const { O_WRONLY, O_CREAT, O_TRUNC, O_NOFOLLOW } = constants
  const fd = openSync(file, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, 0o666)
  try {
    writeFileSync(fd, text)
  } finally {
    closeSync(fd)
  }
}

const writeReports = (tried: readonly Tried[], flags: ConformFlags, terminal: Terminal): boolean => {
  try {
    if (flags.junit !== undefined) writeReport(flags.junit, junitOf(tried))
    if (process.env["GITHUB_ACTIONS"] === "true") {
      for (const line of annotationsOf(tried, process.env["GITHUB_WORKSPACE"] ?? process.cwd())) terminal.say(line)
      const summary = process.env["GITHUB_STEP_SUMMARY"] ?? ""
      if (summary !== "") appendFileSync(summary, markdownOf(tried))
    }
    return true
  } catch (error) {
    terminal.say(`caisson: the report could not be written: ${inline(error instanceof Error ? error.message : "")}`)
    return false
  }
}

export const run = async (names: readonly string[], flags: ConformFlags, terminal: Terminal): Promise<number> => {
  if (names.length === 0 && flags.all !== true && flags.manifests === undefined) {
    terminal.say(`caisson: ${says.conformWhat}`)
    return exit.usage
  }
  using interrupt = onInterrupt(() => terminal.say(`caisson: ${says.cancelling}`))
  return await withHost({ ...flags, warm: true }, terminal, async (host) => {
    const plan = await planFor(host, names, flags)
    tellUnknown(plan, flags, terminal)
    if (plan.unknown.length > 0) {
      tellRefused(host, flags, terminal)
      return exit.usage
    }
    tellWithout(plan, terminal)
    const tried = await runAll(plan.cases, flags, interrupt.signal, terminal)
    const counts = countsOf(tried)
    const isNothing = counts.passed + counts.failed + counts.blocked === 0
    const code = interrupt.signal.aborted ? exit.toolFailed : isNothing ? exit.usage : exitOfRun(tried)
    const isWritten = writeReports(tried, flags, terminal)
    if (flags.tap === true) terminal.result(tapOf(tried).trimEnd())
    else if (flags.json === true || !terminal.isInteractive)
      resultJson(terminal, {
        ok: code === exit.ok,
        ...counts,
        cases: reportJson(tried),
        without: plan.without.map(({ driver }) => driver),
      })
    if (tried.length === 0) terminal.say(`caisson: ${says.nothingTried}`)
    else terminal.say(summaryOf(counts))
    return isWritten ? code : exit.hostBroken
  })
}
