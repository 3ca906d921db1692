/**
 * What `caisson import` asks of a format: the AIP manifests that its tools amount to.
 *
 * A format whose tools are files is read by the loader's own plug-in. One whose tools have to be run to be known brings an
 * importer of its own, which answers with the same.
 */
import type { Annotations } from "../../../manifest/formats/annotations.ts"
import type { Diagnostic, JsonObject, ManifestKind } from "../../../manifest/types.ts"

export interface ImportedManifest {
  /** the tool that it belongs to: the folder's name */
  readonly id: string
  readonly doctype: ManifestKind
  readonly front: JsonObject
}
interface Imported {
  readonly manifests: readonly ImportedManifest[]
  /** what lies beside them: into the folder of `id` */
  readonly copies?: readonly { readonly id: string; readonly name: string; readonly from: string }[]
  readonly diagnostics: readonly Diagnostic[]
}
export type Importer = (
  paths: readonly string[],
  word: { readonly annotations: Annotations },
) => Imported | Promise<Imported>
