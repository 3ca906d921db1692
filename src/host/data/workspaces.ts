/**
 * Ids of workspaces, issued by the data folder: what belongs to a workspace is kept under its id, never under a path.
 *
 * Guarantees: an id is bound to the folder itself, by device, inode and birth time; another folder at the same path gets
 * an id of its own, and a folder that was moved keeps its. Processes that ask at once get the same answer. A device
 * that is numbered anew by a reboot is the same one where path, inode and birth time are.
 * Assumes: the file system tells when a folder was made. Where it does not, the path must be the same as well.
 */
import { createHash, randomUUID } from "node:crypto"
import { linkSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { workspacesFolder } from "../../data-folder/paths.ts"
import type { FolderIdentity } from "../../sandbox/folder.ts"

interface Issued extends FolderIdentity {
  readonly id: string
}

const ID = /^[0-9a-f-]{36}$/
const known = new Map<string, string>()

const keyOf = ({ path, dev, ino, birthNs }: FolderIdentity): string =>
  createHash("sha256")
    .update(JSON.stringify([dev, ino, birthNs, ...(birthNs === "0" ? [path] : [])]))
    .digest("hex")
    .slice(0, 32)

const readIssued = (file: string): Issued | undefined => {
  try {
    const found = JSON.parse(readFileSync(file, "utf8")) as Partial<Issued> | null
    const fields = [found?.path, found?.dev, found?.ino, found?.birthNs, found?.id]
    return fields.every((field) => typeof field === "string") && ID.test(found?.id ?? "")
      ? (found as Issued)
      : undefined
  } catch {
    return undefined
  }
}

/** The same folder under another number of its device. */
const renumbered = (folder: string, { path, ino, birthNs }: FolderIdentity): string | undefined =>
  birthNs === "0"
    ? undefined
    : readdirSync(folder)
        .map((name) => readIssued(join(folder, name)))
        .find((issued) => issued?.path === path && issued.ino === ino && issued.birthNs === birthNs)?.id

export const workspaceId = (data: string, identity: FolderIdentity): string => {
  const folder = workspacesFolder(data)
  const file = join(folder, keyOf(identity))
  const remembered = known.get(file)
  if (remembered !== undefined) return remembered
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  let issued = readIssued(file)?.id
  if (issued === undefined) {
    const fresh: Issued = { ...identity, id: renumbered(folder, identity) ?? randomUUID() }
    const temporary = `${file}.${randomUUID()}`
    writeFileSync(temporary, JSON.stringify(fresh), { mode: 0o600, flush: true })
    try {
      linkSync(temporary, file)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error
    } finally {
      rmSync(temporary, { force: true })
    }
    issued = readIssued(file)?.id
    if (issued === undefined) throw new Error(`${file} is not what this host wrote: remove it`)
  }
  known.set(file, issued)
  return issued
}

/** Where the folder of an id was when it was issued; undefined where this data folder knows none. */
export const workspacePath = (data: string, id: string): string | undefined => {
  try {
    const folder = workspacesFolder(data)
    return readdirSync(folder)
      .map((name) => readIssued(join(folder, name)))
      .find((issued) => issued?.id === id)?.path
  } catch {
    return undefined
  }
}
