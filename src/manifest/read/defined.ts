/** A manifest that a program defined in code: data, read and checked as files are, and trusted no more. */
import type { JsonObject, ManifestKind } from "../base-types.ts"
import type { DriverCode } from "../driver-code.ts"

export interface DefinedManifest {
  readonly doctype: ManifestKind
  /** the module, and which of its definitions this is; what diagnostics name */
  readonly file: string
  /** front matter as a manifest has it */
  readonly front: JsonObject
  readonly code?: DriverCode
}
