/**
 * `inputsFiles` and `outputsFiles` (AIP-16) → typed file contracts.
 *
 * Guarantees: a key is one name of a folder, since it becomes one; a path lies inside the workspace whatever its tokens
 * stand for. Does not: stage or sync anything.
 */
import type { FileContract, FileContracts, JsonObject } from "../base-types.ts"
import type { Context } from "../values/context.ts"
import { joinPath, shown } from "../values/diagnostics.ts"
import { defined, object, optionalObject, optionalText, text } from "../values/fields.ts"

const KEY = /^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$/
const TOKENS = ["<runId>", "<workflowId>", "<toolId>", "<isoDate>"]

function checkPath(path: string, at: string, context: Context): void {
  const plain = TOKENS.reduce((rest, token) => rest.replaceAll(token, "x"), path)
  if (plain.startsWith("/") || plain.split(/[/\\]/).includes("..") || /[\u0000-\u001f]/.test(plain))
    context.report.error(
      "path-escape",
      at,
      `\`${shown(path)}\` leads out of the workspace`,
      "write a path inside it, without `..`",
    )
  else if (/[<>]/.test(plain))
    context.report.warn(
      "file-token",
      at,
      `\`${shown(path)}\` has a token that is not known; it is taken as it stands`,
      `use ${TOKENS.join(", ")}`,
    )
}

function readContract(
  entry: JsonObject,
  key: string,
  at: string,
  mode: FileContract["mode"],
  context: Context,
): FileContract {
  if (!KEY.test(key))
    context.report.error(
      "bad-value",
      at,
      `\`${shown(key, 40)}\` is not the name of a folder`,
      "use letters, digits, `_`, `-` and `.`",
    )
  const path = text(entry, "path")
  checkPath(path, `${at}.path`, context)
  return defined({
    path,
    mode: (optionalText(entry, "mode") as FileContract["mode"] | undefined) ?? mode,
    contentType: optionalText(entry, "contentType"),
  })
}

/** What comes in is read, what goes out is written, unless the contract says otherwise. */
export function readFileContracts(
  front: JsonObject,
  name: "inputsFiles" | "outputsFiles",
  context: Context,
): FileContracts | undefined {
  const block = optionalObject(front, name)
  if (block === undefined) return undefined
  return Object.fromEntries(
    Object.keys(block).map((key) => [
      key,
      readContract(object(block, key), key, joinPath(name, key), name === "inputsFiles" ? "ro" : "rw", context),
    ]),
  )
}
