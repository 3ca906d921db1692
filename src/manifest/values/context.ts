/** What a reader of one manifest knows beside its front matter. */
import type { Report } from "./diagnostics.ts"
import { digestOf } from "./digest.ts"
import type { DriverCode } from "../driver-code.ts"
import type { JsonObject, ManifestMode, ManifestSource, OutputFormat, ToolContract } from "../base-types.ts"

/** What the older AIP-29 form kept in a subcommand's TOOL.md and belongs to the driver (C-4, C-5). */
export interface Lifted {
  readonly argv?: readonly string[]
  readonly sandbox?: JsonObject
  readonly outputFormat?: OutputFormat
}

export interface LinkedTool {
  readonly contract: ToolContract
  readonly lifted: Lifted
}

/** Leads from a path written in a driver to the tool found there; only files that were discovered can be reached. */
export interface Links {
  tool(
    fromFile: string,
    ref: string,
  ):
    | { readonly found: "tool"; readonly tool: LinkedTool }
    | { readonly found: "invalid" }
    | { readonly found: "nothing" }
  /** the ACTION.md that a path written in a tool leads to */
  action(fromFile: string, ref: string): string | undefined
  /** what the RUNNER.md says that a name or path written in a driver leads to */
  runner(fromFile: string, ref: string): JsonObject | undefined
  /** the CODE.md that a path written in a manifest leads to */
  code(fromFile: string, ref: string): { readonly file: string; readonly front: JsonObject } | undefined
  /** the AUTH.md that a path written in a driver leads to, or, without one, that lies beside it */
  provider(
    fromFile: string,
    ref?: string,
  ): { readonly file: string; readonly front: JsonObject | undefined } | undefined
  /** where a path of files is looked for: beside the manifest, then from the root of its folder of manifests */
  bases(fromFile: string): readonly string[]
  /** tools that name this implementation as theirs by default */
  defaultFor(id: string): readonly Pick<ToolContract, "id" | "version">[]
  /** is this TOOL.md named in the `commands` of a CLI.md? */
  isSubcommand(file: string): boolean
}

export interface Context {
  readonly file: string
  readonly mode: ManifestMode
  readonly report: Report
  /** absent when one file is read on its own */
  readonly links?: Links
  /** a driver's own functions, where a program defined it in code */
  readonly code?: DriverCode
}

export const sourceOf = (context: Context, front: JsonObject): ManifestSource => ({
  file: context.file,
  mode: context.mode,
  digest: digestOf(front),
  leniencies: [...context.report.leniencies],
})

/** Does a reference name a file, not an id? (C-35) */
export const isPathRef = (ref: string): boolean => /^\.{0,2}\//.test(ref) || ref.endsWith(".md")
