/**
 * What a person gives as JSON: `-i JSON | @FILE | -`, and `--context JSON`.
 *
 * Guarantees: a JSON value, or one message that names the source and, for bad JSON, line and column. A slow or large
 * pipe is read to its end, and no further than the host's limit for an input; an abort ends the wait.
 */
import { createReadStream } from "node:fs"
import { hostLimits } from "../host/limits.ts"
import type { JsonObject, JsonValue } from "../manifest/types.ts"
import { lineAndColumn, whereJsonBreaks } from "./json-position.ts"
import { inline } from "./visible.ts"

type Given<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly message: string }

const parse = (text: string, source: string): Given<JsonValue> => {
  try {
    return { ok: true, value: JSON.parse(text) as JsonValue }
  } catch {
    const offset = whereJsonBreaks(text)
    const { line, column } = lineAndColumn(text, offset)
    const found =
      offset >= text.length ? "the text ends too early" : `unexpected ${JSON.stringify(inline(text[offset] ?? ""))}`
    return { ok: false, message: `${source} is not JSON: ${found} at line ${line}, column ${column}` }
  }
}

const inWords: Readonly<Record<string, string>> = {
  ENOENT: "there is no such file",
  EISDIR: "it is a folder",
  EACCES: "it is closed to this user",
}
/** Node's own text names the file once more, and the system call. */
const readFault = ({ code = "", message }: NodeJS.ErrnoException): string =>
  code in inWords ? `${inWords[code]} (${code})` : message

/** As a stream: descriptors that others made non-blocking, pipes and devices included. */
const read = async (file: string | undefined, source: string, signal: AbortSignal): Promise<Given<string>> => {
  const most = hostLimits.inputBytes.value
  const stream = file === undefined ? process.stdin : createReadStream(file)
  const stop = (): void => void stream.destroy(new Error("interrupted"))
  if (signal.aborted) stop()
  signal.addEventListener("abort", stop, { once: true })
  const chunks: Buffer[] = []
  let bytes = 0
  try {
    for await (const chunk of stream) {
      const part = Buffer.from(chunk as Buffer)
      bytes += part.length
      if (bytes > most) return { ok: false, message: `${source} holds more than ${most} bytes, which no input may` }
      chunks.push(part)
    }
    return {
      ok: true,
      value: Buffer.concat(chunks)
        .toString("utf8")
        .replace(/^\uFEFF/, ""),
    }
  } catch (error) {
    return { ok: false, message: `${source} cannot be read: ${readFault(error as NodeJS.ErrnoException)}` }
  } finally {
    signal.removeEventListener("abort", stop)
    stream.destroy()
  }
}

export const givenInput = async (
  given: string | undefined,
  signal: AbortSignal,
): Promise<Given<JsonValue | undefined>> => {
  if (given === undefined) return { ok: true, value: undefined }
  if (given !== "-" && !given.startsWith("@")) return parse(given, "the input")
  const file = given === "-" ? undefined : given.slice(1)
  const source = file ?? "stdin"
  const text = await read(file, source, signal)
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
