/** The formats that `caisson import` knows, by the word that is typed. */
import { findManifests } from "../../../manifest/read/find.ts"
import { readForeign } from "../../../manifest/read/foreign.ts"
import { withPlaces } from "../../../manifest/read/places.ts"
import type { Format } from "../../../manifest/formats/format.ts"
import { formatOf, formats } from "../../../manifest/formats/formats.ts"
import { createReport } from "../../../manifest/values/diagnostics.ts"
import type { Diagnostic } from "../../../manifest/types.ts"
import type { ImportedManifest, Importer } from "./importer.ts"

/** Whoever imports vouches for what they name: what comes of it is theirs to read and to place. */
const fromFiles =
  (format: Format): Importer =>
  (paths, { annotations }) => {
    const found = findManifests(paths)
    const manifests: ImportedManifest[] = []
    const diagnostics: Diagnostic[] = found.problems.flatMap((problem) => problem.diagnostics)
    for (const [file, read] of found.files) {
      if (formatOf(file) !== format) {
        if (paths.includes(file)) diagnostics.push(notOfIt(file, format))
        continue
      }
      const bytes = read()
      if (typeof bytes === "string") continue
      const foreign = readForeign(format, file, bytes, { mode: "compat", annotations, vouched: [file] })
      diagnostics.push(...(foreign.ok ? foreign.said : foreign.result.diagnostics))
      if (!foreign.ok) continue
      const id = foreign.parts.find(({ kind }) => kind === "tool")?.front["id"]
      if (typeof id === "string")
        manifests.push(...foreign.parts.map(({ kind, front }) => ({ id, doctype: kind, front })))
    }
    // What was found as it was read: what was refused may be a pipe, or a link to what never ends.
    return { manifests, diagnostics: withPlaces(diagnostics, (file) => found.files.get(file)?.()) }
  }

const notOfIt = (file: string, { title, files }: Format): Diagnostic => {
  const report = createReport(file)
  report.error("unknown-file", "", `this is not the name of a file of ${title}`, `name it \`${files}\``)
  return report.diagnostics[0] as Diagnostic
}

/** Loaded when it is asked for: what has to be run to be known brings a host's parts with it. */
const amplifier: Importer = async (...given) => (await import("./amplifier.ts")).amplifierImporter(...given)

export const importers: Readonly<Record<string, Importer>> = {
  ...Object.fromEntries(formats.map((format) => [format.id, fromFiles(format)])),
  amplifier,
}
