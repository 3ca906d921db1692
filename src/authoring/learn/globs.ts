/**
 * Observed paths → the globs of a contract that allow them and nothing else that was not the run's own.
 *
 * Guarantees: whatever a program called its files, a proposed glob is a literal path (a `*` in a name is that character),
 * or a folder that the run made itself with everything below it; it never leaves the workspace, and it is only proposed
 * where reading it back shows that it matches. A path that the grammar cannot spell is told, never rounded. Pure.
 */
import { exactGlob, matches, parseGlob, parseWorkspacePath } from "../../manifest/values/globs.ts"
import { canonicalGlob } from "../../manifest/values/sandbox-globs.ts"
import { isWritable } from "../text/front.ts"
import { limits } from "./limits.ts"
import { type Observation, type Seen, type SeenWrite, union } from "./observation.ts"

export interface ProposedGlob {
  /** relative to the workspace */
  readonly glob: string
  readonly receipts: readonly string[]
  /** of a folder with all below it: how many paths were seen there */
  readonly below?: number
  /** other programs run or trust what stands there */
  readonly guarded?: true
}

interface Proposed {
  readonly globs: readonly ProposedGlob[]
  /** paths that no manifest can name, made fit to show by whoever shows them */
  readonly unspelt: readonly string[]
}

/** What a list in a manifest takes for blanks, controls, a home or a template. */
const SPELT = /[\u0000-\u0020\u007f~$]/g

/** The glob that matches this path and nothing else, as a manifest can hold it; undefined where none can. */
export const globOfPath = (path: string): string | undefined => {
  const parsed = parseWorkspacePath(path)
  if (!parsed.ok || path === "") return undefined
  const glob = exactGlob(path)
    .slice(1)
    .replace(SPELT, (char) => `\\x${char.charCodeAt(0).toString(16).padStart(2, "0")}`)
  if (!isWritable(glob) || /\s/.test(glob)) return undefined
  const read = canonicalGlob(glob)
  const scope = parseGlob(`/${glob}`)
  if (!read.ok || read.glob !== glob || !scope.ok) return undefined
  const isLiteral = scope.glob.segments.every(({ kind }) => kind === "literal")
  return isLiteral && matches(scope.glob, parsed.path) ? glob : undefined
}

const parents = (path: string): readonly string[] => {
  const parts = path.split("/")
  return parts.slice(1).map((_, at) => parts.slice(0, at + 1).join("/"))
}

const pathsOf = (runs: readonly Observation[]): readonly Seen<string>[] =>
  union(
    runs,
    ({ writes }) => writes.flatMap(({ path, from }) => (from === undefined ? [path] : [path, from])),
    (path) => path,
  )

/**
 * Folders that each run which wrote below them had made itself: nothing that was there before lies in them. Only the
 * topmost, and only where so much was written below that naming each would say less.
 */
const ownFolders = (runs: readonly Observation[], paths: readonly Seen<string>[]): ReadonlyMap<string, number> => {
  const made = runs.map(({ writes }) => new Set(writes.filter((each) => each.made).map(({ path }) => path)))
  const writers = (folder: string): readonly number[] =>
    runs.flatMap(({ writes }, at) => (writes.some((each) => isBelow(folder, each)) ? [at] : []))
  const own = [...new Set(made.flatMap((each) => [...each]))].filter((folder) =>
    writers(folder).every((at) => made[at]?.has(folder) === true),
  )
  const top = own.filter((folder) => !parents(folder).some((each) => own.includes(each)))
  const counted = top.map(
    (folder) => [folder, paths.filter(({ value }) => value.startsWith(`${folder}/`)).length] as const,
  )
  return new Map(counted.filter(([, count]) => count > limits.namedBelow))
}
const isBelow = (folder: string, { path, from }: SeenWrite): boolean =>
  path.startsWith(`${folder}/`) || from?.startsWith(`${folder}/`) === true

export const writeGlobs = (runs: readonly Observation[]): Proposed => {
  const paths = pathsOf(runs)
  const folders = ownFolders(runs, paths)
  const guarded = new Set(
    runs.flatMap(({ writes }) => writes.flatMap((each) => (each.guarded === true ? [each.path] : []))),
  )
  const globs: ProposedGlob[] = []
  const unspelt: string[] = []
  for (const { value: path, receipts } of paths) {
    if (!guarded.has(path) && parents(path).some((folder) => folders.has(folder) && globOfPath(folder) !== undefined))
      continue
    const glob = globOfPath(path)
    if (glob === undefined || globs.length >= limits.globs) {
      unspelt.push(path)
      continue
    }
    globs.push({ glob, receipts, ...(guarded.has(path) ? { guarded: true as const } : {}) })
    const below = folders.get(path)
    if (below !== undefined) globs.push({ glob: `${glob}/**`, receipts, below })
  }
  return { globs, unspelt }
}

const readGlobOf = ({ path, below }: { readonly path: string; readonly below: boolean }): string | undefined => {
  if (!below) return globOfPath(path)
  if (path === ".") return "**"
  const folder = globOfPath(path)
  return folder === undefined ? undefined : `${folder}/**`
}

export const readGlobs = (runs: readonly Observation[]): Proposed | undefined => {
  if (runs.some(({ reads }) => reads === undefined)) return undefined
  const seen = union(
    runs,
    ({ reads = [], readBelow = [] }) => [
      ...reads.map((path) => ({ path: path.replace(/\/$/, ""), below: false })),
      ...readBelow.map((path) => ({ path, below: true })),
    ],
    ({ path, below }) => `${path}${below ? "/" : ""}`,
  )
  const spelt = seen.map(({ value, receipts }) => ({
    path: value.below ? `${value.path}/` : value.path,
    glob: readGlobOf(value),
    receipts,
  }))
  const globs = spelt.flatMap(({ glob, receipts }) => (glob === undefined ? [] : [{ glob, receipts }]))
  return {
    globs: globs.slice(0, limits.globs),
    unspelt: [
      ...spelt.flatMap(({ glob, path }) => (glob === undefined ? [path] : [])),
      ...globs.slice(limits.globs).map(({ glob }) => glob),
    ],
  }
}
