/**
 * `caisson init`: a tool and a driver to begin with, by flags or, at a terminal, by a few questions.
 *
 * Guarantees: what is written passes `caisson validate --strict`, was validated before it was written, and stands beside
 * what was there, never over it. Nothing is run and nothing is fetched.
 */
import { join, resolve } from "node:path"
import {
  driverFrom,
  faultOfDriver,
  faultOfTool,
  faultOfUrl,
  faultsOf,
  inputsOf,
  type ScaffoldAnswers,
  type ScaffoldKind,
  scaffoldKinds,
  wordsOfUnused,
} from "../../../authoring/scaffold/answers.ts"
import { hostOfUrl, scaffold } from "../../../authoring/scaffold/scaffold.ts"
import type { JsonObject } from "../../../manifest/types.ts"
import { exit } from "../../exit.ts"
import { onInterrupt } from "../../interrupt.ts"
import { askLines, type Questions } from "../../person/questions.ts"
import { diagnosticLines } from "../../render/diagnostics.ts"
import { resultJson, type Terminal } from "../../terminal.ts"
import { says } from "../../texts.ts"
import { quoted } from "../../typed-again.ts"
import { inline } from "../../visible.ts"
import { examineNew } from "./examine.ts"
import { writeNew } from "./write-new.ts"

export interface InitFlags {
  readonly out?: string
  readonly kind?: ScaffoldKind
  readonly tool?: string
  readonly driver?: string
  readonly description?: string
  readonly url?: string
  readonly method?: ScaffoldAnswers["method"]
  readonly language?: ScaffoldAnswers["language"]
  readonly package?: string
  readonly serverTool?: string
  readonly input?: readonly string[]
  readonly write?: readonly string[]
  readonly allow?: readonly string[]
  readonly exec?: readonly string[]
  readonly output?: ScaffoldAnswers["output"]
  readonly json?: boolean
}

type Ask = (question: string, fallback: string, fault?: (text: string) => string | undefined) => Promise<string>

class GivenUp extends Error {}
const TRIES = 5

const asker =
  (terminal: Terminal, questions: Questions): Ask =>
  async (question, fallback, fault = () => undefined) => {
    for (let attempt = 0; attempt < TRIES; attempt++) {
      const line = await questions.ask(`${question}${fallback === "" ? "" : ` (${fallback})`}: `)
      if (line === undefined) throw new GivenUp()
      const text = line.trim() === "" ? fallback : line.trim()
      const problem = fault(text)
      if (problem === undefined) return text
      terminal.say(`  ${problem}`)
    }
    throw new GivenUp()
  }

const wordsOf = (text: string): readonly string[] => text.split(/[\s,]+/).filter((word) => word !== "")

/** A command as it is typed, with quotes, and nothing else of a shell's. */
const commandWords = (text: string): readonly string[] =>
  [...text.matchAll(/'([^']*)'|"([^"]*)"|(\S+)/g)].map(([, single, double, plain]) => single ?? double ?? plain ?? "")

/** What flags have not said is asked, the fewest things first. */
const askRest = async (
  flags: InitFlags,
  command: readonly string[],
  ask: Ask,
): Promise<[InitFlags, readonly string[]]> => {
  const isKind = (text: string): text is ScaffoldKind => (scaffoldKinds as readonly string[]).includes(text)
  const kind = await (flags.kind ??
    ask(`kind: ${scaffoldKinds.join(", ")}`, "cli", (text) => (isKind(text) ? undefined : says.oneOfThese)))
  const tool = flags.tool ?? (await ask("the tool's id", "hello.say", faultOfTool))
  const driver = flags.driver ?? (await ask("the driver's id", driverFrom(tool), faultOfDriver))
  const description = flags.description ?? (await ask("what it does, in a sentence", `Does ${tool}.`))
  const asked: InitFlags = { ...flags, kind: kind as ScaffoldKind, tool, driver, description }
  if (kind === "http")
    return [
      {
        ...asked,
        url: flags.url ?? (await ask("the address, as in https://api.example.com/items/${input.id}", "", faultOfUrl)),
      },
      command,
    ]
  if (kind !== "cli") return [asked, command]
  const typed =
    command.length > 0
      ? command
      : commandWords(await ask("the command, as in  wc -l ${input.file}  (empty: a script to fill in)", ""))
  const write = flags.write ?? wordsOf(await ask("what it writes, as in notes/** (empty: nothing)", ""))
  const allow = flags.allow ?? wordsOf(await ask("hosts it reaches (empty: none)", ""))
  return [{ ...asked, write, allow }, typed]
}

const answersOf = (flags: InitFlags, command: readonly string[]): ScaffoldAnswers => {
  const { kind = "cli", tool = "", driver = driverFrom(tool), description = `Does ${tool}.` } = flags
  const { url, method, language, package: pack, serverTool } = flags
  return {
    ...{ kind, tool, driver, description, command },
    ...(url === undefined ? {} : { url }),
    ...(method === undefined ? {} : { method }),
    ...(language === undefined ? {} : { language }),
    ...(pack === undefined ? {} : { package: pack }),
    ...(serverTool === undefined ? {} : { serverTool }),
    inputs: flags.input ?? [],
    write: flags.write ?? [],
    hosts: flags.allow ?? [],
    spawn: flags.exec ?? [],
    output: flags.output ?? (kind === "http" ? "json" : "text"),
  }
}

/** A command that calls it, with something in the place of each input. */
const tryIt = (answers: ScaffoldAnswers, folder: string): string => {
  const inputs = inputsOf(answers)
  const greets = inputs.length === 0 && answers.kind !== "http" && answers.command.length === 0
  const sample = { text: "Ada", path: "README.md", integer: 1, number: 1, boolean: true, any: null }
  const input: JsonObject = greets
    ? { name: "Ada" }
    : Object.fromEntries(inputs.map(({ name, type }) => [name, sample[type]]))
  const json = quoted(JSON.stringify(input))
  return answers.kind === "builtin"
    ? `node ${quoted(join(folder, "embed.mjs"))} ${json}`
    : `caisson call ${answers.tool} --manifests ${quoted(folder)} -i ${json}`
}

export const run = async (command: readonly string[], given: InitFlags, terminal: Terminal): Promise<number> => {
  let [flags, words] = [given, command]
  if (given.tool === undefined) {
    if (!terminal.canAsk) {
      terminal.say(`caisson: ${says.initNeedsTool}`)
      return exit.usage
    }
    using interrupt = onInterrupt(() => undefined)
    using questions = askLines(interrupt.signal)
    try {
      ;[flags, words] = await askRest(given, command, asker(terminal, questions))
    } catch (error) {
      if (!(error instanceof GivenUp)) throw error
      terminal.say(says.nothingWritten)
      return exit.usage
    }
  }
  const answers = answersOf(flags, words)
  const faults = faultsOf(answers)
  for (const fault of faults) terminal.say(`caisson: ${inline(fault)}`)
  if (faults.length > 0) return exit.usage
  const files = scaffold(answers)
  const diagnostics = examineNew(files)
  if (diagnostics.length > 0) {
    for (const each of diagnostics) for (const line of diagnosticLines(each, terminal.paint)) terminal.say(line)
    terminal.say(`caisson: ${says.nothingWritten}`)
    return exit.usage
  }
  const folder = flags.out ?? answers.driver
  const written = writeNew(resolve(folder), files)
  if (!written.ok) {
    terminal.say(`caisson: ${inline(written.message)}`)
    terminal.say(`fix: ${inline(written.fix)}`)
    return exit.usage
  }
  const idle = wordsOfUnused(answers)
  if (idle !== undefined) terminal.say(`note: ${inline(idle)}, or in DRIVER.md`)
  const next = tryIt(answers, folder)
  const host = answers.url === undefined ? undefined : hostOfUrl(answers.url)
  if (flags.json === true || !terminal.isInteractive)
    resultJson(terminal, { ok: true, files: written.paths, call: next, ...(host === undefined ? {} : { host }) })
  else for (const path of written.paths) terminal.result(inline(path))
  terminal.say(`try it:  ${inline(next)}`)
  return exit.ok
}
