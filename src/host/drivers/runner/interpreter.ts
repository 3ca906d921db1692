/**
 * The interpreter that a module is run by, and how it is shown inside.
 *
 * Guarantees: one of the driver's own folder (a virtual environment, a Node beside its packages), else the host's or the
 * operator's; never one that a link in the driver's folder leads to elsewhere, since showing it would show what lies
 * beside it.
 * Does not: run anything.
 */
import { existsSync, lstatSync, realpathSync } from "node:fs"
import { basename, dirname, join, relative, sep } from "node:path"
import type { OperatorConfig } from "../../config/types.ts"
import { findNode, findPython } from "../../install/interpreters.ts"
import type { RunnerLanguage } from "./request.ts"

export interface Interpreter {
  readonly language: RunnerLanguage
  /** absolute host path of what is started */
  readonly program: string
  /** where that is inside */
  readonly inside: string
  /** folders that must be shown for it, beside the driver's own: host path → path inside */
  readonly bundles: Readonly<Record<string, string>>
  /** what its links lead to: name → host path */
  readonly spawn: Readonly<Record<string, string>>
}
type FoundInterpreter =
  | { readonly ok: true; readonly interpreter: Interpreter }
  | { readonly ok: false; readonly reason: string; readonly fix: string }

/** A folder of the driver's, and where it is shown inside. */
interface ShownFolder {
  readonly folder: string
  readonly inside: string
}

const OWN: Readonly<Record<RunnerLanguage, readonly string[]>> = {
  node: ["node_modules/.bin/node"],
  python: [".venv/bin/python3", "venv/bin/python3", ".venv/bin/python", "venv/bin/python"],
}

const isBelow = (path: string, folder: string): boolean => path.startsWith(`${folder}${sep}`)
const isSystem = (path: string): boolean => isBelow(path, "/usr") || isBelow(path, "/bin")

const isLink = (path: string): boolean => lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() === true

/** One that came with the driver; undefined where none did. */
const ownInterpreter = (language: RunnerLanguage, shown: ShownFolder): FoundInterpreter | undefined => {
  const at = OWN[language].find((path) => existsSync(join(shown.folder, path)) || isLink(join(shown.folder, path)))
  if (at === undefined) return undefined
  const root = realpathSync(shown.folder)
  const program = join(root, at)
  const refuse = (why: string): FoundInterpreter => ({
    ok: false,
    reason: `the interpreter \`${at}\` in the driver's folder ${why}`,
    fix: "make it again with an interpreter of the system, or copy it into the folder",
  })
  if (!existsSync(program)) return refuse("leads nowhere")
  const real = realpathSync(program)
  if (!isBelow(real, root) && !isSystem(real)) return refuse("leads out of the driver's folder")
  const inside = join(shown.inside, relative(root, program))
  const spawn = isBelow(real, root) ? {} : linksTo(program, root)
  return { ok: true, interpreter: { language, program, inside, bundles: {}, spawn } }
}

/** A link in a virtual environment names the system's interpreter, perhaps by a link of its own. */
const linksTo = (program: string, root: string): Readonly<Record<string, string>> => {
  const real = realpathSync(program)
  const names = [basename(real), "python3", "python", "node"]
  const found = names.flatMap((name) => {
    const path = join(dirname(real), name)
    return existsSync(path) && realpathSync(path) === real && !isBelow(path, root) ? [[name, path] as const] : []
  })
  return Object.fromEntries(found)
}

/** `own`: the driver's folders in which it may bring one. */
export const findInterpreter = (
  language: RunnerLanguage,
  own: readonly ShownFolder[],
  config: Pick<OperatorConfig, "interpreters">,
): FoundInterpreter => {
  for (const shown of own) {
    const found = ownInterpreter(language, shown)
    if (found !== undefined) return found
  }
  const found = language === "node" ? findNode(config) : findPython(config)
  if (!found.ok) return found
  const { program, inside, bundles } = found.value
  return { ok: true, interpreter: { language, program, inside, bundles, spawn: {} } }
}
