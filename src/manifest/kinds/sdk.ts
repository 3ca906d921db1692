/**
 * Kind sdk (AIP-33): a package, how it is loaded, and the function of it that serves each contract.
 *
 * Guarantees: the package is a name of its manager's registry (or one that comes along), the module and the function
 * are names inside it and never lead out; what the client is made with holds nothing of any one call, and no literal
 * credential. Does not: load anything.
 */
import type { Context } from "../values/context.ts"
import { joinPath, shown } from "../values/diagnostics.ts"
import { type ExtractPath, readExtract } from "../templates/extract.ts"
import { defined, object, optionalNumber, optionalObject, optionalText, text } from "../values/fields.ts"
import { limits } from "../limits.ts"
import { beforeCalls, perCall, readTemplates, type TemplateTree } from "../templates/template-tree.ts"
import type { JsonObject } from "../base-types.ts"
import { parseRange } from "../schema/version.ts"
import { parsePackage } from "../values/package-name.ts"

export type PackageManager = "npm" | "pnpm" | "yarn" | "pip" | "poetry" | "cargo" | "go" | "local"
export type ImportStyle = "esm" | "cjs" | "python" | "rust-crate" | "go-module"
export interface SdkStreaming {
  readonly mode: "async-iterator" | "callback"
}

export interface SdkSpec {
  readonly packageManager: PackageManager
  /** without a version */
  readonly package: string
  /** an npm range, translated where it was written for pip (C-41); absent: what `version_check` says */
  readonly packageVersion?: string
  /** a module inside the package; absent: the language's default */
  readonly entrypoint?: string
  readonly importStyle: ImportStyle
  readonly streaming?: SdkStreaming
  /** what a client class is constructed with, beside the resolved secrets */
  readonly clientOptions?: TemplateTree
  /** the module mounts its tools by Amplifier's contract */
  readonly amplifier?: AmplifierSpec
}

export interface AmplifierSpec {
  /** what `mount` is given */
  readonly config: JsonObject
  /** what is kept of a result's output */
  readonly outputChars: number
  /** the debug events are told as well */
  readonly debug: boolean
}

export type SdkArguments =
  /** `fn(input)` (C-28) */
  | { readonly style: "input" }
  | { readonly style: "positional"; readonly values: readonly TemplateTree[] }
  | { readonly style: "object"; readonly value: TemplateTree }

export interface SdkCall {
  /** `default`, `createImage`, `images.create`, `Client.images.create`: names from the module inwards */
  readonly functionRef: readonly string[]
  readonly arguments: SdkArguments
  /** of the result, or of each chunk of a stream */
  readonly extract: ExtractPath
  readonly streaming?: SdkStreaming
  /** its name in a module of Amplifier's */
  readonly amplifierTool?: string
}

const REGISTRY = { npm: "npm", pnpm: "npm", yarn: "npm", pip: "pip", poetry: "pip", cargo: "cargo", go: "go" } as const
const STYLES: Readonly<Record<PackageManager, readonly ImportStyle[]>> = {
  npm: ["esm", "cjs"],
  pnpm: ["esm", "cjs"],
  yarn: ["esm", "cjs"],
  pip: ["python"],
  poetry: ["python"],
  cargo: ["rust-crate"],
  go: ["go-module"],
  local: ["esm", "cjs", "python", "rust-crate", "go-module"],
}
const MOST_POSITIONAL = 5
const REFLECTIVE = ["__proto__", "prototype", "constructor"]
const CREDENTIAL = /(?:token|secret|password|api_?key)$/i

const climbs = (path: string): boolean => path.startsWith("/") || path.split("/").some((part) => part === "..")

function readPackage(front: JsonObject, manager: PackageManager, context: Context): { name: string; version?: string } {
  const written = text(front, "package")
  const named =
    manager === "local"
      ? climbs(written) || written.includes(":")
        ? undefined
        : { name: written }
      : parsePackage(REGISTRY[manager], written)
  if (named !== undefined) return named
  context.report.error(
    "sdk-package",
    "package",
    `\`${shown(written, 60)}\` is not the name of a package of ${manager}`,
    manager === "local"
      ? "write a name or a path inside the manifest's folder"
      : "write the name that its registry knows",
  )
  return { name: written }
}

function readVersion(
  front: JsonObject,
  inName: string | undefined,
  manager: PackageManager,
  context: Context,
): string | undefined {
  const written = optionalText(front, "package_version") ?? inName
  // Versions of Go modules and of what comes along are compared by nobody here.
  if (written === undefined || manager === "go" || manager === "local") return written
  const range = parseRange(written)
  if (range.ok) return range.range
  context.report.error("version-range", "package_version", range.message, range.fix)
  return undefined
}

function readEntrypoint(front: JsonObject, context: Context): string | undefined {
  const entry = optionalText(front, "entrypoint")
  if (entry === undefined) return undefined
  if (climbs(entry) || /[\u0000-\u001f:\\?#%]/.test(entry) || entry.endsWith("/"))
    context.report.error(
      "path-escape",
      "entrypoint",
      `\`${shown(entry)}\` leads out of the package`,
      "write a module inside it, as in `dist/index.js`",
    )
  return entry
}

function readImportStyle(front: JsonObject, manager: PackageManager, context: Context): ImportStyle {
  const fitting = STYLES[manager]
  const style = (optionalText(front, "import_style") as ImportStyle | undefined) ?? fitting[0] ?? "esm"
  if (!fitting.includes(style))
    context.report.error(
      "sdk-import-style",
      "import_style",
      `\`${style}\` does not load packages of ${manager}`,
      `write \`import_style: ${fitting[0] ?? "esm"}\``,
    )
  return style
}

function readClientOptions(front: JsonObject, context: Context): TemplateTree | undefined {
  const options = optionalObject(front, "client_options")
  if (options === undefined) return undefined
  for (const [key, value] of Object.entries(options))
    if (CREDENTIAL.test(key) && typeof value === "string" && value !== "" && !value.includes("${"))
      context.report.error(
        "plaintext-credential",
        joinPath("client_options", key),
        `\`${shown(key, 40)}\` gets a literal value in a manifest`,
        "write `${secrets.NAME}`, list the name in `auth.state.env` and keep the value in the vault",
      )
  return readTemplates(options, "client_options", beforeCalls, context)
}

const readStreaming = (block: JsonObject | undefined): SdkStreaming | undefined => {
  const mode = block === undefined ? undefined : optionalText(block, "mode")
  return mode === undefined ? undefined : { mode: mode as SdkStreaming["mode"] }
}

const readAmplifier = (block: JsonObject | undefined): AmplifierSpec | undefined =>
  block === undefined
    ? undefined
    : {
        config: optionalObject(block, "config") ?? {},
        outputChars: optionalNumber(block, "output_chars") ?? limits.amplifierOutputChars,
        debug: block["debug"] === true,
      }

/** A module of Amplifier's is Python, and lies beside its manifest. */
function checkAmplifier(spec: SdkSpec, { report }: Context): SdkSpec {
  if (spec.amplifier !== undefined && (spec.importStyle !== "python" || spec.packageManager !== "local"))
    report.error(
      "sdk-amplifier",
      "amplifier",
      "a module of Amplifier's is loaded from beside its manifest, by Python",
      "write `package_manager: local` and `import_style: python`",
    )
  return spec
}

export function readSdk(front: JsonObject, context: Context): SdkSpec {
  const packageManager = text(front, "package_manager") as PackageManager
  const named = readPackage(front, packageManager, context)
  const spec: SdkSpec = defined({
    packageManager,
    package: named.name,
    packageVersion: readVersion(front, named.version, packageManager, context),
    entrypoint: readEntrypoint(front, context),
    importStyle: readImportStyle(front, packageManager, context),
    streaming: readStreaming(optionalObject(front, "streaming")),
    clientOptions: readClientOptions(front, context),
    amplifier: readAmplifier(optionalObject(front, "amplifier")),
  })
  return checkAmplifier(spec, context)
}

/** `_0` … `_4` are positions, all other keys are names; never both. */
function readArguments(block: JsonObject, path: string, context: Context): SdkArguments {
  const template = optionalObject(block, "args_template")
  if (template === undefined) return { style: "input" }
  const keys = Object.keys(template)
  const positions = keys.filter((key) => /^_\d+$/.test(key))
  const value = readTemplates(object(block, "args_template"), path, perCall, context)
  if (positions.length === 0 || value.type !== "object") return { style: "object", value }
  const wanted = Array.from({ length: keys.length }, (_, i) => `_${i}`)
  if (keys.length > MOST_POSITIONAL || wanted.some((key) => !keys.includes(key)))
    context.report.error(
      "sdk-arguments",
      path,
      `positions are \`_0\` to \`_${MOST_POSITIONAL - 1}\`, without a gap and without names beside them`,
      "number all of them from `_0`, or name all of them",
    )
  return {
    style: "positional",
    values: wanted.flatMap((key) => value.entries.flatMap((entry) => (entry.key === key ? [entry.value] : []))),
  }
}

export function readSdkCall(block: JsonObject, path: string, spec: SdkSpec, tool: string, context: Context): SdkCall {
  const functionRef = text(block, "function_ref").split(".")
  if (functionRef.some((name) => REFLECTIVE.includes(name)))
    context.report.error(
      "bad-value",
      `${path}.function_ref`,
      `\`${shown(functionRef.join("."), 60)}\` leads to the machinery of objects`,
      "write a dotted name such as `Client.images.create`",
    )
  return defined({
    functionRef,
    arguments: readArguments(block, `${path}.args_template`, context),
    extract: readExtract(optionalText(block, "result_extract"), `${path}.result_extract`, context),
    streaming: readStreaming(optionalObject(block, "streaming")) ?? spec.streaming,
    amplifierTool: spec.amplifier === undefined ? undefined : (optionalText(block, "amplifier_tool") ?? tool),
  })
}
