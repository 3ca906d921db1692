/**
 * A folder that a build left → one that can be a layer: only plain files, folders and links that stay inside, read-only.
 *
 * Guarantees: no link leads out of the folder, by its words or through other links, when every link is followed; links
 * that lead nowhere are taken out. Files are 0444 or 0555, folders 0555, and belong to this user.
 * Assumes: nobody else writes to the folder meanwhile.
 */
import { chmodSync, lstatSync, readlinkSync, realpathSync, unlinkSync } from "node:fs"
import { dirname, isAbsolute, join, normalize, sep } from "node:path"
import { shown } from "../../manifest/values/diagnostics.ts"
import { type Entry, NotALayer } from "./listing.ts"

/** Does a link's text, read from where it lies, climb out of the root? */
export const climbsOut = (path: string, target: string): boolean => {
  if (isAbsolute(target)) return true
  const led = normalize(join(dirname(path), target))
  return led === ".." || led.startsWith(`..${sep}`)
}

const checkLink = (root: string, path: string): "keep" | "drop" => {
  const at = join(root, path)
  const target = readlinkSync(at)
  const out = (): never => {
    throw new NotALayer(`the link ${shown(path)} leads out of it, to ${shown(target)}`)
  }
  if (climbsOut(path, target)) out()
  try {
    const real = realpathSync.native(at)
    if (real !== root && !real.startsWith(`${root}${sep}`)) out()
    return "keep"
  } catch (error) {
    if (error instanceof NotALayer) throw error
    return "drop"
  }
}

/** `root` is a real path. Links that were taken out are named. */
export const freeze = (root: string, entries: readonly Entry[]): readonly string[] => {
  const dropped: string[] = []
  for (const { path, kind } of entries)
    if (kind === "link" && checkLink(root, path) === "drop") {
      unlinkSync(join(root, path))
      dropped.push(path)
    }
  // From the inside out: a folder that is shut can still be looked into, but not changed.
  for (const { path, kind, executable } of entries.toReversed()) {
    if (kind === "link") continue
    const at = join(root, path)
    if (lstatSync(at).isSymbolicLink()) throw new NotALayer(`${shown(path)} was replaced while it was frozen`)
    chmodSync(at, kind === "folder" || executable ? 0o555 : 0o444)
  }
  return dropped
}
