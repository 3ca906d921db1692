/**
 * Finds manifests at any depth below folders and loads them all, with the paths between them followed.
 *
 * Guarantees: never throws for what it finds; a bad manifest is a result like any other; symbolic links are never
 * followed, `node_modules` and `.git` are skipped; depth, entries and manifests are capped with a diagnostic; the
 * order of results is that of the folders given, by name within each. Only regular files that the walk itself found are ever read, so no
 * reference in a manifest can open another file.
 * Assumes: the folders are the operator's choice. Does not: check across manifests; catalogue.ts does.
 */
import { closeSync, constants, fstatSync, openSync, readdirSync, readSync, statSync } from "node:fs"
import { dirname, join, resolve } from "node:path"
import { commandLeaves } from "./cli-bundle.ts"
import type { Lifted, LinkedTool, Links } from "./context.ts"
import { isPathRef } from "./context.ts"
import { createReport } from "./diagnostics.ts"
import { readFrontmatter } from "./frontmatter.ts"
import { limits } from "./limits.ts"
import { loadFront, manifestKind } from "./load.ts"
import type { JsonObject, LoadResult, ManifestKind, ManifestMode, ToolContract } from "./types.ts"

const SKIPPED = new Set(["node_modules", ".git"])

interface Walk {
  readonly files: Set<string>
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
    } else if (entry.isFile() && manifestKind(entry.name) !== undefined) walk.files.add(path)
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

/** At most one byte more than the limit is read, whatever the file grows to. */
function readBounded(file: string): Uint8Array | string {
  let fd: number | undefined
  try {
    fd = openSync(file, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
    if (!fstatSync(fd).isFile()) return "is not a regular file"
    const buffer = new Uint8Array(Math.min(fstatSync(fd).size, limits.fileBytes) + 1)
    let filled = 0
    for (;;) {
      const count = readSync(fd, buffer, filled, buffer.length - filled, null)
      filled += count
      if (count === 0 || filled === buffer.length) return buffer.subarray(0, filled)
    }
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code ?? "error"
    return code === "ELOOP" ? "is a symbolic link, which is not followed" : `cannot be read: ${code}`
  } finally {
    if (fd !== undefined) closeSync(fd)
  }
}

interface Parsed {
  readonly file: string
  readonly kind: ManifestKind
  readonly front: JsonObject
}

function parse(file: string, results: Map<string, LoadResult>): Parsed | undefined {
  const report = createReport(file)
  const kind = manifestKind(file)
  const refuse = (): undefined =>
    void results.set(file, { ok: false, file, kind: kind ?? "unknown", diagnostics: report.diagnostics })
  if (kind === undefined) {
    report.error(
      "unknown-file",
      "",
      "this is not the name of a manifest",
      "name it TOOL.md, DRIVER.md, SDK.md, CLI.md, SECRETS.md, ACTION.md or POLICY.md",
    )
    return refuse()
  }
  const bytes = readBounded(file)
  if (typeof bytes === "string") {
    report.error("unreadable", "", `the file ${bytes}`, "make it a readable regular file")
    return refuse()
  }
  const front = readFrontmatter(bytes, report)
  return front === undefined ? refuse() : { file, kind, front }
}

/** Where a path written in a manifest leads: to the file itself, or to the TOOL.md in the folder it names. */
const targets = (from: string, ref: string): readonly string[] => {
  const path = resolve(dirname(from), ref)
  return [path, join(path, "TOOL.md")]
}

/** `paths`: folders, or manifest files. */
export function discoverManifests(
  paths: readonly string[],
  options: { readonly mode: ManifestMode },
): readonly LoadResult[] {
  const walk: Walk = { files: new Set(), problems: [], entries: 0 }
  for (const path of paths) start(walk, resolve(path))
  const results = new Map<string, LoadResult>()
  const parsed = [...walk.files].flatMap((file) => parse(file, results) ?? [])
  const subcommands = new Set(
    parsed
      .filter((p) => p.kind === "cli")
      .flatMap((p) =>
        commandLeaves(p.front["commands"])
          .filter((c) => isPathRef(c.ref))
          .flatMap((c) => targets(p.file, c.ref)),
      ),
  )
  const tools = new Map<string, LinkedTool>()
  const links: Links = {
    tool(from, ref) {
      for (const file of targets(from, ref)) {
        const tool = tools.get(file)
        if (tool !== undefined) return { found: "tool", tool }
        if (walk.files.has(file)) return { found: "invalid" }
      }
      return { found: "nothing" }
    },
    isSubcommand: (file) => subcommands.has(file),
  }
  const load = (p: Parsed): Lifted => {
    const loaded = loadFront(p.file, p.kind, p.front, options.mode, links)
    results.set(p.file, loaded.result)
    return loaded.lifted
  }
  for (const p of parsed.filter((one) => one.kind === "tool")) {
    const lifted = load(p)
    const result = results.get(p.file)
    if (result?.ok === true) tools.set(p.file, { contract: result.manifest as ToolContract, lifted })
  }
  for (const p of parsed.filter((one) => one.kind !== "tool")) load(p)
  return [...[...walk.files].flatMap((file) => results.get(file) ?? []), ...walk.problems]
}
