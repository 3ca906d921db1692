/**
 * What a person gives as JSON: `-i JSON | @FILE | -`, and `--context JSON`.
 *
 * Guarantees: a JSON value, or one message that names the source and, for bad JSON, line and column.
 */
import { readFileSync } from "node:fs"
import type { JsonObject, JsonValue } from "../manifest/types.ts"
import { lineAndColumn, whereJsonBreaks } from "./json-position.ts"
import { visible } from "./terminal.ts"

export type Given<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly message: string }

const parse = (text: string, source: string): Given<JsonValue> => {
  try {
    return { ok: true, value: JSON.parse(text) as JsonValue }
  } catch {
    const offset = whereJsonBreaks(text)
    const { line, column } = lineAndColumn(text, offset)
    const found =
      offset >= text.length ? "the text ends too early" : `unexpected ${JSON.stringify(visible(text[offset] ?? ""))}`
    return { ok: false, message: `${source} is not JSON: ${found} at line ${line}, column ${column}` }
  }
}

const read = (file: string | 0, source: string): Given<string> => {
  try {
    return { ok: true, value: readFileSync(file, "utf8").replace(/^\uFEFF/, "") }
  } catch (error) {
    return { ok: false, message: `${source} cannot be read: ${(error as Error).message}` }
  }
}

export const givenInput = (given: string | undefined): Given<JsonValue | undefined> => {
  if (given === undefined) return { ok: true, value: undefined }
  if (given !== "-" && !given.startsWith("@")) return parse(given, "the input")
  const source = given === "-" ? "stdin" : given.slice(1)
  const text = read(given === "-" ? 0 : given.slice(1), source)
  return text.ok ? parse(text.value, source) : text
}

export const givenContext = (given: string | undefined): Given<JsonObject | undefined> => {
  if (given === undefined) return { ok: true, value: undefined }
  const parsed = parse(given, "the context")
  if (!parsed.ok) return parsed
  const { value } = parsed
  if (typeof value !== "object" || value === null || Array.isArray(value))
    return { ok: false, message: "the context must be a JSON object" }
  return { ok: true, value: value as JsonObject }
}
