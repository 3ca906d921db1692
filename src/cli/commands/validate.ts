/**
 * `caisson validate`: every manifest below the paths, each message with file, line, field path and fix.
 *
 * Guarantees: the same checks as registering them next to the bundled catalogue: each file, the references between
 * them, each driver against its tools, its templates too. Exit code 2 if anything is wrong, or if nothing was found at
 * all. Reads only: nothing is fetched or run, but a module of Amplifier's that is named is mounted in a sandbox.
 */
import { resolve } from "node:path"
import { exit } from "../exit.ts"
import { diagnosticLines } from "../render/diagnostics.ts"
import { resultJson, type Terminal } from "../terminal.ts"
import { inline } from "../visible.ts"
import { says } from "../texts.ts"
import { operatorWord } from "../reach/operator-word.ts"
import { examine } from "./authoring/examine.ts"
import { isModule } from "./importing/is-module.ts"

export interface ValidateFlags {
  readonly strict?: boolean
  readonly json?: boolean
}

const none = { manifests: 0, diagnostics: [] }
const plural = (count: number, word: string): string => `${count} ${word}${count === 1 ? "" : "s"}`

export const run = async (paths: readonly string[], flags: ValidateFlags, terminal: Terminal): Promise<number> => {
  const mode = flags.strict === true ? "strict" : "compat"
  const modules = paths.map((path) => resolve(path)).filter(isModule)
  const files = paths.filter((path) => !modules.includes(resolve(path)))
  const read = files.length === 0 ? none : examine(files, mode, operatorWord(terminal))
  const mounted = modules.length === 0 ? none : await (await import("./importing/amplifier.ts")).examineModules(modules)
  const manifests = read.manifests + mounted.manifests
  const diagnostics = [...read.diagnostics, ...mounted.diagnostics]
  const errors = diagnostics.filter((diagnostic) => diagnostic.severity === "error").length
  const warnings = diagnostics.length - errors
  const isGood = errors === 0 && manifests > 0
  if (flags.json === true || !terminal.isInteractive)
    resultJson(terminal, { ok: isGood, manifests, errors, warnings, diagnostics })
  else {
    const paint = terminal.paintResult
    for (const diagnostic of diagnostics) for (const line of diagnosticLines(diagnostic, paint)) terminal.result(line)
    const summary = `${plural(manifests, "manifest")}, ${plural(errors, "error")}, ${plural(warnings, "warning")}`
    terminal.result(isGood ? paint.green(summary) : paint.red(summary))
  }
  if (manifests === 0) terminal.say(`caisson: ${says.noManifests} in ${paths.map((item) => inline(item)).join(", ")}`)
  return isGood ? exit.ok : exit.usage
}
