/**
 * A ToolResult, as the call's outcome (aip.md 3.2).
 *
 * Guarantees: total over whatever the module answered; the output is cut to its budget, with a note in it of how much was
 * left out; an error's type becomes a code of the table, its words stay in the details. Pure.
 */
import type { JsonObject, JsonValue } from "../../../manifest/types.ts"
import type { Failure, Success } from "../../failure.ts"
import { isObject } from "../../invoke/schema-path.ts"
import type { ReasonCode } from "../../reasons.ts"
import { AMPLIFIER } from "./limits.ts"

/** By the name of the class that a tool gives as its error's type. */
const CODES: Readonly<Record<string, ReasonCode>> = {
  PermissionError: "policy_violation",
  SecurityError: "policy_violation",
  AccessDeniedError: "policy_violation",
  HookDenied: "policy_violation",
  FileNotFoundError: "not_found",
  NotFoundError: "not_found",
  TimeoutError: "timeout",
  ValidationError: "input_invalid",
  FileTooLarge: "limit_exceeded",
  FileTooLargeError: "limit_exceeded",
  CommandFailed: "upstream_error",
}

const codeOf = (names: readonly string[]): ReasonCode => {
  const known = names.find((name) => Object.hasOwn(CODES, name))
  return known === undefined ? "upstream_error" : (CODES[known] ?? "upstream_error")
}

const textIn = (value: JsonValue | undefined): string | undefined =>
  typeof value === "string" ? value.slice(0, AMPLIFIER.errorChars).toWellFormed() : undefined

const wholeNumber = (value: JsonValue | undefined): number =>
  typeof value === "number" && Number.isSafeInteger(value) && value > 0 ? value : 0

interface Kept {
  readonly output: JsonValue
  /** characters that were left out */
  readonly leftOut: number
}

/** The module's side cut it already, unless it is not that side that speaks. */
const within = (output: JsonValue, leftOut: number, most: number): Kept => {
  const text = typeof output === "string" ? output : output === null ? "" : JSON.stringify(output)
  if (text.length <= most && (leftOut === 0 || typeof output === "string"))
    return { output: typeof output === "string" ? output.toWellFormed() : output, leftOut }
  return { output: text.slice(0, most).toWellFormed(), leftOut: leftOut + Math.max(0, text.length - most) }
}

const noted = ({ output, leftOut }: Kept, most: number): JsonValue =>
  leftOut === 0 || typeof output !== "string"
    ? output
    : `${output}\n[${leftOut} more characters were left out: the budget of this tool's output is ${most}]`

interface ReadResult {
  readonly success: boolean
  readonly output: JsonValue
  readonly error?: JsonObject
  readonly metadata?: JsonObject
}

/** Undefined: it is no ToolResult. */
export const readResult = (value: JsonValue, most: number): ReadResult | undefined => {
  if (!isObject(value) || typeof value["success"] !== "boolean") return undefined
  const { success, output = null, left_out: leftOut, error, metadata } = value
  return {
    success,
    output: noted(within(output, wholeNumber(leftOut), most), most),
    ...(isObject(error) ? { error } : {}),
    ...(isObject(metadata) && Object.keys(metadata).length > 0 ? { metadata } : {}),
  }
}

const failureOf = (key: string, { error = {}, output, metadata }: ReadResult): Failure => {
  const raised = Array.isArray(error["raised"]) ? (error["raised"] as readonly JsonValue[]) : []
  const type = textIn(error["type"])
  const names = [...(type === undefined ? [] : [type]), ...raised.flatMap((each) => textIn(each) ?? [])]
  const code = codeOf(names)
  const exit = error["exit_code"]
  const message = textIn(error["message"])
  return {
    ok: false,
    code,
    message: `${key} answered an error${type === undefined ? "" : ` (${type.slice(0, 80)})`}`,
    hint: "read `details.message`, which is the tool's own word",
    retryable: false,
    details: {
      ...(type === undefined ? {} : { type: type.slice(0, AMPLIFIER.nameChars) }),
      ...(message === undefined ? {} : { message }),
      ...(typeof exit === "number" && Number.isSafeInteger(exit) ? { exit_code: exit } : {}),
      ...(raised.length === 0 ? {} : { raised: true }),
      ...(output === null || output === message ? {} : { output }),
      ...(metadata === undefined ? {} : { metadata }),
      ...(code === "limit_exceeded" ? { limit: "tool" } : {}),
    },
  }
}

export const outcomeOf = (key: string, result: ReadResult | undefined): Success | Failure => {
  if (result === undefined)
    return {
      ok: false,
      code: "output_invalid",
      message: `what ${key} answered is no ToolResult`,
      hint: "let `execute` return a ToolResult",
      details: {},
    }
  if (!result.success) return failureOf(key, result)
  const { output, metadata } = result
  return { ok: true, value: { output, ...(metadata === undefined ? {} : { metadata }) }, notes: [] }
}
