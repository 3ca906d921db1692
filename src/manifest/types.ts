/**
 * The frozen contracts that every other room reads.
 *
 * Guarantees: values of these types were made by the loaders in this folder from validated, canonicalised
 * bytes; they are deeply frozen and carry the digest of what they were made from.
 * Assumes: nothing. Does not: touch clock, network or disk.
 */
import type { TokenCapture } from "./values/token-endpoint.ts"
import type {
  ActionContract,
  CostClass,
  Diagnostic,
  DriverLimits,
  EgressBudgetSpec,
  JsonObject,
  ManifestKind,
  ManifestSource,
  RetryRule,
  ToolContract,
  ConformCase,
} from "./base-types.ts"
import type { DriverEgress } from "./values/egress-block.ts"
import type { AuthSpec } from "./kinds/auth.ts"
import type { AuthProvider } from "./kinds/auth-provider.ts"
import type { DriverBody, KindCall } from "./kinds/body.ts"
import type { CodeBundle } from "./code-bundle.ts"
import type { DriverCode } from "./driver-code.ts"
import type { GovernanceRule } from "./policies/governance.ts"
import type { GrantSet } from "./policies/grants.ts"
import type { HealthCheck } from "./kinds/health.ts"
import type { InstallMethod } from "./kinds/install.ts"
import type { RunnerSpec } from "./kinds/runner.ts"
import type { SecretAccess, SecretAudit, SecretExposure } from "./policies/secret-rules.ts"
import type { SetupStep } from "./kinds/setup.ts"

export type * from "./base-types.ts"
export type { TemplateTree } from "./templates/template-tree.ts"
export type * from "./kinds/auth.ts"
export type * from "./kinds/auth-provider.ts"
export type * from "./kinds/body.ts"
export type * from "./kinds/builtin.ts"
export type { DatabaseCall } from "./kinds/database.ts"
export type * from "./kinds/cli.ts"
export type * from "./code-bundle.ts"
export type * from "./driver-code.ts"
export type * from "./policies/governance.ts"
export type * from "./policies/grants.ts"
export type * from "./kinds/health.ts"
export type * from "./kinds/http.ts"
export type * from "./kinds/install.ts"
export type * from "./kinds/mcp.ts"
export type * from "./kinds/runner.ts"
export type * from "./kinds/sdk.ts"
export type * from "./policies/secret-rules.ts"
export type * from "./kinds/setup.ts"

export interface VersionCheck {
  readonly cmd: string
  readonly parse: string
  readonly range: string
  readonly timeoutMs: number
}

/** One `implements[]` entry, its tool resolved by the registry later. */
export interface Implementation extends KindCall {
  /** as written: a path or a registry id */
  readonly toolRef: string
  /** the contract id the reference leads to, once known from the file or equal to the id as written */
  readonly tool: string
  /** the reference names one major: `id@2` */
  readonly major?: number
  readonly versionRange: string
  readonly dropInputs: readonly string[]
  readonly dropOutputs: readonly string[]
  /** driver-side key → contract input (C-34) */
  readonly mapping: Readonly<Record<string, { readonly from: string; readonly transform?: string }>>
  readonly costUnitsPerCall?: number
  readonly costClass?: CostClass
  /** of the units; absent: USD */
  readonly currency?: string
  readonly timeoutMs?: number
  readonly retry?: RetryRule
  readonly metadata: JsonObject
}

export interface DriverContract extends DriverEgress {
  readonly kind: "driver"
  readonly id: string
  readonly name: string
  readonly description: string
  readonly version: string
  readonly major: number
  /** what its kind adds; `body.kind` is the kind */
  readonly body: DriverBody
  /** functions of its own, where it has any */
  readonly code?: DriverCode
  /** the files that it is composed of, where it is; its package then lies there */
  readonly bundle?: CodeBundle
  readonly implements: readonly Implementation[]
  readonly install: readonly InstallMethod[]
  readonly versionCheck?: VersionCheck
  readonly auth?: AuthSpec
  readonly region: readonly string[]
  /** false when the manifest did not say (C-22: an undeclared region fails a region constraint) */
  readonly regionDeclared: boolean
  readonly policyTags: readonly string[]
  readonly costUnitsPerCall?: number
  readonly costClass?: CostClass
  /** of the units; absent: USD */
  readonly currency?: string
  readonly timeoutMs?: number
  readonly retry?: RetryRule
  readonly healthCheck?: HealthCheck
  readonly requires: {
    readonly os: readonly string[]
    readonly arch: readonly string[]
    readonly minDiskMb?: number
    readonly minMemoryMb?: number
  }
  readonly setup: readonly SetupStep[]
  readonly runner?: RunnerSpec
  /** per-call limits from `runner.limits` (AIP-17) and `metadata.limits`, where declared */
  readonly limits: DriverLimits
  /** what one call may use of the network, from `metadata.egress_budget`; the host's own budgets still cap it */
  readonly egressBudget?: EgressBudgetSpec
  /** where its own program gets tokens that are kept out of its sandbox, from `metadata.oauth` */
  readonly tokenCapture?: TokenCapture
  readonly examples: readonly { readonly goal: string; readonly note?: string; readonly cmd?: string }[]
  readonly conform?: readonly ConformCase[]
  readonly tags: readonly string[]
  readonly metadata: JsonObject
  /** set when the manifest parsed but can never serve a call; the registry shows it as unavailable */
  readonly unusable?: string
  readonly source: ManifestSource
}

export interface SecretEntry {
  readonly slug: string
  readonly name: string
  readonly description: string
  readonly secretKind: "opaque" | "oauth" | "keypair" | "json"
  readonly backend?: string
  /** who may see it, who gets it into a process of theirs, who may replace it */
  readonly access: {
    readonly reveal: readonly SecretAccess[]
    readonly bind: readonly SecretAccess[]
    readonly rotate: readonly SecretAccess[]
  }
  readonly audit?: SecretAudit
  readonly exposures: readonly SecretExposure[]
  /** variables that get it unasked (`metadata.bindings.env`) */
  readonly env: readonly string[]
  readonly tags: readonly string[]
  readonly metadata: JsonObject
}
export interface SecretsInventory {
  readonly kind: "secrets"
  readonly secrets: readonly SecretEntry[]
  readonly source: ManifestSource
}

interface Policy {
  readonly kind: "policy"
  readonly id: string
  readonly source: ManifestSource
}
/** `schema: policy/v1` (AIP-38) */
export interface GrantsPolicy extends Policy {
  readonly dialect: "grants"
  readonly grants: GrantSet
}
/** `schema: agentgovernance/v1` (AIP-7) */
export interface GovernancePolicy extends Policy {
  readonly dialect: "governance"
  readonly rule: GovernanceRule
}
/** Two dialects share the name (C-44). */
export type PolicyContract = GrantsPolicy | GovernancePolicy

export type Manifest = ToolContract | DriverContract | SecretsInventory | ActionContract | PolicyContract | AuthProvider

/** What a manifest that did not load says of itself: good for messages, never for registration. */
export interface Claims {
  readonly id?: string
  /** ids of the tools it means to serve */
  readonly tools: readonly string[]
}

export type LoadResult<T extends Manifest = Manifest> =
  | { readonly ok: true; readonly manifest: T; readonly diagnostics: readonly Diagnostic[] }
  | {
      readonly ok: false
      readonly file: string
      readonly kind: ManifestKind | "unknown"
      readonly diagnostics: readonly Diagnostic[]
      readonly claims?: Claims
    }
