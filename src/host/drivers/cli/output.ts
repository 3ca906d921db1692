/**
 * A program that has exited → the call's value or its error, by the driver's `output` rules (AIP-29).
 *
 * Guarantees: pure and total. The exit code decides between value and error; a failed program's error carries the exit
 * code and a bounded tail of its error stream, a value the tail of what was said beside it. Outputs that the driver drops are not in the value.
 * Assumes: a plain exit; other endings are `error-map.ts`. Does not: validate against `outputs`, redact secrets.
 */
import { cliOf } from "../../../manifest/kinds/body.ts"
import type {
  CliOutput,
  DriverContract,
  Implementation,
  JsonValue,
  OutputFormat,
  ToolContract,
} from "../../../manifest/types.ts"
import type { Captured } from "../../../sandbox/backend.ts"
import { exitMeaning } from "./exit-code.ts"
import type { Failure } from "../../failure.ts"
import { type ParsedOutput, parseOutput } from "./parse-output.ts"
import { isObject } from "../../invoke/schema-path.ts"
import { tail } from "../../invoke/stream-text.ts"

interface ExitedProgram {
  readonly exitCode: number
  readonly stdout: Captured
  readonly stderr: Captured
}

/** `mixed` is stdout, then stderr: the order in which the two were interleaved is not captured. */
const pick = (stream: CliOutput["stream"], { stdout, stderr }: ExitedProgram): Captured => {
  if (stream === "stdout") return stdout
  if (stream === "stderr") return stderr
  const bytes = new Uint8Array(stdout.bytes.length + stderr.bytes.length)
  bytes.set(stdout.bytes)
  bytes.set(stderr.bytes, stdout.bytes.length)
  return { bytes, truncated: stdout.truncated || stderr.truncated, total: stdout.total + stderr.total }
}

const defaults: CliOutput = Object.freeze({
  defaultFormat: "text",
  jsonFlagArgs: [],
  exitCodes: {},
  stream: "stdout",
  errorStream: "stderr",
})

const exitFailure = (driver: DriverContract, rules: CliOutput, exited: ExitedProgram): Failure | undefined => {
  const meaning = exitMeaning(driver, exited.exitCode)
  if (meaning.ok) return undefined
  const said = meaning.word === "error" ? "" : ` (${meaning.word})`
  return {
    ok: false,
    code: meaning.code,
    message: `\`${cliOf(driver)?.bin ?? driver.id}\` exited with ${exited.exitCode}${said}`,
    details: { exit_code: exited.exitCode, meaning: meaning.word, stderr: tail(pick(rules.errorStream, exited)) },
  }
}

/** Warnings of a program that succeeded; nothing where its value was read from that stream, or holds it. */
const saidBeside = (
  { stream }: CliOutput,
  value: JsonValue,
  { stderr }: ExitedProgram,
): { readonly stderr?: string } => {
  const isInValue = stream !== "stdout" || (isObject(value) && Object.hasOwn(value, "stderr"))
  const said = isInValue ? "" : tail(stderr)
  return said.trim() === "" ? {} : { stderr: said }
}

/** The value without the outputs that the driver drops; the contract's optional outputs are then absent. */
const narrowOutputs = (value: JsonValue, drop: readonly string[]): JsonValue => {
  if (drop.length === 0 || !isObject(value)) return value
  return Object.fromEntries(Object.entries(value).filter(([key]) => !drop.includes(key)))
}

interface OutputRules {
  readonly tool: Pick<ToolContract, "outputs">
  readonly driver: DriverContract
  readonly implementation: Pick<Implementation, "dropOutputs">
  readonly format: OutputFormat
}

export const interpretOutput = (
  { tool, driver, implementation, format }: OutputRules,
  exited: ExitedProgram,
): ParsedOutput => {
  const rules = cliOf(driver)?.output ?? defaults
  const failure = exitFailure(driver, rules, exited)
  if (failure !== undefined) return failure
  const parsed = parseOutput(format, tool.outputs, {
    main: pick(rules.stream, exited),
    stderr: exited.stderr,
    exitCode: exited.exitCode,
  })
  if (!parsed.ok) {
    return { ...parsed, details: { ...parsed.details, exit_code: exited.exitCode, stderr: tail(exited.stderr) } }
  }
  const dropped = implementation.dropOutputs.filter((key) => isObject(parsed.value) && Object.hasOwn(parsed.value, key))
  const notes = dropped.length === 0 ? parsed.notes : [...parsed.notes, `dropped by the driver: ${dropped.join(", ")}`]
  return {
    ok: true,
    value: narrowOutputs(parsed.value, implementation.dropOutputs),
    notes,
    ...saidBeside(rules, parsed.value, exited),
  }
}
