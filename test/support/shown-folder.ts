/** A folder beside this clone's packages that a sandbox can show where it lies, or why there is none. */
import { chmodSync, mkdtempSync, realpathSync } from "node:fs"
import { join } from "node:path"

const OWN = /^\/(tmp|var|workspace|home\/tool|run|proc|dev|etc)\//

export const shownFolder = (name: string): { readonly folder?: string; readonly missing?: string } => {
  try {
    const packages = realpathSync(join(import.meta.dirname, "../../node_modules"))
    if (OWN.test(packages))
      return { missing: `the clone lies where a sandbox has something of its own (${packages}): clone it elsewhere` }
    const folder = mkdtempSync(join(packages, `.${name}-`))
    // Root's sandboxes run as users that own nothing.
    chmodSync(folder, 0o755)
    return { folder }
  } catch {
    return { missing: "the packages' folder cannot be written: run the suite as the user that owns it" }
  }
}
