/**
 * `run` (AIP-26) → the one file of a bundle whose function is called.
 *
 * Guarantees: a file of Node's or Python's, by its path inside the bundle, whether it is written as a path or as the plain
 * command that would start it (`python tool.py`, `["node", "tool.js"]`). Any other command line has no meaning here: what
 * is called is a function, with its input as an argument. Pure.
 */
import { isObject } from "../values/fields.ts"
import type { ImportStyle } from "../kinds/sdk.ts"
import type { JsonValue } from "../base-types.ts"

const STYLES: Readonly<Record<string, ImportStyle>> = {
  ts: "esm",
  mts: "esm",
  cts: "cjs",
  js: "esm",
  mjs: "esm",
  cjs: "cjs",
  py: "python",
}
const STARTERS: Readonly<Record<string, readonly string[]>> = {
  node: ["ts", "mts", "cts", "js", "mjs", "cjs"],
  python: ["py"],
  python3: ["py"],
}

type Run =
  | { readonly ok: true; readonly file: string; readonly style: ImportStyle }
  | { readonly ok: false; readonly why: string }

/** A path inside a bundle, in its one spelling; undefined where it leads out or is none. */
export const bundlePath = (text: string): string | undefined => {
  if (text.length > 1024 || text.startsWith("/") || /[\u0000-\u001f\u007f\\:?#%]/.test(text)) return undefined
  const parts = text.split("/").filter((part) => part !== "" && part !== ".")
  return parts.includes("..") || parts.length === 0 ? undefined : parts.join("/")
}

const endingOf = (file: string): string => /\.([a-z]+)$/.exec(file)?.[1] ?? ""

const fileRun = (text: string): Run => {
  const file = bundlePath(text)
  if (file === undefined) return { ok: false, why: "it leads out of the bundle" }
  const style = Object.hasOwn(STYLES, endingOf(file)) ? STYLES[endingOf(file)] : undefined
  return style === undefined ? { ok: false, why: "it is no file of Node's or Python's" } : { ok: true, file, style }
}

const wordsRun = (words: readonly string[]): Run => {
  const [starter = "", file = "", ...rest] = words
  const fitting = Object.hasOwn(STARTERS, starter) ? STARTERS[starter] : undefined
  if (fitting === undefined || rest.length > 0 || !fitting.includes(endingOf(file)))
    return { ok: false, why: "it is a command line, and this host calls a function of one file" }
  return fileRun(file)
}

const isTexts = (value: JsonValue | undefined): value is readonly string[] =>
  Array.isArray(value) && value.length > 0 && value.every((each) => typeof each === "string")

export const readRun = (value: JsonValue | undefined): Run => {
  if (typeof value === "string") {
    const words = value.trim().split(/\s+/)
    return words.length > 1 ? wordsRun(words) : fileRun(value.trim())
  }
  if (isTexts(value)) return wordsRun(value)
  if (isObject(value)) {
    const { file, exec, shell } = value
    if (typeof file === "string") return fileRun(file)
    if (isTexts(exec)) return wordsRun(exec)
    if (typeof shell === "string") return wordsRun(shell.trim().split(/\s+/))
  }
  return { ok: false, why: "it says no file" }
}
