/**
 * Which paths of a workspace a call without a sandbox may see, by the same patterns that a sandbox's view is mounted from.
 *
 * Guarantees: decided by the path alone, before anything is opened, so that what is hidden cannot be told from what is not
 * there. A path is seen only if a read or write pattern covers it and no deny pattern covers it or a folder above it;
 * other calls' commits, staged in the workspace, are never seen. Pure.
 */
import { coversTree, matches, matchesAbove, mayMatchBelow, type WorkspacePath } from "../../../manifest/values/globs.ts"
import { type BytePath, displayName, isReserved } from "../../effects/names.ts"
import { parsedGlobs, type View } from "../view/view-plan.ts"

export interface Sight {
  /** a file or a link */
  seesFile(path: BytePath): boolean
  /** a folder of which something may be seen */
  seesFolder(path: BytePath): boolean
}

export const sightOf = (view: View, write: readonly string[]): Sight => {
  const allow = parsedGlobs([...view.read, ...write])
  const deny = parsedGlobs(view.deny)
  const spelled = (path: BytePath): WorkspacePath => displayName(path) as WorkspacePath
  const isDenied = (path: WorkspacePath): boolean => isReserved(path) || deny.some((glob) => matchesAbove(glob, path))
  return {
    seesFile(bytes) {
      const path = spelled(bytes)
      return path !== "" && !isDenied(path) && allow.some((glob) => matches(glob, path))
    },
    seesFolder(bytes) {
      const path = spelled(bytes)
      if (isDenied(path) || deny.some((glob) => coversTree(glob, path))) return false
      return allow.some((glob) => coversTree(glob, path) || mayMatchBelow(glob, path))
    },
  }
}
