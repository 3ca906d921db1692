/**
 * Loads all manifests that were found below some folders or defined in code, with the paths between them followed.
 *
 * Guarantees: never throws for what it finds; a bad manifest is a result like any other; the order of results is that
 * of the files found. Pure over what was found: no reference in a manifest can open another file.
 * Does not: check across manifests; catalogue.ts does.
 */
import { dirname, join, resolve, sep } from "node:path"
import { claimsOfBytes, claimsOfFront, followed } from "./claims.ts"
import { commandLeaves } from "../contracts/cli-bundle.ts"
import { codeId, servedBy } from "../contracts/composed.ts"
import type { Lifted, LinkedTool, Links } from "../values/context.ts"
import { isPathRef } from "../values/context.ts"
import { createReport } from "../values/diagnostics.ts"
import type { ManifestBytes } from "./bounded.ts"
import { findManifests, type FoundManifests, RUNNER } from "./find.ts"
import { readFrontmatter } from "./frontmatter.ts"
import { manifestKind, manifestNames } from "./kind.ts"
import { loadFront } from "./load.ts"
import type { DriverCode } from "../driver-code.ts"
import { type Annotating, asWritten, type ForeignPart, readForeign } from "./foreign.ts"
import type { Format } from "../formats/format.ts"
import { formatOf } from "../formats/formats.ts"
import { withPlaces } from "./places.ts"
import type { Diagnostic, JsonObject, LoadResult, ManifestKind, ManifestMode, ToolContract } from "../types.ts"

interface Parsed {
  readonly file: string
  readonly kind: ManifestKind
  readonly front: JsonObject
  readonly code?: DriverCode
  /** made of a file of another format: that file, and which of its fields became which */
  readonly said?: readonly Diagnostic[]
  readonly made?: { readonly of: string; readonly from: ForeignPart["from"] }
}

export interface LoadOptions extends Annotating {
  readonly mode: ManifestMode
}

function parse(
  file: string,
  read: () => ManifestBytes,
  results: Map<string, LoadResult>,
  options: LoadOptions,
): readonly Parsed[] {
  const report = createReport(file)
  const kind = manifestKind(file)
  const format = kind === undefined ? formatOf(file) : undefined
  const refuse = (): readonly Parsed[] => {
    results.set(file, { ok: false, file, kind: kind ?? "unknown", diagnostics: report.diagnostics })
    return []
  }
  if (kind === undefined && format === undefined) {
    report.error("unknown-file", "", "this is not the name of a manifest", `name it one of ${manifestNames.join(", ")}`)
    return refuse()
  }
  const bytes = read()
  if (typeof bytes === "string") {
    report.error("unreadable", "", `the file ${bytes}`, "make it a readable regular file")
    return refuse()
  }
  if (format !== undefined) return parseForeign(format, file, bytes, results, options)
  const front = readFrontmatter(bytes, report)
  if (front !== undefined && kind !== undefined) return [{ file, kind, front }]
  results.set(file, {
    ok: false,
    file,
    kind: kind ?? "unknown",
    diagnostics: report.diagnostics,
    claims: claimsOfBytes(bytes),
  })
  return []
}

function parseForeign(
  format: Format,
  file: string,
  bytes: Uint8Array,
  results: Map<string, LoadResult>,
  options: LoadOptions,
): readonly Parsed[] {
  const foreign = readForeign(format, file, bytes, options)
  if (!foreign.ok) {
    results.set(file, foreign.result)
    return []
  }
  return foreign.parts.map(({ from, ...part }, index) => ({
    ...part,
    made: { of: file, from },
    ...(index === 0 ? { said: foreign.said } : {}),
  }))
}

const AUTH = "AUTH.md"

const isBelow = (file: string, root: string): boolean => file.startsWith(root.endsWith(sep) ? root : root + sep)

/**
 * Where a reference written in a manifest may lead, in the order it is tried (C-61): beside the file, from the root of
 * its folder of manifests, below that root's `.tools` (of actions, `.actions`); each the file itself, or the manifest
 * in the folder it names.
 */
const targetsIn =
  (roots: readonly string[], folder: string, name: string) =>
  (from: string, ref: string): readonly string[] => {
    const root = roots.find((each) => isBelow(from, each))
    const bases = [dirname(from), ...(root === undefined ? [] : [root, join(root, folder)])]
    return bases.flatMap((base) => {
      const path = resolve(base, ref)
      return [path, join(path, name)]
    })
  }

export function loadFound(found: FoundManifests, options: LoadOptions): readonly LoadResult[] {
  const { files } = found
  const targets = targetsIn(found.roots, ".tools", "TOOL.md")
  const actions = targetsIn(found.roots, ".actions", "ACTION.md")
  const runners = targetsIn(found.roots, ".runners", RUNNER)
  const providers = targetsIn(found.roots, ".auth", AUTH)
  const codes = targetsIn(found.roots, ".code", "CODE.md")
  const results = new Map<string, LoadResult>()
  const read: readonly Parsed[] = [...files].flatMap(([file, bytes]) => {
    const code = found.entries.get(file)
    return parse(file, bytes, results, options).map((each) => (code === undefined ? each : { ...each, code }))
  })
  const parsed = [
    ...read,
    ...found.defined.map(
      // A handle has more than a manifest, and what it has for its program must not be taken for the manifest's.
      ({ doctype, file, front, code }): Parsed => ({
        file,
        kind: doctype,
        front,
        ...(code === undefined ? {} : { code }),
      }),
    ),
  ]
  const subcommands = new Set(
    parsed
      .filter((p) => p.kind === "cli")
      .flatMap((p) =>
        commandLeaves(p.front["commands"])
          .filter((c) => isPathRef(c.ref))
          .flatMap((c) => targets(p.file, c.ref)),
      ),
  )
  const bundles = new Map(parsed.filter(({ kind }) => kind === "code").map(({ file, front }) => [file, front]))
  const fronts = new Map(parsed.map(({ file, front }) => [file, front]))
  const tools = new Map<string, LinkedTool>()
  const links: Links = {
    tool(from, ref) {
      for (const file of targets(from, ref)) {
        const tool = tools.get(file)
        if (tool !== undefined) return { found: "tool", tool }
        if (files.has(file)) return { found: "invalid" }
      }
      return { found: "nothing" }
    },
    action: (from, ref) => actions(from, ref).find((file) => files.has(file) && manifestKind(file) === "action"),
    runner(from, ref) {
      const file = runners(from, ref).find((each) => found.runners.has(each))
      const bytes = file === undefined ? undefined : found.runners.get(file)
      return bytes === undefined || typeof bytes === "string" ? undefined : readFrontmatter(bytes, createReport(from))
    },
    code(from, ref) {
      const file = codes(from, ref).find((each) => bundles.has(each))
      const front = file === undefined ? undefined : bundles.get(file)
      return file === undefined || front === undefined ? undefined : { file, front }
    },
    provider(from, ref) {
      const paths = ref === undefined ? [join(dirname(from), AUTH)] : providers(from, ref)
      const file = paths.find((each) => files.has(each) && manifestKind(each) === "auth")
      return file === undefined ? undefined : { file, front: fronts.get(file) }
    },
    bases: (from) => [dirname(from), ...found.roots.filter((root) => isBelow(from, root)).slice(0, 1)],
    defaultFor: (id) =>
      [...tools.values()].map(({ contract }) => contract).filter((tool) => tool.defaultImplementation === id),
    isSubcommand: (file) => subcommands.has(file),
  }
  const load = (p: Parsed): Lifted => {
    const beside = p.code === undefined ? { links } : { links, code: p.code }
    const { result: loaded, lifted } = loadFront(p.file, p.kind, p.front, options.mode, beside)
    const { made, said = [] } = p
    const result =
      made === undefined
        ? loaded
        : { ...loaded, diagnostics: [...said, ...asWritten(loaded.diagnostics, made.of, made.from)] }
    results.set(p.file, result.ok ? result : { ...result, claims: claimsOfFront(p.front) })
    return lifted
  }
  for (const p of parsed.filter((one) => one.kind === "tool")) {
    const lifted = load(p)
    const result = results.get(p.file)
    if (result?.ok === true) tools.set(p.file, { contract: result.manifest as ToolContract, lifted })
  }
  // One that serves nothing is there for others to name.
  const serves = ({ kind, front }: Parsed): boolean =>
    kind !== "code" || servedBy(front) !== undefined || links.defaultFor(codeId(front)).length > 0
  for (const p of parsed.filter((one) => one.kind !== "tool" && serves(one))) load(p)
  const idAt =
    (file: string) =>
    (ref: string): string | undefined =>
      isPathRef(ref) ? targets(file, ref).flatMap((path) => tools.get(path)?.contract.id ?? [])[0] : undefined
  for (const [file, result] of results)
    if (!result.ok && result.claims !== undefined)
      results.set(file, { ...result, claims: followed(result.claims, idAt(file)) })
  const parts = Map.groupBy(
    parsed.filter(({ made }) => made !== undefined),
    ({ made }) => made?.of ?? "",
  )
  const names = [...files.keys(), ...found.defined.map((each) => each.file)].flatMap(
    (file) => parts.get(file)?.map((part) => part.file) ?? [file],
  )
  const placed = names
    .flatMap((file) => results.get(file) ?? [])
    .map((result) =>
      result.diagnostics.length === 0
        ? result
        : { ...result, diagnostics: withPlaces(result.diagnostics, (file) => files.get(file)?.()) },
    )
  return [...placed, ...found.problems]
}

/** `paths`: folders, or manifest files. */
export const discoverManifests = (paths: readonly string[], options: LoadOptions): readonly LoadResult[] =>
  loadFound(findManifests(paths), options)
