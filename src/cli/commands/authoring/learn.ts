/**
 * `caisson learn [--tool ID | -- COMMAND…]`: a contract and a driver proposed from sealed runs.
 *
 * Guarantees: no run is committed; nothing is applied: what is proposed goes to `--out DIR`, never over other files, or to
 * stdout. A host is reached only where it was allowed for the run.
 */
import { basename, resolve } from "node:path"
import { type SeenCall, learnedManifests } from "../../../authoring/learn/manifests.ts"
import { citing, type Needs, needsOf, runsOthers } from "../../../authoring/learn/propose.ts"
import {
  driverFrom,
  faultOfTool,
  faultsOf,
  inputsOf,
  type ScaffoldAnswers,
} from "../../../authoring/scaffold/answers.ts"
import type { ScaffoldFile } from "../../../authoring/scaffold/scaffold.ts"
import { isWritable } from "../../../authoring/text/front.ts"
import type { Host } from "../../../host/types.ts"
import type { JsonObject, JsonValue } from "../../../manifest/types.ts"
import { exit, exitOf } from "../../exit.ts"
import { type HostFlags, withHost } from "../../host.ts"
import { onInterrupt } from "../../interrupt.ts"
import { diagnosticLines } from "../../render/diagnostics.ts"
import { resultJson, type Terminal } from "../../terminal.ts"
import { says } from "../../texts.ts"
import { inline, visible } from "../../visible.ts"
import { examineNew } from "./examine.ts"
import { holdsUp, learnCommand, type LearnedRuns } from "./learn-command.ts"
import { learnTool } from "./learn-tool.ts"
import { samplesOf } from "./samples.ts"
import { openedBy } from "./watched.ts"
import { versionOf } from "./version-of.ts"
import { writeNew } from "./write-new.ts"

export interface LearnFlags extends HostFlags {
  readonly tool?: string
  readonly as?: string
  readonly driver?: string
  readonly description?: string
  readonly input?: readonly string[]
  readonly runs: number
  readonly allow?: readonly string[]
  readonly exec?: readonly string[]
  readonly workspace: string
  readonly out?: string
  readonly json?: boolean
}

/** `git status -s` → git.status */
const toolIdOf = (command: readonly string[]): string => {
  const [bin = "", ...rest] = command
  const word = rest.find((each) => /^[a-z][a-z0-9-]*$/.test(each)) ?? "run"
  const id = `${basename(bin)
    .toLowerCase()
    .replace(/[^a-z0-9-]+/g, "-")
    .replace(/^-+|-+$/g, "")}.${word}`
  return faultOfTool(id) === undefined ? id.slice(0, 80) : "learned.command"
}

const readInputs = (given: readonly string[] | undefined): readonly JsonObject[] | string => {
  const inputs: JsonObject[] = []
  for (const text of given ?? ["{}"]) {
    try {
      const value = JSON.parse(text) as JsonValue
      if (typeof value !== "object" || value === null || Array.isArray(value)) return `${text} is no JSON object`
      inputs.push(value as JsonObject)
    } catch (error) {
      return `${text.slice(0, 80)} is no JSON: ${error instanceof Error ? error.message : String(error)}`
    }
  }
  return inputs
}

const OUTPUT = 10_000
const stdoutOf = (value: unknown): string | undefined => {
  const stdout = typeof value === "object" && value !== null && "stdout" in value ? value.stdout : undefined
  return typeof stdout === "string" && stdout.length <= OUTPUT && isWritable(stdout.replaceAll(/[\n\t]/g, " "))
    ? stdout
    : undefined
}

/** What every run with an input answered, where there were several and they agree. */
const callsOf = ({ byInput }: LearnedRuns): readonly SeenCall[] =>
  byInput.map(({ input, runs }) => {
    const outputs = runs.map(({ envelope }) => (envelope.ok ? stdoutOf(envelope.value) : undefined))
    const [first] = outputs
    const isSame = outputs.length > 1 && first !== undefined && outputs.every((each) => each === first)
    return { input, ...(isSame ? { output: first } : {}) }
  })

interface Proposal {
  readonly files: readonly ScaffoldFile[]
  readonly report: JsonObject
}

const tellNeeds = (needs: Needs, { needless, byInput }: LearnedRuns, terminal: Terminal): void => {
  const list = (
    title: string,
    items: readonly { readonly text: string; readonly receipts: readonly string[] }[],
  ): void => {
    for (const { text, receipts } of items) terminal.say(`${title}  ${inline(text)}  (${citing(receipts)})`)
  }
  list(
    "writes",
    needs.write.map(({ glob, receipts, guarded }) => ({
      text: guarded === true ? `${glob}, which other programs run or trust: look twice` : glob,
      receipts,
    })),
  )
  list(
    "reaches",
    needs.hosts.map(({ value, receipts }) => ({ text: value, receipts })),
  )
  list(
    "starts",
    needs.spawn.map(({ value, receipts }) => ({
      text: runsOthers(value) ? `${value}, which runs what it is given` : value,
      receipts,
    })),
  )
  for (const { what, why, receipts } of needs.left)
    terminal.say(`not proposed  ${inline(what)}: ${why}  (${citing(receipts)})`)
  for (const name of needless) terminal.say(`not needed  ${inline(name)}: runs without it end alike`)
  const failed = byInput.flatMap(({ runs }) => runs.filter(({ envelope }) => !envelope.ok))
  for (const { envelope } of failed.slice(0, 3))
    if (!envelope.ok) terminal.say(`failed  ${inline(envelope.error.message)}  (${envelope.receipt})`)
}

const learnFromCommand = async (
  host: Host,
  command: readonly string[],
  flags: LearnFlags,
  inputs: readonly JsonObject[],
  terminal: Terminal,
  signal: AbortSignal,
): Promise<Proposal | number> => {
  const { workspace, runs, allow = [], exec = [] } = flags
  const tool = flags.as ?? toolIdOf(command)
  const asked: ScaffoldAnswers = {
    kind: "cli",
    tool,
    driver: flags.driver ?? driverFrom(`learned-${tool}`),
    description: flags.description ?? `Does what \`${basename(command[0] ?? "")}\` was seen to do.`,
    command: [basename(command[0] ?? ""), ...command.slice(1)],
    inputs: [],
    write: [],
    hosts: [],
    spawn: [],
    output: "text",
  }
  const faults = faultsOf(asked)
  for (const fault of faults) terminal.say(`caisson: ${inline(fault)}`)
  const names = inputsOf(asked).map(({ name }) => name)
  const lacking = names.filter((name) => inputs.some((input) => input[name] === undefined))
  if (lacking.length > 0) terminal.say(`caisson: ${inline(lacking.join(", "))}: ${says.learnNeedsInput}`)
  if (faults.length > 0 || lacking.length > 0) return exit.usage
  const toLearn = { command, workspace, allow, exec, inputs, runs, signal }
  const learned = await terminal.during(learnCommand(host, toLearn), says.learning)
  const [first] = learned.byInput[0]?.runs ?? []
  if (first === undefined || signal.aborted) return exit.toolFailed
  const isOurs = !first.envelope.ok && !["tool", "violation"].includes(first.envelope.error.class)
  if (isOurs && !first.envelope.ok) {
    terminal.say(`caisson: ${first.envelope.error.code}: ${inline(first.envelope.error.message)}`)
    terminal.say(`hint: ${inline(first.envelope.error.hint)}`)
    return exitOf(first.envelope)
  }
  const seen = needsOf(learned.observations)
  const { read: _read, ...unread } = seen
  // `read: []` would show everything to a run, and nothing to a driver.
  const isEnough = seen.read === undefined || seen.read.length === 0 || (await holdsUp(host, toLearn, seen, learned))
  if (!isEnough) terminal.say(says.learnReadsAll)
  if (seen.read === undefined) terminal.say(says.learnUnread)
  const needs = isEnough ? seen : unread
  tellNeeds(needs, learned, terminal)
  const started = needs.spawn.map(({ value }) => value)
  const version = await versionOf(host, command[0] ?? "", started, workspace, signal)
  if (version === undefined) terminal.say(`caisson: ${says.learnNoVersion}`)
  const words = [...command.slice(1), ...inputs.flatMap((input) => Object.values(input).map(String))]
  const opened = learned.byInput
    .flatMap((each) => each.runs.flatMap(openedBy))
    .filter((path) => !path.startsWith(".git/"))
  const files = learnedManifests(asked, needs, callsOf(learned), version)
  return {
    files: [...files, ...samplesOf(workspace, words, opened)],
    report: {
      tool,
      driver: asked.driver,
      writes: needs.write.map(({ glob, receipts }) => ({ glob, receipts })),
      hosts: needs.hosts.map(({ value, receipts }) => ({ host: value, receipts })),
      programs: needs.spawn.map(({ value, receipts }) => ({ program: value, receipts })),
      not_proposed: needs.left.map(({ what, why, receipts }) => ({ what, why, receipts })),
      not_needed: learned.needless,
      runs: learned.byInput.flatMap(({ runs: made }) =>
        made.map(({ envelope, observation }) => ({ receipt: observation.receipt, ok: envelope.ok })),
      ),
    },
  }
}

const settle = (proposal: Proposal, flags: LearnFlags, terminal: Terminal): number => {
  const { files, report } = proposal
  const isNew = files.some(({ path }) => path === "DRIVER.md")
  const diagnostics = isNew ? examineNew(files) : []
  for (const each of diagnostics) for (const line of diagnosticLines(each, terminal.paint)) terminal.say(line)
  const asJson = flags.json === true || !terminal.isInteractive
  const { out } = flags
  if (out === undefined) {
    if (asJson) resultJson(terminal, { ok: true, ...report, files: files.map(({ path, text }) => ({ path, text })) })
    else for (const { path, text } of files) terminal.result(`# ${inline(path)}\n${visible(text)}`)
    return diagnostics.length === 0 ? exit.ok : exit.usage
  }
  const written = writeNew(resolve(out), files)
  if (!written.ok) {
    terminal.say(`caisson: ${inline(written.message)}`)
    terminal.say(`fix: ${inline(written.fix)}`)
    return exit.usage
  }
  if (asJson) resultJson(terminal, { ok: true, ...report, files: written.paths })
  else for (const path of written.paths) terminal.result(inline(path))
  return diagnostics.length === 0 ? exit.ok : exit.usage
}

export const run = async (command: readonly string[], flags: LearnFlags, terminal: Terminal): Promise<number> => {
  const inputs = readInputs(flags.input)
  const usage =
    typeof inputs === "string"
      ? inputs
      : (flags.tool === undefined) === (command.length === 0)
        ? says.learnNeedsOne
        : undefined
  if (usage !== undefined || typeof inputs === "string") {
    terminal.say(`caisson: ${inline(usage ?? "")}`)
    return exit.usage
  }
  using interrupt = onInterrupt(() => terminal.say(`caisson: ${says.cancelling}`))
  return await withHost({ ...flags, warm: true }, terminal, async (host) => {
    const proposal =
      flags.tool === undefined
        ? await learnFromCommand(host, command, flags, inputs, terminal, interrupt.signal)
        : await learnTool(host, flags.tool, flags, inputs, terminal, interrupt.signal)
    return typeof proposal === "number" ? proposal : settle(proposal, flags, terminal)
  })
}
