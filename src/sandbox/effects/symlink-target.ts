/**
 * Does a symlink stay inside the tree it stands in?
 *
 * Guarantees: a target that passes leads inside whatever other passing links it runs through: it is relative, climbs
 * only at its beginning and never above the root. `..` after a name is refused, since the name may be a link itself.
 * Assumes: `path` is the link's physical place. Does not: look at the file system.
 */
export const escapeOf = (path: string, target: string): string | undefined => {
  if (target.startsWith("/")) return "the symlink's target is absolute"
  let depth = path.split("/").length - 1
  let named = false
  for (const part of target.split("/")) {
    if (part === "" || part === ".") continue
    if (part !== "..") named = true
    else if (named) return "the symlink's target climbs (..) after a name"
    else if (--depth < 0) return "the symlink's target leads out of the workspace"
  }
  return undefined
}

/** The path that a link which passed leads to, taken by its text; undefined where that is outside. */
export const leadsTo = (path: string, target: string): string | undefined => {
  if (target.startsWith("/")) return undefined
  const parts = path.split("/").slice(0, -1)
  for (const part of target.split("/")) {
    if (part === "" || part === ".") continue
    if (part !== "..") parts.push(part)
    else if (parts.pop() === undefined) return undefined
  }
  return parts.join("/")
}
