/**
 * What the loader asks of a format of tools: is this file yours, and what does it say in the words of AIP?
 *
 * Guarantees: a format makes front matter, never contracts. What it makes goes through the same checks as a TOOL.md or
 * DRIVER.md that somebody wrote, so that no format can say more than those can. Pure.
 */
import type { JsonObject, ManifestKind, ManifestMode } from "../base-types.ts"
import type { Report } from "../values/diagnostics.ts"
import type { Annotation } from "./annotations.ts"

/** One field of a format, and what becomes of it: the table in docs/formats.md is made of these. */
export interface FieldRow {
  /** dotted, `[]` for each of a list, `*` for any key */
  readonly field: string
  readonly goes: string
}

/** One AIP manifest that a foreign file amounts to. */
export interface Document {
  readonly doctype: ManifestKind
  readonly front: JsonObject
  /** where in the written file a field of the front matter comes from, by its beginning; the first that fits counts */
  readonly from: readonly (readonly [made: string, written: string])[]
}

export interface FormatContext {
  readonly report: Report
  readonly mode: ManifestMode
  /** of a file that begins as a manifest does */
  readonly frontmatter: (bytes: Uint8Array, report: Report) => JsonObject | undefined
  /** what the operator says of a tool, by its AIP id; only for folders that the operator vouches for */
  readonly annotation: (id: string) => Annotation | undefined
}

export interface Translation {
  /** the AIP id, where one could be read: holds it also where the rest is refused */
  readonly id?: string
  /** absent: refused, with the reason in the report */
  readonly documents?: readonly Document[]
}

export interface Format {
  readonly id: string
  readonly title: string
  /** how its files are called, for messages */
  readonly files: string
  owns(name: string): boolean
  readonly fields: readonly FieldRow[]
  read(bytes: Uint8Array, context: FormatContext): Translation
}

/** The parts that one foreign file has beside its tool, as they are named after it. */
const PARTS = ["driver", "secrets"] as const
export const partName = (file: string, doctype: ManifestKind): string =>
  doctype === "tool" ? file : `${file}#${doctype}`
/** The file itself, of a part or of anything else. */
export const writtenFile = (file: string): string => {
  const part = PARTS.find((each) => file.endsWith(`.tool.md#${each}`) || file.endsWith(`.tool.json#${each}`))
  return part === undefined ? file : file.slice(0, -part.length - 1)
}
