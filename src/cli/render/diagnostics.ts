/** What is wrong with manifests, for people: file, field path, message, fix. */
import type { Diagnostic } from "../../manifest/types.ts"
import { type Colors, type Terminal, visible } from "../terminal.ts"

export const diagnosticLines = (diagnostic: Diagnostic, paint: Colors): string[] => {
  const severity = diagnostic.severity === "error" ? paint.red("error") : paint.yellow("warning")
  const where =
    diagnostic.path === ""
      ? visible(diagnostic.file)
      : `${visible(diagnostic.file)}: ${paint.bold(visible(diagnostic.path))}`
  return [
    `${where}: ${severity}: ${visible(diagnostic.message)} ${paint.dim(`[${diagnostic.rule}]`)}`,
    `  ${paint.cyan("fix")} ${visible(diagnostic.fix)}`,
  ]
}

/** Manifests that did not load are never passed over in silence. */
export const tellBrokenManifests = (diagnostics: readonly Diagnostic[], terminal: Terminal): void => {
  for (const diagnostic of diagnostics) {
    if (diagnostic.severity !== "error") continue
    for (const line of diagnosticLines(diagnostic, terminal.paint)) terminal.say(line)
  }
}
