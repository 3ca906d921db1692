/**
 * Manifests examined as registering them beside the bundled catalogue would.
 *
 * Guarantees: reads only; nothing is fetched or run. What is said is said of the paths that were asked about alone.
 */
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join, resolve, sep } from "node:path"
import { fileURLToPath } from "node:url"
import type { ScaffoldFile } from "../../../authoring/scaffold/scaffold.ts"
import { createRegistry } from "../../../host/registry/registry.ts"
import { loadFound } from "../../../manifest/read/discover.ts"
import type { ManifestBytes } from "../../../manifest/read/bounded.ts"
import { withPlaces } from "../../../manifest/read/places.ts"
import { writtenFile } from "../../../manifest/formats/format.ts"
import type { OperatorWord } from "../../reach/operator-word.ts"
import type { Diagnostic, LoadResult, ManifestMode } from "../../../manifest/types.ts"
import { writeNew } from "./write-new.ts"

interface Findings {
  readonly manifests: number
  readonly diagnostics: readonly Diagnostic[]
}

const bundled = fileURLToPath(new URL("../../../../manifests", import.meta.url))
const fileOf = (result: LoadResult): string => (result.ok ? result.manifest.source.file : result.file)

/** `word`: what of the operator's config bears on them; absent: nothing. */
export const examine = (paths: readonly string[], mode: ManifestMode, word?: OperatorWord): Findings => {
  const roots = paths.map((path) => resolve(path))
  const isAsked = (file: string): boolean =>
    roots.some((root) => writtenFile(file) === root || file.startsWith(root.endsWith(sep) ? root : root + sep))
  let manifests = 0
  let bytesOf = (_file: string): ManifestBytes | undefined => undefined
  const { diagnostics } = createRegistry({
    dirs: [bundled, ...roots.map((dir) => ({ dir, trusted: word?.isVouched(dir) === true }))],
    mode,
    annotations: word?.annotations ?? {},
    load: (found, options) => {
      bytesOf = (file) => found.files.get(file)?.()
      const results = loadFound(found, options)
      manifests = new Set(results.map((result) => writtenFile(fileOf(result))).filter(isAsked)).size
      return results
    },
  })
  const asked = diagnostics.filter((diagnostic) => isAsked(diagnostic.file))
  return { manifests, diagnostics: withPlaces(asked, bytesOf) }
}

/** Of files that are not written yet, strictly; in a folder of its own, which is gone afterwards. */
export const examineNew = (files: readonly ScaffoldFile[]): readonly Diagnostic[] => {
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
