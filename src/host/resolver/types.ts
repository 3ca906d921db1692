/** What the resolver is told and what it answers. All of it is plain data; `driver@major` keys every map. */
import type { DriverKind, Implementation, JsonObject, LoginSpec, ToolContract } from "../../manifest/types.ts"
import type { Binding } from "../drivers/kind.ts"
import type { LoginState } from "../login-state.ts"
import type { RegisteredDriver } from "../registry/types.ts"
import type { ReasonCode } from "../reasons.ts"
import type { Availability, RoutePhase, RouteRow } from "../types.ts"

export interface AuthStatus {
  readonly state: LoginState
  /** ids of set-up steps still to do */
  readonly pendingSetup?: readonly string[]
  /** why nobody is signed in, where that is not plain from the state */
  readonly why?: string
  /** secrets that it needs and that are not there, and what sets them */
  readonly missing?: { readonly slugs: readonly string[]; readonly fix: string }
}
export interface HealthStatus {
  readonly ok: boolean
  /** epoch milliseconds of the check */
  readonly at: number
  readonly reason?: string
}

export interface RoutePolicy {
  /** exact, case-sensitive. `deny` looks at declared tags; `allow` needs one that the operator vouches for */
  readonly tags?: { readonly allow?: readonly string[]; readonly deny?: readonly string[] }
  /** a residency constraint: one of these must be declared by the driver */
  readonly regions?: readonly string[]
  /** an explicit `region: [global]` satisfies a constraint (C-22); default no */
  readonly globalSatisfiesRegion?: boolean
  /** how long a failed health check keeps a driver out; default five minutes */
  readonly healthWindowMs?: number
}

export interface RouteCall {
  /** validated against the contract */
  readonly input: JsonObject
  /** the question is about the tool and not about one input, so that nothing is missed in `input` */
  readonly anyInput?: boolean
  /** what templates see of the context; absent: not known */
  readonly context?: JsonObject
  /** the inputs the caller sent, before the contract's defaults were filled in; absent: the keys of `input` */
  readonly sentKeys?: readonly string[]
  /** `context.pinnedProvider` or `--driver`: `id` or `id@major` */
  readonly pin?: string
  /** `context.regionConstraint`: narrows the policy's regions, never widens them */
  readonly regions?: readonly string[]
  /** the call only logs in, so that a missing login does not drop a driver */
  readonly loginOnly?: boolean
}

export interface ResolveInput {
  readonly tool: ToolContract
  readonly drivers: readonly RegisteredDriver[]
  readonly call: RouteCall
  readonly policy: RoutePolicy
  /** a driver that is missing here is unavailable */
  readonly availability: ReadonlyMap<string, Availability>
  /** a driver that is missing here was never checked: not a failure, ranked behind those that passed */
  readonly health: ReadonlyMap<string, HealthStatus>
  /** a driver with an `auth` or `setup` block that is missing here has not done it */
  readonly auth: ReadonlyMap<string, AuthStatus>
  /** drivers that the operator's policies keep from this caller, by what they require; absent: none */
  readonly barred?: ReadonlyMap<string, { readonly reason: string; readonly fix: string }>
  /** epoch milliseconds; absent: every failed health check counts as recent */
  readonly now?: number
}

export interface Rejection {
  readonly driver: string
  readonly phase: RoutePhase
  /** stable word: a reason code or one of the spec's aliases (`region_mismatch`, `health_check_failed_recently`, …) */
  readonly code: string
  readonly reason: string
  readonly fix?: string
}
export interface RouteCause {
  /** the specific reason behind the code (C-21), e.g. `no_route_in_region`, `version_mismatch`, `policy_violation` */
  readonly reason: string
  readonly message: string
  readonly fix?: string
  /** those that came furthest */
  readonly rejections: readonly Rejection[]
  /** `input_unsupported`: the inputs no driver takes; `input_invalid`: those that no driver can do without */
  readonly fields?: readonly string[]
  /** `auth_required` and `setup_required`: the driver to act on, its login block, its open steps */
  readonly driver?: string
  readonly login?: LoginSpec
  readonly pendingSetup?: readonly string[]
}

/** `driver.resolved` of AIP-30 without who, where and when; those are the receipt writer's. */
export interface ResolvedAudit {
  readonly type: "driver.resolved"
  readonly tool_id: string
  readonly tool_version: string
  readonly candidates_total: number
  readonly candidates_passed_phase_2_capability: number
  readonly candidates_passed_phase_3_policy: number
  readonly pinned_provider: string | null
  readonly rejected: readonly { readonly provider_id: string; readonly phase: number; readonly reason: string }[]
  readonly selected: {
    readonly provider_id: string
    readonly kind: DriverKind
    readonly cost_units_per_call: number | null
  } | null
}

export type Resolution =
  | {
      readonly ok: true
      readonly driver: RegisteredDriver
      readonly binding: Binding
      readonly implementation: Implementation
      /** driver-side keys (C-34) */
      readonly mappedInput: JsonObject
      readonly rows: readonly RouteRow[]
      readonly audit: ResolvedAudit
    }
  | {
      readonly ok: false
      readonly code: ReasonCode
      readonly cause: RouteCause
      readonly rows: readonly RouteRow[]
      readonly audit: ResolvedAudit
    }
