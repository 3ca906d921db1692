/**
 * Manifests examined as registering them beside the bundled catalogue would.
 *
 * Guarantees: reads only; nothing is fetched or run. What is said is said of the paths that were asked about alone.
 */
import { mkdtempSync, readFileSync, rmSync, statSync } from "node:fs"
import { tmpdir } from "node:os"
import { join, resolve, sep } from "node:path"
import { fileURLToPath } from "node:url"
import { locatorOf, type Place } from "../../../authoring/text/locate.ts"
import type { ScaffoldFile } from "../../../authoring/scaffold/scaffold.ts"
import { createRegistry } from "../../../host/registry/registry.ts"
import { loadFound } from "../../../manifest/read/discover.ts"
import { limits } from "../../../manifest/limits.ts"
import type { Diagnostic, LoadResult, ManifestMode } from "../../../manifest/types.ts"
import { writeNew } from "./write-new.ts"

/** A diagnostic with where in its file it is; none of what is no text. */
type Placed = Diagnostic & Partial<Place>

interface Findings {
  readonly manifests: number
  readonly diagnostics: readonly Placed[]
}

const textOf = (file: string): string | undefined => {
  try {
    const { size } = statSync(file)
    return size <= limits.fileBytes ? readFileSync(file, "utf8") : undefined
  } catch {
    return undefined
  }
}

/** Each with its line and column. What is malformed says itself where. */
const placed = (diagnostics: readonly Diagnostic[]): readonly Placed[] => {
  const locators = new Map<string, ReturnType<typeof locatorOf> | undefined>()
  return diagnostics.map((each) => {
    const { file, path, message } = each
    const [, line, column] = /\bat line (\d+), column (\d+)/.exec(message) ?? []
    if (each.rule === "yaml-syntax" && line !== undefined)
      return { ...each, line: Number(line), column: Number(column) }
    if (!locators.has(file)) {
      const text = textOf(file)
      locators.set(file, text === undefined ? undefined : locatorOf(text))
    }
    const place = locators.get(file)?.(path)
    return place === undefined ? each : { ...each, ...place }
  })
}

const bundled = fileURLToPath(new URL("../../../../manifests", import.meta.url))
const fileOf = (result: LoadResult): string => (result.ok ? result.manifest.source.file : result.file)

export const examine = (paths: readonly string[], mode: ManifestMode): Findings => {
  const roots = paths.map((path) => resolve(path))
  const isAsked = (file: string): boolean =>
    roots.some((root) => file === root || file.startsWith(root.endsWith(sep) ? root : root + sep))
  let manifests = 0
  const { diagnostics } = createRegistry({
    dirs: [bundled, ...roots],
    mode,
    load: (found, options) => {
      const results = loadFound(found, options)
      manifests = results.filter((result) => isAsked(fileOf(result))).length
      return results
    },
  })
  return { manifests, diagnostics: placed(diagnostics.filter((diagnostic) => isAsked(diagnostic.file))) }
}

/** Of files that are not written yet, strictly; in a folder of its own, which is gone afterwards. */
export const examineNew = (files: readonly ScaffoldFile[]): readonly Placed[] => {
  const folder = mkdtempSync(join(tmpdir(), "caisson-new-"))
  try {
    const written = writeNew(folder, files)
    if (!written.ok) throw new Error(written.message)
    const strip = (text: string): string => text.replaceAll(`${folder}/`, "")
    return examine([folder], "strict").diagnostics.map((each) => ({
      ...each,
      file: strip(each.file),
      message: strip(each.message),
    }))
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
