/**
 * New files in a folder, never over others.
 *
 * Guarantees: nothing that was there is changed, and no symbolic link is followed, the folder itself included: what stands in the way
 * is told before anything is written, and where one file cannot be written, those written before it are removed again.
 */
import { closeSync, constants, lstatSync, mkdirSync, openSync, rmdirSync, unlinkSync, writeSync } from "node:fs"
import { join } from "node:path"
import type { ScaffoldFile } from "../../../authoring/scaffold/scaffold.ts"

type Written =
  | { readonly ok: true; readonly paths: readonly string[] }
  | { readonly ok: false; readonly message: string; readonly fix: string }

/** Is anything there, be it a link that leads nowhere? */
export const stands = (path: string): boolean => lstatSync(path, { throwIfNoEntry: false }) !== undefined
const isFolder = (path: string): boolean => lstatSync(path, { throwIfNoEntry: false })?.isDirectory() === true

const writeOne = (path: string, { text, bytes: own, executable }: ScaffoldFile): void => {
  const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW
  const fd = openSync(path, flags, executable === true ? 0o755 : 0o644)
  try {
    const bytes = own ?? Buffer.from(text)
    for (let at = 0; at < bytes.length; ) at += writeSync(fd, bytes, at)
  } finally {
    closeSync(fd)
  }
}

/** `a/b/c` → a, a/b: from the top, so that each is looked at before anything behind it. */
const foldersOf = (path: string): readonly string[] => {
  const parts = path.split("/")
  return parts.slice(1).map((_, at) => parts.slice(0, at + 1).join("/"))
}

export const writeNew = (folder: string, files: readonly ScaffoldFile[]): Written => {
  const there = files.map(({ path }) => join(folder, path)).filter(stands)
  const fix = "name another folder, or move what is there"
  if (lstatSync(folder, { throwIfNoEntry: false })?.isSymbolicLink() === true)
    return {
      ok: false,
      message: `${folder} is a symbolic link, which is not followed; nothing was written`,
      fix: "name the folder itself",
    }
  if (there.length > 0) return { ok: false, message: `there is already ${there.join(", ")}; nothing was written`, fix }
  const folders = [...new Set(files.flatMap(({ path }) => foldersOf(path)))]
  const blocked = folders.map((path) => join(folder, path)).find((path) => stands(path) && !isFolder(path))
  if (blocked !== undefined) return { ok: false, message: `${blocked} is no folder; nothing was written`, fix }
  const undo: (() => void)[] = []
  try {
    mkdirSync(folder, { recursive: true })
    for (const path of folders.map((each) => join(folder, each)))
      if (!stands(path)) {
        mkdirSync(path)
        undo.push(() => rmdirSync(path))
      }
    for (const file of files) {
      const path = join(folder, file.path)
      writeOne(path, file)
      undo.push(() => unlinkSync(path))
    }
    return { ok: true, paths: files.map(({ path }) => join(folder, path)) }
  } catch (error) {
    for (const step of undo.toReversed()) step()
    return { ok: false, message: error instanceof Error ? error.message : String(error), fix }
  }
}
