/**
 * A module of Amplifier's by its path on this machine: a file, or the folder of a Python package.
 *
 * Guarantees: of a file its folder is shown, of a package that package alone, unless its interpreter lies beside it.
 * Does not: load anything.
 */
import { readdirSync, statSync } from "node:fs"
import { basename, dirname, join } from "node:path"
import type { OperatorConfig } from "../../config/types.ts"
import { inside } from "../paths.ts"
import type { FoundModule } from "../runner/found-module.ts"
import { findInterpreter } from "../runner/interpreter.ts"

type At =
  | { readonly ok: true; readonly found: FoundModule }
  | { readonly ok: false; readonly reason: string; readonly fix: string }

const isPackage = (path: string): boolean =>
  statSync(path, { throwIfNoEntry: false })?.isDirectory() === true &&
  statSync(join(path, "__init__.py"), { throwIfNoEntry: false })?.isFile() === true

/** A package alone, where nothing beside it is needed. */
export const shownAlone = (found: FoundModule, path: string): FoundModule => {
  const folder = dirname(path)
  if (!isPackage(path) || found.interpreter.program.startsWith(`${folder}/`)) return found
  const { [folder]: shown, ...others } = found.bundles
  if (shown === undefined) return found
  return { ...found, bundles: { ...others, [path]: join(shown, basename(path)) } }
}

const MOST_ENTRIES = 2_000

/**
 * Names, sizes and times of everything in its folder, which it may import; undefined where that is too much to look at.
 */
export const editionOf = (path: string): string | undefined => {
  const root = isPackage(path) ? path : dirname(path)
  const seen: (readonly [string, number, number, number, number])[] = []
  const visit = (folder: string): boolean =>
    readdirSync(folder, { withFileTypes: true })
      .sort((a, b) => (a.name < b.name ? -1 : 1))
      .every((entry) => {
        if (entry.name === "__pycache__" || entry.name === ".git") return true
        const at = join(folder, entry.name)
        const facts = statSync(at, { throwIfNoEntry: false })
        if (facts === undefined) return true
        seen.push([at, facts.ino, facts.size, facts.mtimeMs, facts.ctimeMs])
        return seen.length <= MOST_ENTRIES && (!entry.isDirectory() || visit(at))
      })
  try {
    return visit(root) ? JSON.stringify(seen) : undefined
  } catch {
    return undefined
  }
}

export const moduleAt = (path: string, config: Pick<OperatorConfig, "interpreters">): At => {
  const folder = dirname(path)
  const isFile = statSync(path, { throwIfNoEntry: false })?.isFile() === true
  if (!(isFile && path.endsWith(".py")) && !isPackage(path))
    return {
      ok: false,
      reason: `${path} is no module of Python`,
      fix: "name a `.py` file, or the folder of a package with its `__init__.py`",
    }
  const found = findInterpreter("python", [{ folder, inside: inside.bundle }], config)
  if (!found.ok) return found
  const at = join(inside.bundle, basename(path))
  const whole: FoundModule = {
    module: { path: at },
    interpreter: found.interpreter,
    bundles: { [folder]: inside.bundle },
    edition: "",
  }
  return { ok: true, found: shownAlone(whole, path) }
}
