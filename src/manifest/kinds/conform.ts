/**
 * `metadata.conform`: what a run of a tool must come to, beside what AIP-14's `examples` can say.
 *
 * Guarantees: patterns, schemas and globs in it compile; files and folders are named below the workspace or the
 * manifest. Assumes: the shape was checked. Pure.
 */
import type { ConformCase, JsonObject } from "../base-types.ts"
import { compileSchema } from "../schema/json-schema.ts"
import { compilePattern } from "../schema/pattern.ts"
import { joinPath, type Report } from "../values/diagnostics.ts"
import { defined, object, objects, optionalObject, optionalText, text, texts } from "../values/fields.ts"
import { parseGlob, parseWorkspacePath } from "../values/globs.ts"

const RULE = "conform"

const checkPath = (path: string | undefined, at: string, what: string, report: Report): void => {
  if (path === undefined) return
  const parsed = parseWorkspacePath(path)
  const fault = path.startsWith("/") ? "it begins with `/`" : parsed.ok ? undefined : parsed.message
  if (fault !== undefined || path === "")
    report.error(
      RULE,
      at,
      `${what} is no path below it: ${fault ?? "it is empty"}`,
      "write a relative path without `..`",
    )
}

/** `create notes/*.txt` → its two words. */
export const effectWords = (effect: string): { readonly kind: string; readonly path: string } => {
  const at = effect.indexOf(" ")
  return { kind: effect.slice(0, at), path: effect.slice(at + 1) }
}

const checkExpected = (written: JsonObject, at: string, report: Report): void => {
  const pattern = optionalText(written, "pattern")
  const compiled = pattern === undefined ? undefined : compilePattern(pattern)
  if (compiled?.ok === false)
    report.error(RULE, joinPath(at, "pattern"), compiled.message, "write a regular expression that RE2 knows")
  if (written["schema"] !== undefined) {
    const schema = compileSchema(written["schema"])
    if (!schema.ok) report.error(RULE, joinPath(at, "schema"), schema.message, schema.fix)
  }
  texts(written, "effects").forEach((effect, i) => {
    const glob = parseGlob(effectWords(effect).path)
    if (!glob.ok) report.error(RULE, joinPath(joinPath(at, "effects"), i), glob.message, "write a path or a glob")
  })
  if (written["error"] !== undefined && (written["output"] ?? written["pattern"] ?? written["schema"]) !== undefined)
    report.error(
      RULE,
      at,
      "a call that ends with an error has no output",
      "leave `error` out, or `output`, `pattern` and `schema`",
    )
}

const caseFrom = (written: JsonObject, at: string, of: "tool" | "driver", report: Report): ConformCase => {
  const files = object(written, "files")
  checkExpected(written, at, report)
  checkPath(optionalText(written, "workspace"), joinPath(at, "workspace"), "the folder beside the manifest", report)
  checkPath(optionalText(written, "replay"), joinPath(at, "replay"), "the recording beside the manifest", report)
  for (const path of Object.keys(files)) checkPath(path, joinPath(at, "files"), "a file of the workspace", report)
  if (of === "driver" && written["tool"] === undefined)
    report.error(RULE, joinPath(at, "tool"), "a driver's case names no tool", "add `tool: ID`, one that it implements")
  if (of === "tool" && written["tool"] !== undefined)
    report.error(RULE, joinPath(at, "tool"), "a tool's case is always about that tool", "leave `tool` out")
  return defined({
    name: text(written, "name"),
    note: optionalText(written, "note"),
    tool: optionalText(written, "tool"),
    input: optionalObject(written, "input"),
    context: optionalObject(written, "context"),
    workspace: optionalText(written, "workspace"),
    files: Object.entries(files).flatMap(([path, content]) => (typeof content === "string" ? [{ path, content }] : [])),
    before: objects(written, "before").map((step) =>
      defined({ tool: text(step, "tool"), input: object(step, "input"), driver: optionalText(step, "driver") }),
    ),
    output: written["output"],
    schema: written["schema"] as ConformCase["schema"] | undefined,
    pattern: optionalText(written, "pattern"),
    error: optionalText(written, "error"),
    effects: written["effects"] === undefined ? undefined : texts(written, "effects"),
    replay: optionalText(written, "replay"),
  })
}

export const readConform = (
  metadata: JsonObject,
  of: "tool" | "driver",
  report: Report,
): readonly ConformCase[] | undefined => {
  const cases = objects(metadata, "conform").map((written, i) =>
    caseFrom(written, joinPath("metadata.conform", i), of, report),
  )
  return cases.length === 0 ? undefined : cases
}
