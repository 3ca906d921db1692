/** What the registry holds: contracts, drivers bound to them, and what did not make it, each with the reason. */
import type {
  ActionContract,
  Claims,
  Diagnostic,
  DriverContract,
  ManifestKind,
  PolicyContract,
  SecretEntry,
  ToolContract,
} from "../../manifest/types.ts"
import type { Binding } from "../drivers/kind.ts"
import type { ReasonCode } from "../reasons.ts"
import type { Reach } from "./reach.ts"

/** Why a driver that loaded can never serve a call. */
export interface Refusal {
  readonly code: ReasonCode
  readonly reason: string
  readonly fix: string
}

export interface RegisteredDriver {
  /** `jq@1`: the stable identity in routes, receipts, grants and caches */
  readonly key: string
  readonly contract: DriverContract
  /** empty when refused */
  readonly bindings: readonly Binding[]
  readonly refusal?: Refusal
  /** the operator vouches for its folder: the bundled catalogue, or one that the config names */
  readonly vouched: boolean
  /** the program that embeds this host handed it over itself */
  readonly given?: true
  /** its id without a major means the drivers of its folder */
  readonly ownsId: boolean
  /** the declared policy tags that the operator vouches for; others are claims and satisfy no allow list */
  readonly verifiedTags: readonly string[]
}

export interface FailedManifest {
  readonly file: string
  readonly kind: ManifestKind | "unknown"
  /** what it says of itself, for messages alone */
  readonly claims: Claims
  readonly diagnostics: readonly Diagnostic[]
}

/** What each driver narrows, by `driver@major` and tool: kept by the host to hold a re-registration to its major. */
export type Narrowings = Readonly<
  Record<string, Readonly<Record<string, { readonly inputs: readonly string[]; readonly outputs: readonly string[] }>>>
>

/** How far something that was registered reaches, under the name by which it is remembered. */
export interface RegisteredReach {
  readonly key: string
  readonly vouched: boolean
  readonly reach: Reach
}

export interface Registry {
  readonly tools: readonly ToolContract[]
  readonly drivers: readonly RegisteredDriver[]
  readonly secrets: readonly SecretEntry[]
  /** what folders that the operator vouches for say of secrets: all that counts for the drivers of such folders */
  readonly vouchedSecrets: readonly SecretEntry[]
  readonly actions: readonly ActionContract[]
  readonly policies: readonly PolicyContract[]
  /** those of folders that the operator vouches for */
  readonly vouchedPolicies: readonly PolicyContract[]
  /** files of such folders that are policies and could not be taken: nobody knows what they forbid */
  readonly lostPolicies: readonly string[]
  readonly failed: readonly FailedManifest[]
  readonly diagnostics: readonly Diagnostic[]
  readonly narrowings: Narrowings
  /** of all that was registered */
  readonly reaches: readonly RegisteredReach[]
  /** by `id@major`, or by `id`: the highest major of the folder that owns the id */
  tool(ref: string): ToolContract | undefined
  /** all that the name may mean, the one that `tool` gives first */
  toolsNamed(ref: string): readonly ToolContract[]
  driver(ref: string): RegisteredDriver | undefined
  action(ref: string): ActionContract | undefined
  /** every driver whose `implements` names the tool, refused ones included, for `why` */
  driversFor(tool: ToolContract): readonly RegisteredDriver[]
}
