/** What the store remembers of a held call: enough to list it, to decide who may decide, and to find its layer. */
import type { Role } from "../access/caller.ts"
import type { JsonObject } from "../../manifest/types.ts"
import type { FolderIdentity } from "../../sandbox/folder.ts"
import type { HeldCall } from "../store/store.ts"

export interface HeldFacts {
  readonly tool: { readonly id: string; readonly major: number; readonly version: string; readonly digest: string }
  readonly driver: string
  /** for whom the call was made, and by whom */
  readonly user: string
  readonly actor: string
  readonly roles: readonly Role[]
  readonly folder: FolderIdentity
  readonly effects: number
  readonly approval: "auto" | "on-mutate" | "always"
  /** does a rule of the operator's say whose yes counts */
  readonly ruled: boolean
  /** digests of the layer's description and of what the call answered */
  readonly layer: string
  readonly answer: string
}

export const toJson = (facts: HeldFacts): JsonObject => facts as unknown as JsonObject
/** The store is in the data folder, which is this user's alone: what is in it was written by `hold`. */
export const factsOf = ({ facts }: Pick<HeldCall, "facts">): HeldFacts => facts as unknown as HeldFacts
export const toolName = ({ tool }: HeldFacts): string => `${tool.id}@${tool.major}`
export const expiresOf = ({ at, holdMs }: Pick<HeldCall, "at" | "holdMs">): string =>
  new Date(at.wallMs + holdMs).toISOString()
