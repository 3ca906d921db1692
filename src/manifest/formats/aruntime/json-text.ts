/**
 * JSON text → value, for hostile text.
 *
 * Guarantees: the value is what `JSON.parse` gives, and of one meaning: no key twice, no prototype keys, no number that
 * is not exact, well-formed text, bounded in bytes, depth and values. Never throws. A fault names its field, or its line.
 */
import type { JsonObject, JsonValue } from "../../base-types.ts"
import { limits } from "../../limits.ts"
import { joinPath, shown } from "../../values/diagnostics.ts"
import type { Report } from "../../values/diagnostics.ts"
import { isObject } from "../../values/fields.ts"
import { scanJson } from "./json-scan.ts"

const FORBIDDEN = new Set(["__proto__", "constructor", "prototype"])
const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: false })

const decode = (bytes: Uint8Array, report: Report): string | undefined => {
  if (bytes.byteLength > limits.frontmatterBytes) {
    report.error(
      "file-too-large",
      "",
      `the file has more than ${limits.frontmatterBytes} bytes`,
      "split it, or shorten its schemas",
    )
    return undefined
  }
  try {
    return decoder.decode(bytes)
  } catch {
    report.error("not-utf8", "", "the file is not valid UTF-8", "save the file as UTF-8")
    return undefined
  }
}

const checkScalars = (value: JsonValue, path: string, report: Report): void => {
  if (typeof value === "string" && !value.isWellFormed())
    report.error("json-bad-text", path, "the text holds half of a surrogate pair", "write the character itself")
  if (
    typeof value === "number" &&
    (!Number.isFinite(value) || (Number.isInteger(value) && !Number.isSafeInteger(value)))
  )
    report.error("json-bad-number", path, "the number is too large to be exact", "write it as text, or a smaller one")
  if (Array.isArray(value)) value.forEach((item: JsonValue, i) => checkScalars(item, joinPath(path, i), report))
  else if (isObject(value))
    for (const [key, item] of Object.entries(value)) checkScalars(item, joinPath(path, key), report)
}

export const readJson = (bytes: Uint8Array, report: Report): JsonObject | undefined => {
  const text = decode(bytes, report)
  if (text === undefined) return undefined
  const scanned = scanJson(text)
  if (!scanned.ok) {
    const { line, column, message, rule = "json-syntax", path = "" } = scanned
    report.error(rule, path, `${message} at line ${line}, column ${column}`, "correct the JSON there")
    return undefined
  }
  const bad = [...scanned.keys].find((key) => FORBIDDEN.has(key))
  if (bad !== undefined) {
    report.error(
      "json-forbidden-key",
      bad,
      `the key \`${shown(bad)}\` is not allowed in manifests`,
      "rename or remove the key",
    )
    return undefined
  }
  const value = JSON.parse(text) as JsonValue
  if (!isObject(value)) {
    report.error("json-not-object", "", "the file is not a JSON object", 'write `{ "toolId": … }`')
    return undefined
  }
  checkScalars(value, "", report)
  return report.failed ? undefined : value
}
