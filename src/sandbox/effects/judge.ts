/**
 * Is every effect one that the contract declared?
 *
 * Guarantees: pure. An effect is declared if a `mutates` scope of the class workspace matches its path, and, where the
 * driver lists `fs.write`, one of those globs does too, and no `fs.deny` glob matches the path or a folder above it.
 * A rename needs this of both ends, a deletion as much as a creation. `refused` effects are never declared. Sensitive
 * places are matched only by patterns that name them (`sensitive-paths.ts`). A pattern that does not parse grants
 * nothing, and denies everything where it stands in `fs.deny`.
 * Folders: a folder's own effects are covered by a pattern that covers all below it; a new folder is declared, too,
 * when something declared was made below it in the same call (which, in a sensitive place, was named). Adding scopes or globs never makes a declared effect
 * undeclared; adding denials never makes an undeclared one declared.
 */
import { coversTree, type Glob, matches, parseGlob, parseWorkspacePath, type WorkspacePath } from "../globs.ts"
import { literalSegments } from "./sensitive-paths.ts"
import type { Effect, WriteSet } from "./types.ts"

export interface WritePolicy {
  /** scopes of the class workspace, as in `workspace:/notes/*` without the class */
  readonly mutates: readonly string[]
  /** the driver's workspace globs; absent where it lists none */
  readonly fsWrite?: readonly string[] | undefined
  readonly fsDeny: readonly string[]
}

export type JudgedEffect = Effect & { readonly declared: boolean }
export interface Judgement {
  readonly verdict: "clean" | "undeclared"
  readonly effects: readonly JudgedEffect[]
}

type Grants = (path: string, folder: boolean) => boolean

export const judgeWrites = (policy: WritePolicy, writeSet: WriteSet): Judgement => {
  const scopes = grantsOf(policy.mutates)
  const writes = policy.fsWrite === undefined ? () => true : grantsOf(policy.fsWrite)
  const denied = denialOf(policy.fsDeny)
  const declared = (effect: Effect): boolean => {
    if (effect.refused !== undefined) return false
    const ends = effect.kind === "rename" && effect.from !== undefined ? [effect.from, effect.path] : [effect.path]
    return ends.every((path) => scopes(path, isFolder(effect)) && writes(path, isFolder(effect)) && !denied(path))
  }
  const answers = new Map(writeSet.effects.map((effect) => [effect, declared(effect)]))
  const withContent = foldersAbove(writeSet.effects.filter((effect) => makes(effect) && answers.get(effect) === true))
  const effects = writeSet.effects.map((effect) => {
    const carried =
      effect.kind === "mkdir" && effect.refused === undefined && withContent.has(effect.path) && !denied(effect.path)
    return { ...effect, declared: answers.get(effect) === true || carried }
  })
  return { verdict: effects.every((effect) => effect.declared) ? "clean" : "undeclared", effects }
}

const isFolder = (effect: Effect): boolean =>
  effect.kind === "mkdir" || effect.kind === "rmdir" || effect.directory === true
const makes = (effect: Effect): boolean => effect.kind !== "delete" && effect.kind !== "rmdir"

const foldersAbove = (effects: readonly Effect[]): Set<string> => {
  const folders = new Set<string>()
  for (const { path } of effects) {
    for (let at = path.lastIndexOf("/"); at > 0; at = path.lastIndexOf("/", at - 1)) folders.add(path.slice(0, at))
  }
  return folders
}

const parseAll = (texts: readonly string[]): { globs: Glob[]; broken: boolean } => {
  const parsed = texts.map(parseGlob)
  return {
    globs: parsed.flatMap((result) => (result.ok ? [result.glob] : [])),
    broken: parsed.some((result) => !result.ok),
  }
}

const grantsOf = (texts: readonly string[]): Grants => {
  const { globs } = parseAll(texts)
  return (text, folder) => {
    const path = parseWorkspacePath(text)
    if (!path.ok || path.path === "") return false
    const literal = literalSegments(text.split("/"))
    return globs.some((glob) => matches(glob, path.path, literal) || (folder && coversTree(glob, path.path, literal)))
  }
}

const denialOf = (texts: readonly string[]): ((path: string) => boolean) => {
  const { globs, broken } = parseAll(texts)
  return (text) => {
    if (broken || !parseWorkspacePath(text).ok) return true
    const parts = text.split("/")
    return parts.some((_, index) => {
      const prefix = parts.slice(0, index + 1).join("/") as WorkspacePath
      return globs.some((glob) => matches(glob, prefix) || (index === parts.length - 1 && coversTree(glob, prefix)))
    })
  }
}
