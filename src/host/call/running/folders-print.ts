/**
 * What tells one state of a driver's folders from every other, without reading a file.
 *
 * Guarantees: equal only while each file has the same place, inode, size and times; whoever changes one, in its place or by
 * another, cannot set its change time back. A frozen layer's name says what it is. Takes turns with other work.
 * Does not: follow a link.
 */
import { createHash } from "node:crypto"
import { lstatSync, readdirSync } from "node:fs"
import { dirname, join } from "node:path"
import { installedLayersFolder } from "../../../data-folder/paths.ts"
import { takingTurns } from "../../../sandbox/effects/breath.ts"
import { hostLimits } from "../../limits.ts"

/** Undefined where there is too much to look at, or it cannot be looked at. */
export const foldersPrint = async (data: string, folders: readonly string[]): Promise<string | undefined> => {
  const hash = createHash("sha256")
  const turns = takingTurns()
  let left = hostLimits.receiptBundleFiles.value
  const open = folders.toSorted()
  try {
    for (let at = open.pop(); at !== undefined; at = open.pop()) {
      hash.update(`${JSON.stringify(at)}\n`)
      if (dirname(at) === installedLayersFolder(data)) continue
      for (const name of readdirSync(at).sort()) {
        await turns.take()
        left -= 1
        if (left < 0) return undefined
        const path = join(at, name)
        const stats = lstatSync(path, { bigint: true })
        const { dev, ino, mode, size, mtimeNs, ctimeNs } = stats
        if (stats.isDirectory()) open.push(path)
        else hash.update(`${JSON.stringify(name)} ${[dev, ino, mode, size, mtimeNs, ctimeNs].join(" ")}\n`)
      }
    }
  } catch {
    return undefined
  }
  return hash.digest("hex")
}
