/**
 * The files of a folder, as ripgrep would find them: sorted, without hidden and ignored ones, links not followed.
 *
 * Guarantees: bounded in entries and depth; lets other work have its turn and hears the call's end at every entry.
 */
import { takingTurns } from "../../../sandbox/effects/breath.ts"
import type { HostedFiles } from "../../../sandbox/layers/hosted/layer.ts"
import type { Failure } from "../../failure.ts"
import { unusable } from "./function.ts"
import { pathGlob } from "./glob.ts"
import { entering, type Ignoring, isIgnored, NOTHING_IGNORED } from "./ignore.ts"
import { BUILTIN } from "./limits.ts"

interface WalkOptions {
  readonly path: string | undefined
  readonly glob: string | undefined
  readonly hidden: boolean
  readonly signal: AbortSignal
}

/** A file, by the path that opens it and by the one that it is told by. */
interface Walked {
  readonly path: string
  readonly shown: string
}

export class WalkEnded extends Error {
  readonly failure: Failure
  constructor(failure: Failure) {
    super(failure.message)
    this.failure = failure
  }
}

const tooMuch = (what: string): WalkEnded =>
  new WalkEnded({
    ok: false,
    code: "limit_exceeded",
    message: `there are more than ${what} to look at`,
    hint: "name a folder further down as `path`",
    details: { limit: "entries" },
  })

/** Rules of the folders above the one that is asked for hold there too. */
const ignoringAbove = async (files: HostedFiles, top: string): Promise<Ignoring> => {
  let ignoring = NOTHING_IGNORED
  const parts = top === "" ? [] : top.split("/")
  for (const depth of parts.keys()) {
    const folder = depth === 0 ? "" : `${parts.slice(0, depth).join("/")}/`
    const listed = await files.list(folder === "" ? "." : folder)
    if (!listed.ok) return ignoring
    ignoring = await entering(ignoring, folder, new Set(listed.value.map(({ name }) => name)), files)
  }
  return ignoring
}

export async function* walk(files: HostedFiles, { path, glob, hidden, signal }: WalkOptions): AsyncGenerator<Walked> {
  const top = path === undefined || path === "." ? "" : path
  const told = (at: string): string => (path === undefined || path === "." ? `./${at}` : at)
  const only = glob === undefined ? undefined : pathGlob(glob)
  /** What the glob says comes first, before what hides a file or ignores it; undefined: it says nothing. */
  const wantedBy = (at: string, isFolder: boolean): boolean | undefined => {
    if (only === undefined) return undefined
    if ((isFolder || !only.foldersOnly) && only.matches(at)) return !only.negated
    return isFolder || only.negated ? undefined : false
  }
  const facts = await files.stat(top === "" ? "." : top)
  if (!facts.ok) throw new WalkEnded(unusable(facts.fault, path ?? "."))
  if (facts.value.kind === "file") {
    yield { path: top, shown: top }
    return
  }
  let seen = 0
  const turns = takingTurns()
  async function* within(folder: string, above: Ignoring, depth: number): AsyncGenerator<Walked> {
    if (depth > BUILTIN.depth) throw tooMuch(`${BUILTIN.depth} folders in each other`)
    const listed = await files.list(folder === "" ? "." : folder)
    if (!listed.ok) {
      // Gone, or closed, since it was found: as for any tool that walks while others work.
      if (depth > 0 && listed.fault !== "too_many" && listed.fault !== "ended") return
      throw new WalkEnded(unusable(listed.fault, folder === "" ? "." : folder))
    }
    const ignoring = await entering(above, folder, new Set(listed.value.map(({ name }) => name)), files)
    for (const { name, kind } of listed.value) {
      seen += 1
      await turns.take()
      if (signal.aborted) throw new WalkEnded(unusable("ended", folder === "" ? "." : folder))
      if (seen > BUILTIN.entries) throw tooMuch(`${BUILTIN.entries} entries`)
      const at = `${folder}${name}`
      const isFolder = kind === "folder"
      const left = (): boolean => (hidden || !name.startsWith(".")) && !isIgnored(ignoring, at, isFolder)
      if (!(wantedBy(at, isFolder) ?? left())) continue
      if (isFolder) yield* within(`${at}/`, ignoring, depth + 1)
      else if (kind === "file") yield { path: at, shown: told(at) }
    }
  }
  yield* within(top === "" ? "" : `${top}/`, await ignoringAbove(files, top), 0)
}
