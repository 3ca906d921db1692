/**
 * Finds manifests at any depth below folders and reads them, without looking into them.
 *
 * Guarantees: never throws for what it finds; symbolic links are never followed, `node_modules` and `.git` are skipped;
 * depth, entries and manifests are capped with a diagnostic; the order is that of the folders given, by name within
 * each. Only regular files are read, and no more of each than its limit and one byte.
 * Assumes: the folders are the operator's choice.
 */
import { lstatSync, readdirSync, statSync } from "node:fs"
import { dirname, join, resolve } from "node:path"
import { createReport } from "../values/diagnostics.ts"
import { claimsOfFront } from "./claims.ts"
import type { DefinedManifest } from "./defined.ts"
import { formatOf } from "../formats/formats.ts"
import { manifestKind } from "./kind.ts"
import { moduleDigest } from "./module-digest.ts"
import { type ManifestBytes, readBounded } from "./bounded.ts"
import { limits } from "../limits.ts"
import type { DriverCode } from "../driver-code.ts"
import type { LoadResult, ManifestKind } from "../types.ts"

export interface FoundManifests {
  /** files that were named by themselves may be no manifests */
  readonly files: ReadonlyMap<string, () => ManifestBytes>
  /** every file was read already and gives the same bytes each time it is asked */
  readonly held: boolean
  readonly problems: readonly LoadResult[]
  /** the folders that were searched, in order */
  readonly roots: readonly string[]
  /** defined in code, in the program's order; each file name once, and where one has functions, their module was read */
  readonly defined: readonly DefinedManifest[]
  /** RUNNER.md files, which other manifests name and nobody loads by themselves (C-26) */
  readonly runners: ReadonlyMap<string, ManifestBytes>
  /** the module beside a driver's manifest, by the manifest's file; what it holds is known once a sandbox looked into it */
  readonly entries: ReadonlyMap<string, DriverCode>
}

/** Of AIP, or of another format that is read. */
const isManifest = (file: string): boolean => manifestKind(file) !== undefined || formatOf(file) !== undefined

const SKIPPED = new Set(["node_modules", ".git"])
export const RUNNER = "RUNNER.md"

interface Walk {
  readonly files: Set<string>
  readonly runners: Set<string>
  readonly problems: LoadResult[]
  entries: number
}

function problem(walk: Walk, file: string, rule: string, message: string, fix: string): void {
  const report = createReport(file)
  report.error(rule, "", message, fix)
  walk.problems.push({ ok: false, file, kind: "unknown", diagnostics: report.diagnostics })
}

/** False when the walk must stop. */
function visit(walk: Walk, folder: string, depth: number): boolean {
  if (depth > limits.walkDepth) {
    problem(
      walk,
      folder,
      "walk-too-deep",
      `folders deeper than ${limits.walkDepth} levels are not searched`,
      "move the manifests up, or name the folder itself",
    )
    return true
  }
  let entries
  try {
    entries = readdirSync(folder, { withFileTypes: true })
  } catch (error) {
    problem(
      walk,
      folder,
      "unreadable",
      `the folder cannot be read: ${(error as NodeJS.ErrnoException).code ?? "error"}`,
      "check that it exists and its permissions",
    )
    return true
  }
  for (const entry of entries.sort((a, b) => (a.name < b.name ? -1 : 1))) {
    if (++walk.entries > limits.walkEntries || walk.files.size >= limits.walkManifests) {
      problem(
        walk,
        folder,
        "walk-too-large",
        `more than ${limits.walkEntries} entries or ${limits.walkManifests} manifests; the rest is not searched`,
        "name a smaller folder",
      )
      return false
    }
    const path = join(folder, entry.name)
    if (entry.isDirectory()) {
      if (!SKIPPED.has(entry.name) && !visit(walk, path, depth + 1)) return false
    } else if (entry.name === RUNNER && entry.isFile() && walk.runners.size < limits.walkManifests) {
      walk.runners.add(path)
    } else if (isManifest(entry.name)) {
      if (entry.isFile()) walk.files.add(path)
      else
        problem(
          walk,
          path,
          "not-a-regular-file",
          entry.isSymbolicLink() ? "is a symbolic link, which is not followed" : "is not a regular file",
          "put the manifest itself there",
        )
    }
  }
  return true
}

function start(walk: Walk, path: string): void {
  try {
    if (statSync(path).isDirectory()) visit(walk, path, 0)
    else walk.files.add(path)
  } catch (error) {
    problem(
      walk,
      path,
      "unreadable",
      `cannot be read: ${(error as NodeJS.ErrnoException).code ?? "error"}`,
      "check the path",
    )
  }
}

/** With the digest of the module that its functions are in; nothing where they are nowhere. */
function withModule(walk: Walk, given: DefinedManifest): readonly DefinedManifest[] {
  const { doctype: kind, code, file, front } = given
  if (code === undefined) return [given]
  const refuse = (rule: string, message: string, fix: string): readonly DefinedManifest[] => {
    const report = createReport(file)
    report.error(rule, "execute", message, fix)
    walk.problems.push({ ok: false, file, kind, diagnostics: report.diagnostics, claims: claimsOfFront(front) })
    return []
  }
  if (code.module === undefined)
    return refuse(
      "closure-without-module",
      "its functions are closures of this program, and run nowhere but in a sandbox, which imports them from a module",
      "pass where it is written: `defineDriver(definition, { module: import.meta.url, export: 'default' })`",
    )
  const now = moduleDigest(code.module)
  if (!now.ok) return refuse("unreadable", `its module ${code.module} ${now.why}`, "correct `module`")
  return [{ ...given, code: { ...code, digest: now.digest } }]
}

const ENTRY: Readonly<Partial<Record<ManifestKind, string>>> = { driver: "driver", cli: "cli" }
const ENDINGS = ["ts", "mts", "js", "mjs"]

/** `driver.ts` beside a DRIVER.md, `cli.ts` beside a CLI.md (AIP-29, 30). One that cannot be read has no digest. */
function entryBeside(file: string): DriverCode | undefined {
  const kind = manifestKind(file)
  const name = kind === undefined ? undefined : ENTRY[kind]
  if (name === undefined) return undefined
  const paths = ENDINGS.map((ending) => join(dirname(file), `${name}.${ending}`))
  const module = paths.find((path) => lstatSync(path, { throwIfNoEntry: false }) !== undefined)
  if (module === undefined) return undefined
  const now = moduleDigest(module)
  return { module, export: "default", digest: now.ok ? now.digest : "", adapters: [], transforms: [] }
}

const namedOnce = (all: readonly DefinedManifest[]): readonly DefinedManifest[] =>
  all.map((each, index) => {
    const before = all.slice(0, index).filter((other) => other.file === each.file).length
    return before === 0 ? each : { ...each, file: `${each.file}~${before + 1}` }
  })

/** `paths`: folders, or manifest files. `given`: what a program defined in code. */
export function findManifests(paths: readonly string[], given: readonly DefinedManifest[] = []): FoundManifests {
  const walk: Walk = { files: new Set(), runners: new Set(), problems: [], entries: 0 }
  for (const path of paths) start(walk, resolve(path))
  const defined = namedOnce(given).flatMap((each) => withModule(walk, each))
  let held = 0
  const read = (file: string): (() => ManifestBytes) => {
    if (held > limits.walkHeldBytes) return () => readBounded(file)
    const bytes = isManifest(file) ? readBounded(file) : ""
    held += bytes.length
    return () => bytes
  }
  const files = new Map([...walk.files].map((file) => [file, read(file)]))
  const roots = paths.map((path) => resolve(path))
  const entries = new Map(
    [...walk.files].flatMap((file): readonly (readonly [string, DriverCode])[] => {
      const entry = entryBeside(file)
      return entry === undefined ? [] : [[file, entry]]
    }),
  )
  const runners = new Map([...walk.runners].map((file) => [file, readBounded(file)]))
  return { files, held: held <= limits.walkHeldBytes, problems: walk.problems, roots, defined, entries, runners }
}
