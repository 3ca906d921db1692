/**
 * What no layer may hold, by what the sandbox saw being written; said before any of it is there. Pure.
 *
 * Guarantees: no device, no file that would run as somebody else, no name that a terminal could take for an order, and no
 * link whose words lead out of the layer.
 */
import { shown } from "../../../manifest/values/diagnostics.ts"
import type { WriteSet } from "../../../sandbox/effects/types.ts"
import { climbsOut } from "../freeze.ts"

/** What the write set has of bytes that are no text, and control characters as they are. */
const UNFIT = /[\u0000-\u001f\u007f-\u009f]|\\x(?!5[cC])[0-9a-fA-F]{2}/
const ANOTHERS_RIGHTS = 0o6000

export const unacceptable = ({ effects }: WriteSet): string | undefined => {
  for (const { kind, path, refused, target, mode } of effects) {
    if (kind === "special") return `${shown(path)} is no file, folder or link`
    if (((mode?.after ?? 0) & ANOTHERS_RIGHTS) !== 0)
      return `${shown(path)} would run as another user (setuid or setgid)`
    if (refused !== undefined) return `${shown(path)}: ${refused}`
    if (UNFIT.test(path)) return `the name ${shown(path)} holds control characters or is no text`
    if (kind === "symlink" && target !== undefined && climbsOut(path, target))
      return `the link ${shown(path)} leads out of it, to ${shown(target)}`
  }
  return undefined
}
