/**
 * Folders of manifests → the registry of one host.
 *
 * Guarantees: a snapshot; files that change later change nothing until a new one is made. Folders are taken in order:
 * the earlier one keeps what both declare. Never fails: what does not load or bind is in the registry with its reason.
 */
import path from "node:path"
import { loadFound } from "../../manifest/read/discover.ts"
import type { DefinedManifest } from "../../manifest/read/defined.ts"
import type { Annotations } from "../../manifest/formats/annotations.ts"
import { writtenFile } from "../../manifest/formats/format.ts"
import { findManifests } from "../../manifest/read/find.ts"
import type { LoadResult, ManifestMode } from "../../manifest/types.ts"
import { buildRegistry, type LoadedManifest, type SnapshotOptions } from "./snapshot.ts"
import type { Registry } from "./types.ts"

/** A folder, or one manifest file. `trusted`: its drivers' policy tags count as verified. */
export type RegistryFolder = string | { readonly dir: string; readonly trusted?: boolean }

interface RegistryOptions extends SnapshotOptions {
  readonly dirs: readonly RegistryFolder[]
  /** what a program defined in code: one folder more, after the others, that nobody vouches for */
  readonly defined?: readonly DefinedManifest[]
  /** what the operator's config defines: as the folders that it vouches for, and after them */
  readonly operators?: readonly DefinedManifest[]
  /** of what the operator's config names, and could not be read */
  readonly problems?: readonly LoadResult[]
  readonly mode: ManifestMode
  /** what was found → what it says; default: the loader itself */
  readonly load?: typeof loadFound
  /** what the operator says of tools of formats that cannot say it */
  readonly annotations?: Annotations
}

/** No path: nothing on disk is in it. */
const IN_CODE = "<code>"
const IN_CONFIG = "<config>"

const fileOf = (result: LoadResult): string => (result.ok ? result.manifest.source.file : result.file)
const holds = (folder: string, file: string): boolean =>
  writtenFile(file) === folder || file.startsWith(folder.endsWith(path.sep) ? folder : `${folder}${path.sep}`)

export const createRegistry = ({
  dirs,
  defined = [],
  operators = [],
  problems = [],
  mode,
  load = loadFound,
  annotations = {},
  ...options
}: RegistryOptions): Registry => {
  const folders = dirs.map((each) => ({
    dir: path.resolve(typeof each === "string" ? each : each.dir),
    trusted: typeof each !== "string" && each.trusted === true,
  }))
  // One walk over all folders, so that a path in one folder's driver may lead to a tool in another.
  const looked = findManifests(
    folders.map((folder) => folder.dir),
    [...operators, ...defined],
  )
  const vouched = folders.filter(({ trusted }) => trusted).map(({ dir }) => dir)
  const found = load(looked, { mode, annotations, vouched })
  const given = new Set(defined.map((each) => each.file))
  const configured = new Set(operators.map((each) => each.file))
  const inCode = new Set([...defined, ...looked.defined].map((each) => each.file))
  // A module may lie in a folder that the operator vouches for; what it defines is a program's word all the same.
  const program = { dir: IN_CODE, trusted: false }
  const operator = { dir: IN_CONFIG, trusted: true }
  const ownerOf = (result: LoadResult): typeof program | undefined =>
    configured.has(fileOf(result))
      ? operator
      : inCode.has(fileOf(result))
        ? program
        : folders.find((folder) => holds(folder.dir, fileOf(result)))
  // It counts for less than what the operator vouches for, and for more than folders of strangers.
  const strangers = folders.findIndex((folder) => !folder.trusted)
  const ordered = folders.toSpliced(strangers === -1 ? folders.length : strangers, 0, operator, program)
  const loaded = ordered.flatMap((owner) =>
    [...found, ...(owner === operator ? problems : [])]
      .filter((result) => (problems.includes(result) ? operator : ownerOf(result)) === owner)
      .map((result): LoadedManifest => {
        const isGiven = given.has(fileOf(result))
        return { result, trusted: owner.trusted, folder: owner.dir, ...(isGiven ? { given: true } : {}) }
      }),
  )
  return buildRegistry(loaded, options)
}
