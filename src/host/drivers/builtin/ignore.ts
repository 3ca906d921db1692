/**
 * Which files are left out because a file of ignore rules says so: `.ignore` and `.rgignore` anywhere, `.gitignore` within
 * a git repository, as ripgrep takes them.
 *
 * Guarantees: the innermost rule that speaks of a path decides, of one file the last; reading is bounded.
 * Does not: know rules outside the workspace, nor `.git/info/exclude`.
 */
import type { HostedFiles } from "../../../sandbox/layers/hosted/layer.ts"
import { type PathGlob, pathGlob } from "./glob.ts"
import { BUILTIN } from "./limits.ts"

/** Rules of one folder, weakest first. */
interface Rules {
  /** with a slash at its end; empty for the workspace */
  readonly folder: string
  readonly globs: readonly PathGlob[]
}
/** Rules that hold in a folder, outermost first. */
export interface Ignoring {
  readonly inRepository: boolean
  readonly rules: readonly Rules[]
}

export const NOTHING_IGNORED: Ignoring = { inRepository: false, rules: [] }

const ruleLines = (text: string): readonly string[] =>
  text
    .split("\n")
    .map((line) => line.replace(/\r$/, "").replace(/(?<!\\) +$/, ""))
    .filter((line) => line !== "" && !line.startsWith("#"))

/** With the rules of one more folder. */
export const entering = async (
  above: Ignoring,
  folder: string,
  names: ReadonlySet<string>,
  files: HostedFiles,
): Promise<Ignoring> => {
  const inRepository = above.inRepository || names.has(".git")
  const wanted = [...(inRepository ? [".gitignore"] : []), ".ignore", ".rgignore"].filter((name) => names.has(name))
  let left = BUILTIN.ignoreRules - above.rules.reduce((sum, { globs }) => sum + globs.length, 0)
  const rules: Rules[] = []
  for (const name of wanted) {
    const found = await files.read(`${folder}${name}`, BUILTIN.ignoreBytes)
    if (!found.ok) continue
    const globs = ruleLines(found.value.toString("utf8"))
      .slice(0, Math.max(0, left))
      .flatMap((line) => pathGlob(line) ?? [])
    left -= globs.length
    rules.push({ folder, globs })
  }
  return rules.length === 0 && inRepository === above.inRepository
    ? above
    : { inRepository, rules: [...above.rules, ...rules] }
}

export const isIgnored = ({ rules }: Ignoring, path: string, isFolder: boolean): boolean => {
  for (const { folder, globs } of rules.toReversed()) {
    const below = path.slice(folder.length)
    const said = globs.findLast((glob) => (isFolder || !glob.foldersOnly) && glob.matches(below))
    if (said !== undefined) return !said.negated
  }
  return false
}
