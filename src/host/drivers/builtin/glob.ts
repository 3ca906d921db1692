/**
 * Globs as ignore files and search tools write them: `*`, `?`, `[a-z]`, `{a,b}`, `**`, a leading `!`, a slash that binds.
 *
 * Guarantees: a glob becomes a pattern that runs in linear time and is bounded in size, or none at all.
 */
import { compilePattern, type SafePattern } from "../../../manifest/schema/pattern.ts"

export interface PathGlob {
  /** what matches is taken back */
  readonly negated: boolean
  readonly foldersOnly: boolean
  matches(path: string): boolean
}

const escaped = (text: string): string => text.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&")

const classAt = (glob: string, at: number): { readonly text: string; readonly end: number } | undefined => {
  const end = glob.indexOf("]", at + (/^\[[!^]?\]/.exec(glob.slice(at))?.[0].length ?? 1))
  if (end < 0) return undefined
  const inner = glob.slice(at + 1, end)
  const negated = /^[!^]/.test(inner)
  const body = (negated ? inner.slice(1) : inner).replace(/[\\\]^[]/g, "\\$&")
  return { text: negated ? `[^/${body}]` : `[${body}]`, end }
}

/** The body of a regular expression for paths below the folder that the glob is written for. */
const bodyOf = (glob: string): string => {
  let body = ""
  let depth = 0
  for (let at = 0; at < glob.length; at += 1) {
    const char = glob[at] ?? ""
    if (glob.startsWith("**/", at) && (at === 0 || glob[at - 1] === "/")) {
      body += "(?:[^/]+/)*"
      at += 2
    } else if (glob.slice(at) === "**" && (at === 0 || glob[at - 1] === "/")) {
      body += ".+"
      at += 1
    } else if (char === "*") {
      while (glob[at + 1] === "*") at += 1
      body += "[^/]*"
    } else if (char === "?") body += "[^/]"
    else if (char === "[") {
      const found = classAt(glob, at)
      body += found?.text ?? "\\["
      at = found?.end ?? at
    } else if (char === "{" && glob.indexOf("}", at) > at) {
      body += "(?:"
      depth += 1
    } else if (char === "}" && depth > 0) {
      body += ")"
      depth -= 1
    } else if (char === "," && depth > 0) body += "|"
    else if (char === "\\" && at + 1 < glob.length) {
      at += 1
      body += escaped(glob[at] ?? "")
    } else body += escaped(char)
  }
  return body + ")".repeat(depth)
}

/** Undefined: it says nothing, or nothing that can be run. */
export const pathGlob = (written: string): PathGlob | undefined => {
  const negated = written.startsWith("!")
  let glob = negated ? written.slice(1) : written
  const foldersOnly = glob.endsWith("/")
  if (foldersOnly) glob = glob.slice(0, -1)
  if (glob === "") return undefined
  const bound = glob.includes("/")
  const body = bodyOf(bound ? glob.replace(/^\//, "") : `**/${glob}`)
  const made = compilePattern(`^(?s:${body})$`, { ambiguous: true })
  if (!made.ok) return undefined
  const { pattern }: { pattern: SafePattern } = made
  return { negated, foldersOnly, matches: (path) => pattern.test(path) }
}
