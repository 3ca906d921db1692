/**
 * Folders and files with exactly the mode that was asked for, whatever the umask of whoever started this process:
 * sandboxes' users have to pass through what root makes for them.
 */
import { chmodSync, copyFileSync, existsSync, lstatSync, mkdirSync, writeFileSync } from "node:fs"
import { dirname } from "node:path"

/** A change of mode that changes nothing still has to wait for a disk that is busy. */
export const setMode = (path: string, mode: number): void => {
  if ((lstatSync(path).mode & 0o7777) !== mode) chmodSync(path, mode)
}
export const makeFolder = (path: string, mode = 0o755): void => {
  mkdirSync(path, { mode })
  setMode(path, mode)
}
/** With those above it that are missing. */
export const makeFolders = (path: string): void => {
  if (existsSync(path)) return
  makeFolders(dirname(path))
  makeFolder(path)
}
export const makeFile = (path: string, content: string | Uint8Array, mode = 0o644): void => {
  writeFileSync(path, content, { mode })
  setMode(path, mode)
}
export const copyFile = (source: string, path: string, mode = 0o644): void => {
  copyFileSync(source, path)
  chmodSync(path, mode)
}
