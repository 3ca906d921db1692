/**
 * What can be said of an output that does not match its contract: how it begins, and whether it was JSON all along.
 *
 * Guarantees: bounded, and without characters that steer a terminal. Pure.
 */
import { shown } from "../../manifest/values/diagnostics.ts"
import type { JsonValue, OutputFormat } from "../../manifest/types.ts"
import { shownOutputChars } from "./limits.ts"
import { isObject } from "./schema-path.ts"

const textOf = (value: JsonValue): string | undefined => {
  const text = isObject(value) ? (value["text"] ?? value["stdout"]) : value
  return typeof text === "string" ? text : undefined
}

/** Line ends and other control characters as JSON writes them. */
export const outputStart = (value: JsonValue): string => {
  const text = (textOf(value) ?? JSON.stringify(value)).slice(0, shownOutputChars + 1)
  return shown(JSON.stringify(text.toWellFormed()).slice(1, -1), shownOutputChars)
}

const isJson = (text: string): boolean => {
  if (!/^\s*[[{]/.test(text)) return false
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

/** The program printed JSON, and the driver had it read as text. */
export const unreadJson = (
  value: JsonValue,
  format: OutputFormat,
  driver: string,
): { readonly message: string; readonly hint: string } | undefined => {
  const text = format === "text" ? textOf(value) : undefined
  if (text === undefined) return undefined
  if (isJson(text))
    return {
      message: "the program printed JSON, and its driver has it read as text",
      hint: `add \`default_format: json\` to \`output\` of ${driver}, as in \`output: { default_format: json, stream: stdout }\`, or \`output_format: json\` to the entry's \`metadata.cli\``,
    }
  return {
    message: "the program printed text that is no JSON",
    hint: `make the program print JSON and add \`default_format: json\` to \`output\` of ${driver}, or write \`outputs: { type: string }\` in the contract`,
  }
}
