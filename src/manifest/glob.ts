/**
 * Path globs of `sandbox.fs` (C-50): `*` within one segment, `**` as a whole segment for any number of them.
 *
 * A glob is relative to the workspace, starts with `~/` (the sandbox's home) or is absolute inside the sandbox.
 * Guarantees of `canonicalGlob`: no `.` or `..` or empty segments, no leading `./`, no backslash.
 * `globCovers(wide, narrow)` is conservative: true only if every path that `narrow` matches is matched by `wide`.
 */
export type GlobResult =
  | { readonly ok: true; readonly glob: string }
  | { readonly ok: false; readonly message: string; readonly fix: string }

export function canonicalGlob(text: string): GlobResult {
  const fix =
    "write a path relative to the workspace (`notes/**`), from the home (`~/.config/app/**`) or absolute in the sandbox"
  const bad = (message: string): GlobResult => ({ ok: false, message, fix })
  if (text === "" || text.trim() !== text) return bad("the path is empty or has blanks around it")
  if (/[\u0000-\u001f\u007f\\]/.test(text)) return bad("the path holds a control character or a backslash")
  if (/[[\]{}?!]/.test(text)) return bad("only `*` and `**` are wildcards here")
  if (text.startsWith("~") && text !== "~" && !text.startsWith("~/")) return bad("`~user` is not known; only `~/` is")
  const plain = text === "." || text === "./" ? "**" : text.replace(/^(?:\.\/)+/, "")
  const trimmed = plain.endsWith("/") ? `${plain}**` : plain
  const segments = trimmed.split("/")
  if (segments.includes("..")) return bad("`..` could lead out of the folder")
  if (segments.some((s, i) => s === "." || (s === "" && i > 0))) return bad("the path has an empty or `.` segment")
  if (segments.some((s) => s.includes("**") && s !== "**")) return bad("`**` must be a whole segment")
  return { ok: true, glob: trimmed }
}

function segmentCovers(wide: string, narrow: string): boolean {
  if (wide === narrow || wide === "*") return true
  if (!wide.includes("*") || narrow.includes("*")) return false
  const parts = wide.split("*").map((part) => part.replaceAll(/[.+^$()|]/g, "\\$&"))
  return new RegExp(`^${parts.join("[^/]*")}$`).test(narrow)
}

function coversFrom(wide: readonly string[], narrow: readonly string[]): boolean {
  // reach[j]: wide[0..i) can cover narrow[0..j); one row per segment keeps this quadratic at worst
  let reach = [true, ...narrow.map(() => false)]
  for (const segment of wide) {
    const next = reach.map(() => false)
    for (let j = 0; j <= narrow.length; j++) {
      if (segment === "**") next[j] = reach[j] === true || (j > 0 && next[j - 1] === true)
      else if (j > 0)
        next[j] = reach[j - 1] === true && narrow[j - 1] !== "**" && segmentCovers(segment, narrow[j - 1] ?? "")
    }
    reach = next
  }
  return reach[narrow.length] === true
}

export function globCovers(wide: string, narrow: string): boolean {
  const anchor = (glob: string): string =>
    glob.startsWith("/") ? "/" : glob === "~" || glob.startsWith("~/") ? "~" : ""
  if (anchor(wide) !== anchor(narrow)) return false
  return coversFrom(wide.split("/"), narrow.split("/"))
}
