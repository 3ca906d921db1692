/**
 * `mutates` entries: `<class>:<scope>` (C-12).
 *
 * Guarantees: a `workspace` scope is absolute within the workspace (`/` is its root), free of `.`, `..`, empty
 * segments and backslashes; a trailing `/` means the whole subtree, `*` one segment, `**` any number, `/` everything.
 * Other classes are declarations for people and policies; their scope is kept as written.
 */
import { joinPath, shown } from "./diagnostics.ts"
import type { Report } from "./diagnostics.ts"
import type { MutateScope } from "./types.ts"

const KNOWN = new Set(["workspace", "network", "database", "secret", "external", "audit", "storage", "sandbox"])

function workspaceScope(scope: string, path: string, report: Report): string {
  const rooted = scope.startsWith("/") ? scope : `/${scope.replace(/^\.\//, "")}`
  const segments = rooted.split("/").slice(1)
  const inner = rooted.endsWith("/") ? segments.slice(0, -1) : segments
  if (rooted !== "/" && inner.some((s) => s === "" || s === "." || s === "..")) {
    report.error(
      "mutates-scope",
      path,
      `the scope \`${shown(scope)}\` has an empty, \`.\` or \`..\` segment`,
      "write a plain path from the workspace's root, as in `workspace:/notes/*`",
    )
  } else if (/[\\[\]{}?!]/.test(rooted)) {
    report.error(
      "mutates-scope",
      path,
      `the scope \`${shown(scope)}\` uses characters that scopes do not know`,
      "use only `*` (one segment) and `**` (any number of segments) as wildcards",
    )
  } else if (segments.some((s) => s.includes("**") && s !== "**")) {
    report.error(
      "mutates-scope",
      path,
      `\`**\` must be a whole segment in \`${shown(scope)}\``,
      "write `/dir/**`, or `*` inside a name",
    )
  }
  return rooted
}

export function parseMutates(entries: readonly string[], report: Report): readonly MutateScope[] {
  return entries.map((text, i) => {
    const colon = text.indexOf(":")
    const [cls, scope] = [text.slice(0, colon), text.slice(colon + 1)]
    const path = joinPath("mutates", i)
    if (!KNOWN.has(cls)) {
      report.warn(
        "mutates-unknown-class",
        path,
        `\`${shown(cls, 30)}\` is not a known class of effects`,
        `use one of ${[...KNOWN].join(", ")} where it fits`,
      )
    }
    return { class: cls, scope: cls === "workspace" ? workspaceScope(scope, path, report) : scope, text }
  })
}
