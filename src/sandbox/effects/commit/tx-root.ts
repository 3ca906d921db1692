/**
 * Where a workspace's transactions are staged: always on the workspace's own file system.
 *
 * Guarantees: a file can be moved between the chosen folder and the workspace without copying, shown by a real link
 * across. The data folder (whose parent exists) is preferred; else a reserved folder in the workspace, which exists only during commits.
 */
import { closeSync, lstatSync, mkdirSync, unlinkSync } from "node:fs"
import { randomUUID } from "node:crypto"
import { join } from "node:path"
import { AT_FDCWD, linkat } from "../../syscalls.ts"
import { errorCode } from "../beneath.ts"
import { openNameless } from "./baseline.ts"

const AT_SYMLINK_FOLLOW = 0x400
export const RESERVED_FOLDER = ".caisson-tx"

export const insideRoot = (workspace: string): string => join(workspace, RESERVED_FOLDER)

/** All the places where transactions of this workspace may be found, for recovery. */
export const possibleTxRoots = (workspace: string, dataDir: string): string[] => [
  join(dataDir, "tx"),
  insideRoot(workspace),
]

export const chooseTxRoot = (workspace: string, dataDir: string): string => {
  const outside = join(dataDir, "tx")
  return linksAcross(workspace, dataDir, outside) ? outside : insideRoot(workspace)
}

/** One private folder, in one that exists. */
export const ensureFolder = (dir: string): void => {
  try {
    mkdirSync(dir, { mode: 0o700 })
  } catch (error) {
    if (errorCode(error) !== "EEXIST") throw error
  }
}

const linksAcross = (workspace: string, dataDir: string, outside: string): boolean => {
  let fd: number | undefined
  try {
    ensureFolder(dataDir)
    ensureFolder(outside)
    if (lstatSync(outside).dev !== lstatSync(workspace).dev) return false
    fd = openNameless(workspace)
    const probe = join(outside, `probe-${randomUUID()}`)
    linkat(AT_FDCWD, `/proc/self/fd/${fd}`, AT_FDCWD, probe, AT_SYMLINK_FOLLOW)
    unlinkSync(probe)
    return true
  } catch {
    return false
  } finally {
    if (fd !== undefined) closeSync(fd)
  }
}
