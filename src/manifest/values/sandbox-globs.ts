/**
 * Globs of `sandbox.fs` (C-50): in the one grammar, from one of three places.
 *
 * A glob is relative to the workspace, starts with `~/` (the sandbox's home) or is absolute inside the sandbox.
 * Guarantees of `canonicalGlob`: the part after the place parses as a glob; no leading `./`, no trailing `/`.
 * `globCovers(wide, narrow)` is conservative: true only if every path that `narrow` matches is matched by `wide`.
 */
import { covers, parseGlob } from "./globs.ts"

type GlobResult =
  | { readonly ok: true; readonly glob: string }
  | { readonly ok: false; readonly message: string; readonly fix: string }

interface Placed {
  readonly from: "" | "~" | "/"
  readonly rest: string
}
const placed = (text: string): Placed => {
  if (text === "~" || text.startsWith("~/")) return { from: "~", rest: text.slice(2) }
  if (text.startsWith("/")) return { from: "/", rest: text.slice(1) }
  return { from: "", rest: text }
}

export function canonicalGlob(text: string): GlobResult {
  const fix =
    "write a path relative to the workspace (`notes/**`), from the home (`~/.config/app/**`) or absolute in the sandbox"
  const bad = (message: string): GlobResult => ({ ok: false, message, fix })
  if (text === "" || text.trim() !== text) return bad("the path is empty or has blanks around it")
  if (/[\u0000-\u001f\u007f]/.test(text)) return bad("the path holds a control character")
  if (text.startsWith("~") && text !== "~" && !text.startsWith("~/")) return bad("`~user` is not known; only `~/` is")
  const plain = text === "." || text === "./" ? "**" : text.replace(/^(?:\.\/)+/, "")
  const glob = plain.endsWith("/") ? `${plain}**` : plain
  const { rest } = placed(glob)
  const parsed = parseGlob(rest === "" ? "/" : rest)
  return parsed.ok ? { ok: true, glob } : bad(parsed.message)
}

/** Of two canonical globs. */
export function globCovers(wide: string, narrow: string): boolean {
  const [one, other] = [placed(wide), placed(narrow)]
  if (one.from !== other.from) return false
  // `~` and `/` themselves are what everything below them lies in, and are named by themselves alone.
  if (one.rest === "" || other.rest === "") return one.rest === other.rest
  const [wideGlob, narrowGlob] = [parseGlob(one.rest), parseGlob(other.rest)]
  return wideGlob.ok && narrowGlob.ok && covers(wideGlob.glob, narrowGlob.glob)
}
