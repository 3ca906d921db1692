/**
 * Whose a kept home is: one driver's of one origin, in one workspace, for one user, and of no use to any other.
 *
 * Guarantees: a manifest elsewhere that claims the same id does not get it, nor does another major of the same driver,
 * another folder at the workspace's path, or another user. The bundled catalogue is one origin wherever it is installed.
 */
import { createHash } from "node:crypto"
import { isAbsolute, join, relative, sep } from "node:path"
import { homesFolder } from "../../data-folder/paths.ts"
import type { FolderIdentity } from "../../sandbox/folder.ts"
import { workspaceId } from "./workspaces.ts"

interface HomeOwner {
  /** `id@major` */
  readonly driver: string
  /** the driver's manifest */
  readonly file: string
  /** the folder, or the id that it was issued */
  readonly workspace: FolderIdentity | string
  readonly user: string
}

/** Which folder the manifest came from: the catalogue's place may change with an upgrade, its name does not. */
export const originOf = (catalogue: string, file: string): readonly ["catalogue" | "file", string] => {
  const inside = relative(catalogue, file)
  const isBundled = inside !== "" && inside !== ".." && !inside.startsWith(`..${sep}`) && !isAbsolute(inside)
  return isBundled ? ["catalogue", inside] : ["file", file]
}

export const homeFolder = (data: string, catalogue: string, { driver, file, workspace, user }: HomeOwner): string => {
  const id = typeof workspace === "string" ? workspace : workspaceId(data, workspace)
  const owner = [originOf(catalogue, file), driver, id, user]
  return join(homesFolder(data), createHash("sha256").update(JSON.stringify(owner)).digest("hex").slice(0, 32))
}
