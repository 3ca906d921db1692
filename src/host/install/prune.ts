/**
 * Layers that nobody asks for any longer, removed.
 *
 * Guarantees: what a wanted request leads to stays; so does what was used or made a while ago, since a call may have it
 * mounted, what another process is building, and what came of a download that broke off lately. Removing breaks off nothing that matters: a layer whose request is gone
 * first is nobody's, and the next prune removes what is left of it.
 */
import { lstatSync, readdirSync, rmSync, statSync } from "node:fs"
import { join } from "node:path"
import {
  installedLayersFolder,
  installedListsFolder,
  installDownloadsFolder,
  installedSpecsFolder,
  installLocksFolder,
} from "../../data-folder/paths.ts"
import { tryFileLock } from "../data/file-lock.ts"
import { installLimits } from "../limits.ts"
import { recall, removeTree } from "./layers.ts"

const namesIn = (folder: string): readonly string[] => {
  try {
    return readdirSync(folder)
  } catch {
    return []
  }
}

const isRecent = (file: string): boolean => {
  const stat = statSync(file, { throwIfNoEntry: false })
  return stat !== undefined && Date.now() - stat.mtimeMs < installLimits.inUseMs.value
}

const bytesOf = (folder: string): number =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .reduce((sum, entry) => sum + lstatSync(join(entry.parentPath, entry.name)).size, 0)

/** Requests by their keys; answers the digests of what is gone, and how much it took. */
export const pruneLayers = (
  data: string,
  wanted: ReadonlySet<string>,
): { readonly removed: readonly string[]; readonly bytes: number } => {
  const named = new Set<string>()
  for (const file of namesIn(installedSpecsFolder(data)).filter((name) => name.endsWith(".json"))) {
    const [key, path] = [file.slice(0, -".json".length), join(installedSpecsFolder(data), file)]
    using lock = tryFileLock(join(installLocksFolder(data), key))
    if (!wanted.has(key) && lock !== undefined && !isRecent(path)) rmSync(path, { force: true })
    else {
      const digest = recall(data, key)?.digest
      if (digest !== undefined) named.add(digest)
    }
  }
  const removed: string[] = []
  let bytes = 0
  for (const key of namesIn(installDownloadsFolder(data))) {
    using lock = tryFileLock(join(installLocksFolder(data), key))
    const folder = join(installDownloadsFolder(data), key)
    if (lock === undefined || isRecent(folder)) continue
    bytes += bytesOf(folder)
    removeTree(folder)
  }
  for (const digest of namesIn(installedLayersFolder(data))) {
    const list = join(installedListsFolder(data), digest)
    if (named.has(digest) || isRecent(list)) continue
    const folder = join(installedLayersFolder(data), digest)
    bytes += bytesOf(folder)
    removeTree(folder)
    for (const file of [list, `${list}.facts`]) rmSync(file, { force: true })
    removed.push(`sha256:${digest}`)
  }
  return { removed, bytes }
}
