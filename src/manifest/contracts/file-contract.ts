/**
 * `inputsFiles` and `outputsFiles` (AIP-16) → typed file contracts, and what they make of the rest of a TOOL.md.
 *
 * Guarantees: a key is one plain name, since a file gets it; a path lies inside the workspace whatever its tokens stand
 * for; no two outputs can meet at one place. What a tool gives out is among its `mutates`, so that whatever asks before
 * changes asks before these. The one reserved input is text, and every input schema takes it where there are files.
 * Does not: stage or sync anything.
 */
import type {
  FileContract,
  FileContracts,
  FilePath,
  JsonObject,
  JsonValue,
  MutateScope,
  ToolContract,
} from "../base-types.ts"
import type { Context } from "../values/context.ts"
import { joinPath, type Report, shown } from "../values/diagnostics.ts"
import { defined, isObject, object, optionalObject, optionalText, text, texts } from "../values/fields.ts"
import { clashing, FILE_TOKENS, fillTokens, isDeclaredFile, parseFilePath, scopeOfFile } from "../values/file-path.ts"

/** The input that says where the files are, and where that is inside a sandbox. */
export const FS_ROOT_INPUT = "_workflowFsRoot"
export const FS_ROOT = "/tmp/caisson-files"

type Block = "inputsFiles" | "outputsFiles"
const KEY = /^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$/
const CONTENT_TYPE = /^[\x21-\x7e]+(?: [\x21-\x7e]+)*$/

function readPath(written: string, at: string, context: Context): FilePath {
  const { report, mode } = context
  const parsed = parseFilePath(written)
  if (!parsed.ok) {
    report.error("path-escape", at, `\`${shown(written)}\` ${parsed.problem}`, parsed.fix)
    return written as FilePath
  }
  if (parsed.unknown) {
    const say = mode === "strict" ? report.error : report.lenient
    const taken = mode === "strict" ? "" : "; it is taken as it stands"
    say(
      "file-token",
      at,
      `\`${shown(written)}\` has a token that is not known${taken}`,
      `use ${FILE_TOKENS.join(", ")}; values of the input are never part of a path`,
    )
  }
  return parsed.path
}

function readContract(entry: JsonObject, key: string, block: Block, context: Context): FileContract {
  const at = joinPath(block, key)
  if (!KEY.test(key))
    context.report.error(
      "bad-value",
      at,
      `\`${shown(key, 40)}\` is not a plain name, and a file gets it`,
      "use letters, digits, `_`, `-` and `.`",
    )
  const contentType = optionalText(entry, "contentType")
  if (contentType !== undefined && !CONTENT_TYPE.test(contentType))
    context.report.error(
      "bad-value",
      `${at}.contentType`,
      `\`${shown(contentType, 40)}\` is not a media type`,
      "write one such as `text/csv`",
    )
  // What comes in is read, what goes out is written, unless the contract says otherwise.
  const mode =
    (optionalText(entry, "mode") as FileContract["mode"] | undefined) ?? (block === "inputsFiles" ? "ro" : "rw")
  return defined({ path: readPath(text(entry, "path"), `${at}.path`, context), mode, contentType })
}

const readBlock = (front: JsonObject, block: Block, context: Context): FileContracts | undefined => {
  const entries = optionalObject(front, block)
  if (entries === undefined) return undefined
  return Object.fromEntries(
    Object.keys(entries).map((key) => [key, readContract(object(entries, key), key, block, context)]),
  )
}

const checkClashes = (outputs: FileContracts, toolId: string, report: Report): void => {
  const filled = Object.entries(outputs).map(([key, { path }]) => ({
    key,
    path: fillTokens(path, { runId: "<runId>", toolId, isoDate: "<isoDate>" }),
  }))
  const clash = clashing(filled)
  if (clash === undefined) return
  const [one, other] = clash
  report.error(
    "file-clash",
    `${joinPath("outputsFiles", other.key)}.path`,
    `\`${shown(other.path)}\` and \`${shown(one.path)}\` (\`${one.key}\`) cannot both be files`,
    "give each output a path of its own",
  )
}

/** A file that goes in and out under one name is changed in its place. */
const checkInPlace = (inputs: JsonObject, outputs: JsonObject, report: Report): void => {
  for (const key of Object.keys(outputs)) {
    if (!Object.hasOwn(inputs, key) || object(inputs, key)["mode"] !== "ro") continue
    report.error(
      "file-clash",
      `${joinPath("inputsFiles", key)}.mode`,
      `\`${shown(key, 40)}\` is read-only as an input and an output as well`,
      "write `mode: rw`, or give the output another key",
    )
  }
}

export function readFiles(front: JsonObject, context: Context): Pick<ToolContract, Block> {
  const inputsFiles = readBlock(front, "inputsFiles", context)
  const outputsFiles = readBlock(front, "outputsFiles", context)
  if (outputsFiles !== undefined && !context.report.failed) {
    checkClashes(outputsFiles, text(front, "id"), context.report)
    checkInPlace(object(front, "inputsFiles"), object(front, "outputsFiles"), context.report)
  }
  return defined({ inputsFiles, outputsFiles })
}

export const hasFiles = ({ inputsFiles = {}, outputsFiles = {} }: Pick<ToolContract, Block>): boolean =>
  Object.keys(inputsFiles).length + Object.keys(outputsFiles).length > 0

/** The schema of the input with the reserved one in it, as its author has it or as the host gives it. */
export function withFsRoot(inputs: JsonObject, report: Report): JsonObject {
  const properties = object(inputs, "properties")
  const own = properties[FS_ROOT_INPUT]
  if (own !== undefined) {
    if (own !== true && !(isObject(own) && [undefined, "string"].includes(own["type"] as string | undefined)))
      report.error(
        "reserved-input",
        `inputs.properties.${FS_ROOT_INPUT}`,
        `\`${FS_ROOT_INPUT}\` is where the host puts the tool's files, and is text`,
        `write \`${FS_ROOT_INPUT}: { type: string }\`, or leave it out`,
      )
    return inputs
  }
  const given = {
    type: "string",
    readOnly: true,
    default: FS_ROOT,
    description: "set by the host: the folder with the tool's files, by their keys",
  }
  return { ...inputs, properties: { ...properties, [FS_ROOT_INPUT]: given } }
}

const declaredHere = (mutates: readonly string[]): readonly string[] =>
  mutates.flatMap((entry) => (entry.startsWith("workspace:") ? [entry.slice("workspace:".length)] : []))

/** Scopes for those outputs that `mutates` does not have. */
export const missingScopes = (
  outputs: Readonly<Record<string, { readonly path: FilePath }>>,
  toolId: string,
  mutates: readonly string[],
): readonly { readonly key: string; readonly scope: string }[] =>
  Object.entries(outputs)
    .filter(([, { path }]) => !isDeclaredFile(path, toolId, declaredHere(mutates)))
    .map(([key, { path }]) => ({ key, scope: `workspace:${scopeOfFile(path, toolId)}` }))

/** `mutates` with what goes out as files, before approval is settled; front matter to front matter. */
export function declareOutputs(front: JsonObject, context: Context): JsonObject {
  const { report, mode } = context
  const { id, mutates = [], outputsFiles } = front
  if (typeof id !== "string" || !Array.isArray(mutates) || !isObject(outputsFiles)) return front
  const parsed = Object.entries(outputsFiles).flatMap(([key, entry]) => {
    const path = isObject(entry) && typeof entry["path"] === "string" ? parseFilePath(entry["path"]) : undefined
    return path?.ok === true ? [[key, { path: path.path }] as const] : []
  })
  const missing = missingScopes(Object.fromEntries(parsed), id, texts(front, "mutates"))
  if (missing.length === 0) return front
  for (const { key, scope } of missing) {
    const taken = mode === "strict" ? "" : "; it is taken to be there"
    const say = mode === "strict" ? report.error : report.lenient
    say(
      "output-undeclared",
      `${joinPath("outputsFiles", key)}.path`,
      `the file is an effect that \`mutates\` does not have${taken}`,
      `add \`${scope}\` to \`mutates\``,
    )
  }
  const declared = mutates as readonly JsonValue[]
  return mode === "strict" ? front : { ...front, mutates: [...declared, ...missing.map(({ scope }) => scope)] }
}

/** The same for a tool that has its effects from its action. */
export const withOutputScopes = (mutates: readonly MutateScope[], tool: ToolContract): readonly MutateScope[] => {
  const missing = missingScopes(
    tool.outputsFiles ?? {},
    tool.id,
    mutates.map((each) => each.text),
  )
  return [
    ...mutates,
    ...missing.map(({ scope }) => ({ class: "workspace", scope: scope.slice("workspace:".length), text: scope })),
  ]
}
