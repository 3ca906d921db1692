/** Whose a login is, and what may be done for it. */
import type { RegisteredDriver } from "../registry/types.ts"
import type { Role } from "../access/caller.ts"

export interface LoginOwner {
  readonly driver: RegisteredDriver
  /** the workspace's id, as the data folder issued it */
  readonly workspace: string
  readonly user: string
  /** who acts, for the record */
  readonly actor: string
  readonly roles: readonly Role[]
}
