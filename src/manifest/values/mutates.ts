/**
 * `mutates` entries: `<class>:<scope>` (C-12).
 *
 * Guarantees: a `workspace` scope is absolute within the workspace (`/` is its root) and a glob of `globs.ts`: a trailing
 * `/` means the whole subtree, `*` any part of a segment, `**` any number of segments, `/` everything.
 * Other classes are declarations for people and policies; their scope is kept as written.
 */
import { joinPath, shown } from "./diagnostics.ts"
import type { Report } from "./diagnostics.ts"
import { parseGlob } from "./globs.ts"
import type { MutateScope } from "../base-types.ts"

const KNOWN = new Set(["workspace", "network", "database", "secret", "external", "audit", "storage", "sandbox"])

function workspaceScope(scope: string, path: string, report: Report): string {
  const rooted = scope.startsWith("/") ? scope : `/${scope.replace(/^\.\//, "")}`
  const parsed = parseGlob(rooted)
  if (!parsed.ok)
    report.error(
      "mutates-scope",
      path,
      `the scope \`${shown(scope)}\` cannot be used: ${shown(parsed.message, 300)}`,
      "write a plain path from the workspace's root, as in `workspace:/notes/*`, with `*` inside a name and `**` for any number of folders",
    )
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
