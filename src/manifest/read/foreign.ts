/**
 * A file of another format → the AIP front matter that it amounts to, each part under a name of its own.
 *
 * Guarantees: what is said of a part is said of the file that was written, at the field that was written there; a file that
 * is refused still holds its id, so that nothing stands in for it.
 */
import { sep } from "node:path"
import type { Annotation, Annotations } from "../formats/annotations.ts"
import { type Document, type Format, partName } from "../formats/format.ts"
import { createReport } from "../values/diagnostics.ts"
import { readFrontmatter } from "./frontmatter.ts"
import type { Diagnostic, JsonObject, LoadResult, ManifestKind, ManifestMode } from "../types.ts"

/** What the operator says of tools of formats that cannot say it themselves. */
export interface Annotating {
  readonly annotations?: Annotations
  /** folders that the operator vouches for: for files of others no annotation holds */
  readonly vouched?: readonly string[]
}

export interface ForeignPart {
  readonly file: string
  readonly kind: ManifestKind
  readonly front: JsonObject
  readonly from: Document["from"]
}

type Foreign =
  | { readonly ok: true; readonly parts: readonly ForeignPart[]; readonly said: readonly Diagnostic[] }
  | { readonly ok: false; readonly result: Extract<LoadResult, { ok: false }> }

const annotationFor =
  (file: string, { annotations = {}, vouched = [] }: Annotating) =>
  (id: string): Annotation | undefined =>
    Object.hasOwn(annotations, id) && vouched.some((folder) => file === folder || file.startsWith(folder + sep))
      ? annotations[id]
      : undefined

export const readForeign = (
  format: Format,
  file: string,
  bytes: Uint8Array,
  options: Annotating & { readonly mode: ManifestMode },
): Foreign => {
  const report = createReport(file)
  const annotation = annotationFor(file, options)
  const { id, documents } = format.read(bytes, { report, mode: options.mode, frontmatter: readFrontmatter, annotation })
  if (documents === undefined || report.failed) {
    const claims = { ...(id === undefined ? {} : { id }), tools: [] }
    return { ok: false, result: { ok: false, file, kind: "tool", diagnostics: report.diagnostics, claims } }
  }
  const parts = documents.map(({ doctype, front, from }) => ({
    file: partName(file, doctype),
    kind: doctype,
    front,
    from,
  }))
  return { ok: true, parts, said: report.diagnostics }
}

/** `metadata.http.endpoint` of the driver that was made → `transport.endpoint` of the file. */
const writtenPath = (path: string, from: Document["from"]): string => {
  for (const [made, written] of from)
    if (made === "" || path === made) return written
    else if (path.startsWith(`${made}.`) || path.startsWith(`${made}[`)) return `${written}${path.slice(made.length)}`
  return path
}

/** As it is said to whoever wrote the file. */
export const asWritten = (
  diagnostics: readonly Diagnostic[],
  file: string,
  from: Document["from"],
): readonly Diagnostic[] => diagnostics.map((each) => ({ ...each, file, path: writtenPath(each.path, from) }))
