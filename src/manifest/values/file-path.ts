/**
 * The path of one file in a file contract (AIP-16), perhaps with tokens in it.
 *
 * Guarantees: what is parsed lies in the workspace whatever its tokens stand for, and is spelled as the kernel will have
 * it: no empty, `.` or `..` segment, no control character, no backslash, no wildcard. Tokens are filled in once; what they
 * stand for is never read again. Pure.
 * Does not: look at any file.
 */
import type { FilePath } from "../base-types.ts"
import { parseGlob, covers, type WorkspacePath } from "./globs.ts"

interface FileTokens {
  readonly runId: string
  readonly toolId: string
  /** `YYYY-MM-DD`, UTC */
  readonly isoDate: string
}

const TOKEN = /<(runId|workflowId|toolId|isoDate)>/g
export const FILE_TOKENS = ["<runId>", "<workflowId>", "<toolId>", "<isoDate>"] as const
/** What a token stands for at most: the id of a tool has 80 characters. */
const LONGEST = "x".repeat(80)
const MAX_SEGMENT_BYTES = 255
const MAX_BYTES = 4_095

type ParsedFilePath =
  | {
      readonly ok: true
      readonly path: FilePath /** something between `<` and `>` that is no token */
      readonly unknown: boolean
    }
  | { readonly ok: false; readonly problem: string; readonly fix: string }

const no = (problem: string, fix: string): ParsedFilePath => ({ ok: false, problem, fix })

export const parseFilePath = (text: string): ParsedFilePath => {
  const plain = text.replace(TOKEN, LONGEST)
  if (!plain.isWellFormed() || /[\u0000-\u001f\u007f-\u009f\u2028\u2029]/.test(plain))
    return no("has a control character or half a character in it", "write a name that can be read")
  if (plain.includes("\\")) return no("has a backslash", "write `/` between folders")
  if (plain.startsWith("/") || plain === "~" || plain.startsWith("~/") || plain.split("/").includes(".."))
    return no("leads out of the workspace", "write a path inside it, without `..`")
  if (/[*?]/.test(plain)) return no("is a pattern, and a contract names one file", "write one key for each file")
  if (plain.split("/").some((segment) => segment === "" || segment === "."))
    return no("has an empty or a `.` segment", "write single slashes between names, and none at the end")
  if (Buffer.byteLength(plain) > MAX_BYTES || plain.split("/").some((s) => Buffer.byteLength(s) > MAX_SEGMENT_BYTES))
    return no(`has a name longer than ${MAX_SEGMENT_BYTES} bytes, or is longer than ${MAX_BYTES}`, "use shorter names")
  return { ok: true, path: text as FilePath, unknown: /[<>]/.test(plain) }
}

/** One pass: what a token stands for is taken as it is. */
export const fillTokens = (path: FilePath, { runId, toolId, isoDate }: FileTokens): WorkspacePath => {
  const values: Readonly<Record<string, string>> = { runId, workflowId: toolId, toolId, isoDate }
  return path.replace(TOKEN, (token, name: string) => values[name] ?? token) as WorkspacePath
}

/** Every path that this may become, as a scope of `mutates`. */
export const scopeOfFile = (path: FilePath, toolId: string): string => {
  const filled = fillTokens(path, { runId: "\0", toolId, isoDate: "\0" })
  const escaped = filled.replace(/[ !?[\]{}]/g, (char) => `\\x${char.charCodeAt(0).toString(16)}`)
  return `/${escaped.replace(/\0+/g, "*")}`
}

/** Is every path that this may become declared by one of these scopes of the class workspace? */
export const isDeclaredFile = (path: FilePath, toolId: string, scopes: readonly string[]): boolean => {
  const narrow = parseGlob(scopeOfFile(path, toolId))
  return (
    narrow.ok &&
    scopes.some((scope) => {
      const wide = parseGlob(scope.startsWith("/") ? scope : `/${scope.replace(/^\.\//, "")}`)
      return wide.ok && covers(wide.glob, narrow.glob)
    })
  )
}

const folded = (path: string): string => path.normalize("NFC").toLowerCase()

/** Two of these that cannot both be files: the same name, on some disk at least, or one that the other is a folder of. */
export const clashing = <T extends { readonly path: string }>(files: readonly T[]): readonly [T, T] | undefined => {
  for (const [at, one] of files.entries())
    for (const other of files.slice(at + 1)) {
      const [a, b] = [folded(one.path), folded(other.path)]
      if (a === b || a.startsWith(`${b}/`) || b.startsWith(`${a}/`)) return [one, other]
    }
  return undefined
}
