/**
 * Places whose content other programs run or trust without asking. A wildcard never reaches into them: a scope or
 * glob matches only if it spells the segments below literally (`/.git/hooks/*` does, `/.git/**` and `/**` do not).
 * The names count at any depth, since repositories and projects nest.
 */

/** `**` is any number of segments. Everything below a listed folder is part of it. */
const SENSITIVE: readonly (readonly string[])[] = [
  // A file or link of that name sends git to another repository's hooks and settings.
  [".git"],
  [".git", "hooks"],
  [".git", "config"],
  [".git", "config.worktree"],
  [".git", "commondir"],
  [".git", "modules", "**", "hooks"],
  [".git", "modules", "**", "config"],
  [".git", "modules", "**", "config.worktree"],
  [".git", "worktrees", "**", "config.worktree"],
  [".bashrc"],
  [".bash_profile"],
  [".bash_login"],
  [".bash_logout"],
  [".profile"],
  [".zshrc"],
  [".zshenv"],
  [".zprofile"],
  [".envrc"],
  [".npmrc"],
  [".vscode"],
  [".idea"],
  [".mcp.json"],
  [".claude"],
  [".cursor"],
]

/** Host state of our own: `.caisson`, `.caisson-tx`, … */
const OWN = ".caisson"

/** Which segments of a path a pattern has to spell out, by position. */
export const literalSegments = (path: readonly string[]): boolean[] => {
  const literal = path.map((name) => name.startsWith(OWN))
  for (const names of SENSITIVE) for (let start = 0; start < path.length; start++) mark(path, start, names, literal)
  return literal
}

const mark = (path: readonly string[], start: number, names: readonly string[], literal: boolean[]): void => {
  // `.git` itself must be spelled only where the path ends there: what is inside has rules of its own.
  if (names.length === 1 && names[0] === ".git" && start !== path.length - 1) return
  const gap = names.indexOf("**")
  const head = gap < 0 ? names : names.slice(0, gap)
  if (!head.every((name, offset) => name === path[start + offset])) return
  const last = gap < 0 ? undefined : path.indexOf(names[gap + 1] ?? "", start + gap)
  if (last === -1) return
  for (const offset of head.keys()) literal[start + offset] = true
  if (last !== undefined) literal[last] = true
}
