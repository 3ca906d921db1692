/**
 * Names that scopes of secrets speak in, the same for whoever sets one and for the call that uses it.
 *
 * Guarantees: a driver's holds its id, its major and where its manifest came from, so that a manifest elsewhere that
 * claims the id gets nothing; a workspace's is the id that the data folder gave to that folder, whatever its path.
 */
import type { FolderIdentity } from "../../sandbox/folder.ts"
import { originOf } from "../data/homes.ts"
import { workspaceId } from "../data/workspaces.ts"
import type { SecretUse } from "./vault.ts"

interface Place {
  readonly data: string
  /** the bundled catalogue's folder */
  readonly catalogue: string
}

/** A registered driver, as far as it has a name. */
interface NamedDriver {
  readonly key: string
  readonly contract: { readonly source: { readonly file: string } }
}

export const driverScope = (catalogue: string, { key, contract }: NamedDriver): string =>
  `${key} ${originOf(catalogue, contract.source.file).join(":")}`

export const useOf = (
  { data, catalogue }: Place,
  driver: NamedDriver,
  /** absent: none, and no secret of any workspace's fits */
  workspace: FolderIdentity | undefined,
  user: string,
): SecretUse => ({
  user,
  workspace: workspace === undefined ? "" : workspaceId(data, workspace),
  driver: driverScope(catalogue, driver),
})
