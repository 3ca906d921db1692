/**
 * Which parts of a path a pattern has to spell out, because other programs run or trust what lies there.
 *
 * Guarantees: a wildcard never reaches into a place of `sensitive-table.ts`, in whatever spelling a case-blind file
 * system takes for it: a scope or glob matches only if it spells those names as they are written. Inside `.git` a
 * wildcard takes git's data alone; anything else there, and everything in a folder that looks like a bare repository,
 * needs its whole path, but that hooks may be named by their folder. A symlink counts as the place that it stands in
 * for: where a listed folder or one on the way to it belongs, inside `.git`, and by where it leads.
 * Assumes: paths as the write set reports them. Pure.
 */
import { foldName, shortStem, stemOf } from "../fold-name.ts"
import { GIT_DATA, GIT_DETOURS, SENSITIVE } from "./sensitive-table.ts"

/** Host state of our own: `.caisson`, `.caisson-tx`, … */
const OWN = ".caisson"
const GIT = ".git"

interface Place {
  readonly names: readonly string[]
}
const places: readonly Place[] = SENSITIVE.flatMap((row) => row.places).map((text) => ({
  names: text.split("/").map(foldName),
}))
const byFirst = Map.groupBy(places, ({ names }) => names[0] ?? "")
const byStem = Map.groupBy(places, ({ names }) => stemOf(names[0] ?? ""))
const data = new Set(GIT_DATA.map(foldName))
const detours = GIT_DETOURS.map((text) => text.split("/").map(foldName))

const isName = (folded: string, name: string): boolean => {
  if (folded === name) return true
  const stem = shortStem(folded)
  return stem !== undefined && stem === stemOf(name)
}

/** What the effect's own kind says about its path. */
export interface Standing {
  /** the path is, or was, a folder */
  readonly folder: boolean
  readonly symlink: boolean
}

/** Looks at many paths of one write set; folded names are remembered. */
export class SensitivePaths {
  readonly #folded = new Map<string, string>()
  readonly #repositories: ReadonlySet<string>

  /** `repositories`: folders that look like a bare repository once the write set is in place */
  constructor(repositories: readonly string[]) {
    this.#repositories = new Set(repositories)
  }

  #fold(name: string): string {
    let folded = this.#folded.get(name)
    if (folded === undefined) {
      folded = foldName(name)
      this.#folded.set(name, folded)
    }
    return folded
  }

  /** Which segments must be spelled out, by position. */
  literalSegments(path: readonly string[], standing: Standing): boolean[] {
    const folded = path.map((name) => this.#fold(name))
    const literal = folded.map((name) => isOwn(name))
    this.#markRepositories(path, folded, literal)
    for (const [start, name] of folded.entries()) {
      if (isName(name, GIT)) markGit(folded, start, standing, literal)
      const stem = shortStem(name)
      const candidates = [...(byFirst.get(name) ?? []), ...(stem === undefined ? [] : (byStem.get(stem) ?? []))]
      for (const place of candidates) markPlace(place, folded, start, standing, literal)
    }
    return literal
  }

  #markRepositories(path: readonly string[], folded: readonly string[], literal: boolean[]): void {
    if (this.#repositories.size === 0) return
    let from = this.#repositories.has("") ? 0 : -1
    for (let at = 0, text = ""; from < 0 && at < path.length; at++) {
      text = at === 0 ? (path[0] ?? "") : `${text}/${path[at]}`
      // Git's own folder looks like one too, and has its own rule.
      if (this.#repositories.has(text) && !isName(folded[at] ?? "", GIT)) from = at
    }
    if (from >= 0) literal.fill(true, from)
  }
}

const isOwn = (folded: string): boolean => folded.startsWith(OWN) || shortStem(folded) === stemOf(OWN)

const markGit = (folded: readonly string[], start: number, standing: Standing, literal: boolean[]): void => {
  const inside = folded.slice(start + 1)
  const [first] = inside
  // A file or link of that name sends git to another repository's hooks and settings.
  if (first === undefined) {
    literal[start] = true
    return
  }
  const detour = detours.some((names) => names.every((name, at) => isName(inside[at] ?? "", name)))
  if (!detour && !standing.symlink && data.has(first)) return
  literal.fill(true, start, isName(first, "hooks") ? start + 2 : folded.length)
}

const markPlace = (
  { names }: Place,
  folded: readonly string[],
  start: number,
  { folder }: Standing,
  literal: boolean[],
): void => {
  const there = Math.min(names.length, folded.length - start)
  for (let at = 1; at < there; at++) if (!isName(folded[start + at] ?? "", names[at] ?? "")) return
  // On the way to the place: a folder is harmless, anything else brings what lies behind it along.
  if (there < names.length && folder) return
  literal.fill(true, start, start + there)
}

/** Does a folder with these entries pass for a repository? Git takes one with HEAD, and objects and refs or a way to them. */
export const looksLikeRepository = (names: Iterable<string>): boolean => {
  const found = new Set<string>()
  for (const name of names) {
    const folded = foldName(name)
    for (const part of ["head", "objects", "refs", "commondir"]) if (isName(folded, part)) found.add(part)
  }
  return found.has("head") && (found.has("commondir") || (found.has("objects") && found.has("refs")))
}
