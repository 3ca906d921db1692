/**
 * Can anything in a workspace be written by this user at all?
 *
 * Guarantees: no only where nothing in it can be: neither the folder nor anything below it. A workspace with more
 * entries than are looked at is given the benefit of the doubt; what cannot be written there shows at the commit.
 * Follows no link out of the workspace.
 */
import { accessSync, constants, opendirSync } from "node:fs"
import { join } from "node:path"
import type { OpenFolder } from "../../../sandbox/folder.ts"
import { hostLimits } from "../../limits.ts"

const isWritable = (path: string): boolean => {
  try {
    accessSync(path, constants.W_OK)
    return true
  } catch {
    return false
  }
}

export const canWriteIn = ({ here }: OpenFolder): boolean => {
  if (isWritable(here)) return true
  const folders = [here]
  let left = hostLimits.writableEntries.value
  for (let folder = folders.shift(); folder !== undefined; folder = folders.shift()) {
    try {
      using entries = opendirSync(folder)
      for (let entry = entries.readSync(); entry !== null; entry = entries.readSync()) {
        left -= 1
        if (left < 0) return true
        const path = join(folder, entry.name)
        if (entry.isSymbolicLink()) continue
        if (isWritable(path)) return true
        if (entry.isDirectory()) folders.push(path)
      }
    } catch {
      // Closed to this user: nothing in it can be written either.
    }
  }
  return false
}
