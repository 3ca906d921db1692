/** What is wrong with manifests, for people: file, field path, message, fix. */
import type { Diagnostic } from "../../manifest/types.ts"
import { type Colors, type Terminal } from "../terminal.ts"
import { inline } from "../visible.ts"

/** `line`, `column`: where that is known. */
export const diagnosticLines = (
  diagnostic: Diagnostic & { readonly line?: number; readonly column?: number },
  paint: Colors,
): string[] => {
  const severity = diagnostic.severity === "error" ? paint.red("error") : paint.yellow("warning")
  const { line, column } = diagnostic
  const file = `${inline(diagnostic.file)}${line === undefined ? "" : `:${line}:${column ?? 1}`}`
  const where = diagnostic.path === "" ? file : `${file}: ${paint.bold(inline(diagnostic.path))}`
  return [
    `${where}: ${severity}: ${inline(diagnostic.message)} ${paint.dim(`[${diagnostic.rule}]`)}`,
    `  ${paint.cyan("fix")} ${inline(diagnostic.fix)}`,
  ]
}

/** Manifests that did not load, and policies that hold nobody back, are never passed over in silence. */
export const tellBrokenManifests = (diagnostics: readonly Diagnostic[], terminal: Terminal): void => {
  for (const diagnostic of diagnostics) {
    if (diagnostic.severity !== "error" && diagnostic.rule !== "policy-not-enforced") continue
    for (const line of diagnosticLines(diagnostic, terminal.paint)) terminal.say(line)
  }
}
