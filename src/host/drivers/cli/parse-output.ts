/**
 * Captured bytes → a JSON value, by format.
 *
 * Guarantees: total; the value is plain JSON of bounded depth; text is verbatim. Truncated text ends in a visible note
 * that names the limit; truncated JSON, YAML and bytes are `limit_exceeded`, never half a value.
 * Does not: validate against the contract's `outputs`.
 */
import type * as Yaml from "yaml"
import { onDemand } from "../../../manifest/schema/on-demand.ts"
import type { JsonSchema, JsonValue, OutputFormat } from "../../../manifest/types.ts"
import type { Captured } from "../../../sandbox/backend.ts"
import type { Failure, Success } from "../../failure.ts"
import { largeBinaryBytes, maxOutputDepth } from "../../invoke/limits.ts"
import { isObject } from "../../invoke/schema-path.ts"
import { decode, truncationNote } from "../../invoke/stream-text.ts"

const yaml = onDemand<typeof Yaml>("yaml")

export type ParsedOutput = Success | Failure

const parseFailed = (format: string, message: string): Failure => ({
  ok: false,
  code: "output_parse_failed",
  message: `the output is not ${format}: ${message.slice(0, 200)}`,
  details: { format },
})

/** Plain JSON within the depth limit. `visit` is iterative, so that depth cannot exhaust the stack. */
const problemIn = (value: unknown): string | undefined => {
  const open: { value: unknown; depth: number }[] = [{ value, depth: 0 }]
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const { value: at, depth } = next
    if (depth > maxOutputDepth) return `it is nested deeper than ${maxOutputDepth} levels`
    if (typeof at === "number" && !Number.isFinite(at)) return "it has a number that JSON does not have"
    if (at === undefined || typeof at === "bigint" || typeof at === "function" || typeof at === "symbol")
      return "it has a value that JSON does not have"
    if (typeof at !== "object" || at === null) continue
    const prototype: unknown = Object.getPrototypeOf(at)
    if (!Array.isArray(at) && prototype !== Object.prototype) return "it has a value that JSON does not have"
    for (const inner of Object.values(at)) open.push({ value: inner, depth: depth + 1 })
  }
  return undefined
}

const parseJson = (text: string): ParsedOutput => {
  let value: JsonValue
  try {
    value = JSON.parse(text) as JsonValue
  } catch (error) {
    if (text.trim() === "") return parseFailed("json", "it is empty")
    return parseFailed(
      "json",
      error instanceof SyntaxError ? error.message.replace(/, ?(?:\.{3})?".*$/s, "") : "it cannot be read",
    )
  }
  const problem = problemIn(value)
  return problem === undefined ? { ok: true, value, notes: [] } : parseFailed("json", problem)
}

const parseYaml = (text: string): ParsedOutput => {
  let value: unknown
  try {
    const documents = yaml().parseAllDocuments(text, {
      version: "1.2",
      schema: "core",
      stringKeys: true,
      prettyErrors: false,
      logLevel: "silent",
    })
    if (!Array.isArray(documents) || documents.length === 0) return parseFailed("yaml", "it is empty")
    const [document, more] = documents
    if (document === undefined || more !== undefined) return parseFailed("yaml", "it has more than one document")
    const [fault] = document.errors
    if (fault !== undefined) return parseFailed("yaml", fault.message)
    value = document.toJS({ maxAliasCount: 100 })
  } catch (error) {
    return parseFailed("yaml", error instanceof Error ? error.message : "it cannot be read")
  }
  const problem = problemIn(value)
  return problem === undefined ? { ok: true, value: value as JsonValue, notes: [] } : parseFailed("yaml", problem)
}

const property = (outputs: JsonSchema, key: string, type: string): boolean => {
  const properties = outputs["properties"]
  if (!isObject(properties) || !Object.hasOwn(properties, key)) return false
  const schema = properties[key]
  return isObject(schema) && schema["type"] === type
}

/** Streams and exit of a finished program. `main` is the stream that the driver's `stream` chose. */
interface Finished {
  readonly main: Captured
  readonly stderr: Captured
  readonly exitCode: number
}

/**
 * Text for a contract that promises an object goes to its `text` property, else `stdout`; `stderr` and `exit_code`
 * are filled where the contract has them. Any other contract gets the text itself.
 */
const textValue = (text: string, outputs: JsonSchema, finished: Finished): JsonValue => {
  const key = ["text", "stdout"].find((name) => property(outputs, name, "string"))
  if (outputs["type"] !== "object" || key === undefined) return text
  return {
    [key]: text,
    ...(property(outputs, "stderr", "string") ? { stderr: decode(finished.stderr).text } : {}),
    ...(property(outputs, "exit_code", "integer") ? { exit_code: finished.exitCode } : {}),
  }
}

const tooMuch = (format: OutputFormat, main: Captured): Failure => ({
  ok: false,
  code: "limit_exceeded",
  message: `the ${format} output is larger than the limit: ${truncationNote(main)}`,
  hint: "ask the tool for less, let it write to a workspace file, or raise the output limit",
  details: { limit: "output", kept: main.bytes.length, total: main.total },
})

export const parseOutput = (format: OutputFormat, outputs: JsonSchema, finished: Finished): ParsedOutput => {
  const { main } = finished
  if (format !== "text" && main.truncated) return tooMuch(format, main)
  if (format === "binary") {
    const base64 = Buffer.from(main.bytes).toString("base64")
    const notes =
      main.bytes.length > largeBinaryBytes
        ? [`binary output of ${main.bytes.length} bytes; a workspace file suits it better`]
        : []
    return { ok: true, value: outputs["type"] === "string" ? base64 : { base64, bytes: main.bytes.length }, notes }
  }
  const { text, valid } = decode(main)
  if (format === "text") {
    const notes = [
      ...(main.truncated ? [truncationNote(main)] : []),
      ...(valid ? [] : ["the output is not valid UTF-8; replacement characters stand for what is not"]),
    ]
    const shown = main.truncated ? `${text}\n[caisson: ${truncationNote(main)}]` : text
    return { ok: true, value: textValue(shown, outputs, finished), notes }
  }
  if (!valid) return parseFailed(format, "it is not valid UTF-8")
  const content = text.startsWith("\uFEFF") ? text.slice(1) : text
  return format === "json" ? parseJson(content) : parseYaml(content)
}
