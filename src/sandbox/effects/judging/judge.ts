/**
 * Is every effect one that the contract declared?
 *
 * Guarantees: pure. An effect is declared if a `mutates` scope of the class workspace matches its path, and, where the
 * driver lists `fs.write`, one of those globs does too, and no `fs.deny` glob matches the path or a folder above it.
 * A rename needs this of both ends, a deletion as much as a creation; a symlink that leads to a sensitive place needs it
 * of that place too. `refused` effects are never declared. Sensitive places are matched only by patterns that name them
 * (`sensitive-paths.ts`). A pattern that does not parse grants nothing, and denies everything where it stands in
 * `fs.deny`.
 * Folders: a folder's own effects are covered by a pattern that covers all below it; a new folder is declared, too,
 * when something declared was made below it in the same call (which, where the folder is sensitive, was named). Adding
 * scopes or globs never makes a declared effect undeclared; adding denials never makes an undeclared one declared.
 */
import {
  coversTree,
  type Glob,
  matches,
  matchesAbove,
  parseGlob,
  parseWorkspacePath,
} from "../../../manifest/values/globs.ts"
import { Breath } from "../breath.ts"
import { SensitivePaths, type Standing } from "./sensitive-paths.ts"
import { leadsTo } from "../symlink-target.ts"
import type { Effect, WriteSet } from "../types.ts"

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

interface Spot {
  readonly path: string
  readonly folder: boolean
  /** which segments a pattern has to spell out */
  readonly literal: readonly boolean[]
}
type Grants = (spot: Spot) => boolean

export const judgeWrites = (policy: WritePolicy, writeSet: WriteSet): Judgement => {
  const judging = judgeStepwise(policy, writeSet)
  for (let step = judging.next(); ; step = judging.next()) if (step.done === true) return step.value
}

/** The same, in turns with other work; throws what `late` makes once the time allowed is over. */
export const judgeInTurns = async (
  policy: WritePolicy,
  writeSet: WriteSet,
  allowedMs: number,
  late: () => Error,
): Promise<Judgement> => {
  const breath = new Breath(allowedMs, late)
  const judging = judgeStepwise(policy, writeSet)
  for (let step = judging.next(); ; step = judging.next()) {
    if (step.done === true) return step.value
    await breath.take()
  }
}

function* judgeStepwise(policy: WritePolicy, writeSet: WriteSet): Generator<void, Judgement, void> {
  const scopes = grantsOf(policy.mutates)
  const writes = policy.fsWrite === undefined ? () => true : grantsOf(policy.fsWrite)
  const denied = denialOf(policy.fsDeny)
  const sensitive = new SensitivePaths(writeSet.repositories ?? [])
  const spotOf = (path: string, standing: Standing): Spot => ({
    path,
    folder: standing.folder,
    literal: sensitive.literalSegments(path.split("/"), standing),
  })
  const granted = (spot: Spot): boolean => scopes(spot) && writes(spot) && !denied(spot.path)
  const declared = (effect: Effect): boolean => {
    if (effect.refused !== undefined) return false
    const standing = { folder: isFolder(effect), symlink: effect.kind === "symlink" }
    if (effect.kind === "rename" && effect.from !== undefined && !granted(spotOf(effect.from, standing))) return false
    if (!granted(spotOf(effect.path, standing))) return false
    if (effect.kind !== "symlink" || effect.target === undefined) return true
    const led = leadsTo(effect.path, effect.target)
    if (led === undefined || led === "") return true
    const end = spotOf(led, { folder: false, symlink: true })
    return !end.literal.includes(true) || granted(end)
  }
  const answers: boolean[] = []
  const carried: Carried = new Map()
  for (const [index, effect] of writeSet.effects.entries()) {
    if (index % STRIDE === STRIDE - 1) yield
    const answer = declared(effect)
    answers.push(answer)
    if (answer && makes(effect)) carry(spotOf(effect.path, { folder: isFolder(effect), symlink: false }), carried)
  }
  const effects: JudgedEffect[] = []
  for (const [index, effect] of writeSet.effects.entries()) {
    if (index % STRIDE === STRIDE - 1) yield
    const comesAlong = (): boolean =>
      effect.kind === "mkdir" &&
      effect.refused === undefined &&
      !denied(effect.path) &&
      isCarried(spotOf(effect.path, { folder: true, symlink: false }), carried)
    effects.push({ ...effect, declared: answers[index] === true || comesAlong() })
  }
  return { verdict: effects.every((effect) => effect.declared) ? "clean" : "undeclared", effects }
}

/** Effects judged between two looks at the clock. */
const STRIDE = 16

const isFolder = (effect: Effect): boolean =>
  effect.kind === "mkdir" || effect.kind === "rmdir" || effect.directory === true
const makes = (effect: Effect): boolean => effect.kind !== "delete" && effect.kind !== "rmdir"

/** Folder → which of its names were spelled out by what was made below it, one mark a name. */
type Carried = Map<string, Set<string>>
const marksOf = (literal: readonly boolean[]): string => literal.map((must) => (must ? "x" : "-")).join("")

const carry = ({ path, literal }: Spot, carried: Carried): void => {
  const marks = marksOf(literal)
  for (
    let at = path.lastIndexOf("/"), depth = literal.length - 1;
    at > 0;
    at = path.lastIndexOf("/", at - 1), depth--
  ) {
    const folder = path.slice(0, at)
    const known = carried.get(folder) ?? new Set()
    if (known.has(marks.slice(0, depth))) return
    carried.set(folder, known.add(marks.slice(0, depth)))
  }
}

/** Was something made below it that spelled all of its names that must be? */
const isCarried = ({ path, literal }: Spot, carried: Carried): boolean => {
  for (const marks of carried.get(path) ?? [])
    if (literal.every((must, index) => !must || marks[index] === "x")) return true
  return false
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
  return ({ path: text, folder, literal }) => {
    const path = parseWorkspacePath(text)
    if (!path.ok || path.path === "") return false
    return globs.some((glob) => matches(glob, path.path, literal) || (folder && coversTree(glob, path.path, literal)))
  }
}

const denialOf = (texts: readonly string[]): ((path: string) => boolean) => {
  const { globs, broken } = parseAll(texts)
  return (text) => {
    const path = parseWorkspacePath(text)
    return broken || !path.ok || globs.some((glob) => matchesAbove(glob, path.path) || coversTree(glob, path.path))
  }
}
