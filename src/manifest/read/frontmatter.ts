/**
 * Manifest bytes → front matter as a plain JSON object. The body is never read (AIP-14, AIP-29, AIP-30 §Body).
 *
 * Guarantees: the first line is exactly `---`, so no engine selector (`---js`, `---json`) is ever honoured and
 * nothing executes; sizes are checked before decoding; text is valid UTF-8 without control characters; CRLF and a
 * byte order mark are accepted. Each fault is a diagnostic; this never throws on any bytes.
 */
import { shown } from "../values/diagnostics.ts"
import type { Report } from "../values/diagnostics.ts"
import { limits } from "../limits.ts"
import { parseYaml } from "./safe-yaml.ts"
import type { JsonObject } from "../base-types.ts"

const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: false })

const START_FIX = "start the file with a line that is exactly `---`, then YAML, then another `---` line"

function decode(bytes: Uint8Array, report: Report): string | undefined {
  if (bytes.byteLength > limits.fileBytes) {
    report.error(
      "file-too-large",
      "",
      `the file has ${bytes.byteLength} bytes; at most ${limits.fileBytes} are read`,
      "move long text into another file",
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

function checkFirstLine(line: string, report: Report): boolean {
  if (line === "---") return true
  if (/^---\s*[A-Za-z]/.test(line)) {
    report.error(
      "frontmatter-engine",
      "",
      `the first line \`${shown(line, 40)}\` selects a front matter language; only plain YAML is read, nothing is executed`,
      "make the first line exactly `---` and write YAML",
    )
  } else if (line.trim() === "---") {
    report.error("frontmatter-start", "", "the first line has blanks around `---`", "make the first line exactly `---`")
  } else {
    report.error("frontmatter-missing", "", "the file does not start with front matter", START_FIX)
  }
  return false
}

/** The YAML text between the two `---` lines. */
function split(text: string, report: Report): string | undefined {
  const lines = text.replaceAll("\r\n", "\n")
  const firstEnd = lines.indexOf("\n")
  if (!checkFirstLine(firstEnd < 0 ? lines : lines.slice(0, firstEnd), report)) return undefined
  const rest = firstEnd < 0 ? "" : lines.slice(firstEnd + 1)
  const close = /^---[ \t]*$/m.exec(rest)
  if (close === null) {
    report.error("frontmatter-open", "", "the front matter is not closed", "add a line `---` after the YAML")
    return undefined
  }
  const yaml = rest.slice(0, close.index)
  const bytes = Buffer.byteLength(yaml)
  if (bytes > limits.frontmatterBytes) {
    report.error(
      "frontmatter-too-large",
      "",
      `the front matter has ${bytes} bytes; at most ${limits.frontmatterBytes} are read`,
      "move long text below the closing `---`",
    )
    return undefined
  }
  const directive = /^%.*$/m.exec(yaml)
  if (directive !== null) {
    report.error(
      "yaml-directive",
      "",
      `the YAML directive \`${shown(directive[0], 40)}\` is not allowed; manifests are YAML 1.2`,
      "remove the line",
    )
    return undefined
  }
  const control = /[\u0000-\u0008\u000b-\u001f\u007f-\u0084\u0086-\u009f\ufeff]/.exec(yaml)
  if (control !== null) {
    const code = (control[0].codePointAt(0) ?? 0).toString(16).padStart(4, "0")
    report.error(
      "control-character",
      "",
      `the front matter holds the control character U+${code.toUpperCase()}`,
      "remove it",
    )
    return undefined
  }
  return yaml
}

/** Returns undefined after adding at least one error to the report. */
export function readFrontmatter(bytes: Uint8Array, report: Report): JsonObject | undefined {
  const text = decode(bytes, report)
  if (text === undefined) return undefined
  const yaml = split(text, report)
  if (yaml === undefined) return undefined
  const parsed = parseYaml(yaml, report)
  if (!parsed.ok) return undefined
  const { value } = parsed
  if (value === null || typeof value !== "object" || Array.isArray(value)) {
    report.error(
      "frontmatter-not-mapping",
      "",
      "the front matter is not a mapping of keys to values",
      "write `key: value` lines between the `---` lines",
    )
    return undefined
  }
  return value as JsonObject
}
