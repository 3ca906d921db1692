/**
 * What the define functions take, as AIP-14, 17, 19, 29, 30, 36, 38 and 39 write their signatures.
 *
 * What a signature leaves open (the blocks inside) has the manifest's fields, in the manifest's spelling or in code's.
 */
import type { ActionContract, DriverContract, DriverKind, PolicyContract, ToolContract } from "../manifest/types.ts"
import type { DefinedManifest } from "../manifest/read/defined.ts"
import type { Spelled } from "./spelling.ts"

type ApprovalClass = "auto" | "always" | "on-mutate" | (string & {})
type RiskLevel = 0 | 1 | 2 | 3
type CostClass = "trivial" | "metered" | "expensive"

interface Capabilities {
  network?: string[]
  secrets?: string[]
  tools?: string[]
}
type RetryPolicy = Spelled<{ max_attempts: number; backoff: "fixed" | "exponential"; initial_ms?: number }>
type CostOverride = Spelled<{ cost_class?: CostClass; cost_units_per_call?: number; currency?: string }>
interface FileBinding {
  path: string
  mode?: "ro" | "rw"
  contentType?: string
}

/** An action by its id (perhaps `@major`), by a registry's name, by a path, or defined on the spot. */
export type ActionRef = string | { ref: string } | { file: string } | { inline: Omit<ActionDefinition, "schema"> }

/** AIP-14 */
export interface ToolDefinition {
  id: string
  name?: string
  description: string
  version?: string
  /** JSON Schema, or a Standard Schema that can say itself in JSON Schema */
  inputSchema: unknown
  outputSchema: unknown
  contextSchema?: unknown
  mutates?: string[]
  requires?: Capabilities
  approval?: ApprovalClass
  riskLevel?: RiskLevel
  costClass?: CostClass
  timeoutMs?: number
  retry?: RetryPolicy
  idempotent?: boolean
  defaultImplementation?: string
  driverConstraints?: { forbid?: string[]; requireKind?: DriverKind[] }
  /** the action that it carries out (AIP-39) */
  implements?: ActionRef
  inputsFiles?: Record<string, FileBinding>
  outputsFiles?: Record<string, FileBinding>
  tags?: string[]
  examples?: { name: string; input: unknown; output?: unknown; note?: string }[]
  metadata?: Record<string, unknown>
  /** A tool is a contract; what carries it out is a driver (AIP-30). */
  execute?: never
}

/** What a driver's function is handed beside the call. */
export interface DriverContext {
  driver: { id: string; version: string }
  region: string[]
  secrets: Record<string, string>
  signal: AbortSignal
  /** of `execute`: what the call is known by; the same in all of its attempts, and for whoever asks again with its key */
  operationKey?: string
  /** of `execute`: another tool, one that the contract's `requires.tools` names, with the rights of whoever made this call */
  call?: (tool: string, input?: Record<string, unknown>) => Promise<unknown>
}
export interface ExecuteArgs {
  /** valid against the contract */
  input: unknown
  /** valid against the contract's contextSchema, where it has one */
  context: Record<string, unknown>
  driverCtx: DriverContext
  signal: AbortSignal
}
export type ExecuteFn = (args: ExecuteArgs) => Promise<unknown>
export interface LoginArgs {
  context: DriverContext
  signal: AbortSignal
}
export type LoginResult =
  | { ok: true }
  | { ok: false; reason: "user_cancelled" | "callback_failed" | "upstream_error"; message?: string }
export type RefreshArgs = LoginArgs
export type RefreshResult =
  | { ok: true; nextRefreshAt?: string }
  | { ok: false; reason: "auth_expired" | "upstream_error"; message?: string }
export interface ParseOutputArgs {
  exitCode?: number
  stdout: string | Uint8Array
  stderr: string
  expected: { format: "text" | "json" | "yaml" | "binary" }
}
export interface ParseOutputResult {
  ok: boolean
  value?: unknown
  error?: { code: string; message: string; retryable?: boolean }
}
export interface DetectExpiryArgs {
  exitCode?: number
  status?: number
  exception?: string
  stdout: string
  stderr: string
}

interface ImplementsBlock {
  tool: string
  version: string
  schema_narrowing?: Spelled<{ drop_inputs?: string[]; drop_outputs?: string[] }>
  mapping?: Record<string, string | { from: string; transform?: string }>
  cost_override?: CostOverride
  timeout_override_ms?: number
  retry_override?: RetryPolicy
  metadata?: Record<string, unknown>
}
export type ImplementsEntry = Spelled<ImplementsBlock>
type InstallMethod = { method: string } & Record<string, unknown>
type VersionCheck = Spelled<{ cmd: string; parse: string; range: string; timeout_ms?: number }>
type Block = Record<string, unknown>

interface Functions {
  login?: (args: LoginArgs) => Promise<LoginResult>
  refresh?: (args: RefreshArgs) => Promise<RefreshResult>
  detectExpiry?: (args: DetectExpiryArgs) => boolean
  /** named in `mapping`; each from one value to another */
  transforms?: Record<string, (value: unknown) => unknown>
}

interface DriverBase extends Functions {
  id: string
  name: string
  description: string
  version?: string
  implements: ImplementsEntry[]
  install?: InstallMethod[]
  versionCheck?: VersionCheck
  setup?: Block[]
  auth?: Block
  runner?: RunnerDefinition | RunnerHandle | string | { ref: string } | { file: string }
  network?: { egress: string[]; ingress?: string[] }
  region?: string[]
  policyTags?: string[]
  costOverride?: CostOverride
  timeoutOverrideMs?: number
  retryOverride?: RetryPolicy
  healthCheck?: Block
  requires?: Block
  examples?: { goal: string; note?: string; cmd?: string }[]
  /** one function a tool; absent: the kind's own dispatch */
  execute?: Record<string, ExecuteFn>
  parseOutput?: (args: ParseOutputArgs) => ParseOutputResult
  metadata?: Record<string, unknown>
  tags?: string[]
}

/** AIP-30, with what each kind adds (AIP-29, 31, 32, 33); that is not needed where `execute` is there */
export interface DriverDefinition extends DriverBase {
  kind: DriverKind

  /** cli */
  bin?: string
  binArgs?: string[]
  sandbox?: Block
  output?: Block

  /** http */
  baseUrl?: string
  defaultHeaders?: Record<string, string>
  defaultMethod?: "GET" | "POST" | "PUT" | "PATCH" | "DELETE"
  rateLimit?: Block
  /** http and sdk */
  streaming?:
    | { transport: "sse" | "ndjson" | "chunked"; event_field?: string; terminator?: string }
    | { mode: "async-iterator" | "callback" }

  /** mcp */
  server?: Block
  transport?: "stdio" | "sse" | "http"
  protocolVersion?: string
  prompts?: Block[]
  resources?: Block[]
  connectionOptions?: Spelled<{ timeout_ms?: number; max_retries?: number; keepalive?: boolean }>

  /** sdk */
  package?: string
  packageManager?: "npm" | "pnpm" | "yarn" | "pip" | "poetry" | "cargo" | "go" | "local"
  packageVersion?: string
  entrypoint?: string
  importStyle?: "esm" | "cjs" | "python" | "rust-crate" | "go-module"
  clientOptions?: Block
}

export interface CommandTree {
  [name: string]: string | CommandTree
}
/** AIP-29 */
export interface CliDefinition extends Functions {
  id: string
  name: string
  description: string
  version?: string
  bin: string
  binArgs?: string[]
  install?: InstallMethod[]
  versionCheck?: VersionCheck
  sandbox?: Block
  commands?: Record<string, string | CommandTree>
  setup?: Block[]
  auth?: Block
  runner?: DriverBase["runner"]
  output?: Block
  requires?: Block
  examples?: DriverBase["examples"]
  parseOutput?: (args: ParseOutputArgs & { exitCode: number; stdout: string }) => ParseOutputResult
  tags?: string[]
  metadata?: Record<string, unknown>
}

/** AIP-17 */
export interface RunnerDefinition {
  engine?: "in-process" | "subprocess" | "sandbox"
  image?: string
  needs?: { language?: "node" | "python" | "multi"; native?: string[]; npm?: string[]; pip?: string[] }
  limits?: { memory_mb?: number; timeout_ms?: number; cpu_ms?: number }
}
export interface RunnerHandle {
  readonly engine: "in-process" | "subprocess" | "sandbox"
  /** null: not the engine `sandbox`, or one that picks its image from `needs` when it runs */
  readonly image: string | null
  readonly needs: {
    readonly language: "node" | "python" | "multi"
    readonly native: readonly string[]
    readonly npm: readonly string[]
    readonly pip: readonly string[]
  }
  readonly limits: { readonly memory_mb: number; readonly timeout_ms: number; readonly cpu_ms: number }
  /** `in-process` from a manifest that nobody vouches for is a process of its own all the same. */
  resolveForOrigin(origin: string): RunnerHandle & { readonly downgraded: boolean }
}

export type AccessEntry =
  | { role: string }
  | { userId: string }
  | { cap: string }
  | { tool: string }
  | { workflow: string }
export interface AccessGrants {
  reveal?: AccessEntry[]
  bind?: AccessEntry[]
  rotate?: AccessEntry[]
}
/** AIP-19 */
export interface SecretDefinition {
  slug: string
  name: string
  description: string
  kind?: "opaque" | "oauth" | "keypair" | "json"
  backend?: string
  access?: AccessGrants
  audit?: { retention?: string; pii?: boolean; classification?: string[] }
  exposures?: Block[]
  tags?: string[]
  metadata?: Record<string, unknown>
}
/** Who asks for a secret, and for what. */
export interface SecretRequest {
  readonly roles?: readonly string[]
  readonly userId?: string
  readonly caps?: readonly string[]
  readonly tool?: string
  readonly workflow?: string
}
export type AccessVerdict =
  | { readonly granted: true; readonly granted_by: AccessEntry }
  | { readonly granted: false; readonly reason: string }

/** AIP-36 */
export interface SandboxDefinition {
  schema?: "sandbox/v1"
  id?: string
  version?: string
  provider: string
  config: Record<string, unknown>
  limits?: { timeoutMs?: number; memoryMb?: number; cpuMs?: number }
  env?: { auth?: { ref?: string; state?: { env?: string[] } }; passthrough?: string[] }
  network?: { egress: string[] }
  mounts?: {
    source: string | { ref: string } | { inline: Block } | { file: string }
    at: string
    mode?: "read-write" | "read-only"
  }[]
  lifecycle?: { pauseAfterIdleMs?: number; destroyOnWorkspaceClose?: boolean }
  readOnly?: boolean
  metadata?: Record<string, unknown>
}
export interface SandboxHandle {
  readonly provider: string
  readonly config: Readonly<Record<string, unknown>>
  readonly limits: { readonly timeoutMs: number; readonly memoryMb?: number; readonly cpuMs?: number }
  /** absent in the definition: none */
  readonly egress: readonly string[]
  readonly mounts: readonly {
    readonly source: unknown
    readonly at: string
    readonly mode: "read-write" | "read-only"
  }[]
  readonly readOnly: boolean
  /** the block as manifests spell it */
  readonly front: Readonly<Record<string, unknown>>
}

type IdentityRef = string | { ref: string } | { file: string } | { name: string; email: string }
type Condition = { kind: string } & Record<string, unknown>
/** AIP-38 */
export interface PolicyDefinition {
  schema?: "policy/v1"
  id?: string
  version?: string
  default?: "allow" | "deny"
  grants?: {
    principal: IdentityRef
    actions: { action: string; scope?: string }[]
    conditions?: Condition[]
    ttlSeconds?: number
    grantedAt?: string
    grantedBy?: IdentityRef
    revoked?: boolean
  }[]
  defaults?: Record<string, Record<string, unknown>>
  limits?: { kind: string; value: number; scope?: string; per?: string; appliesTo?: string[] }[]
  requirements?: ({ kind: string; appliesTo?: string[] } & Record<string, unknown>)[]
  metadata?: Record<string, unknown>
}

/** AIP-39 */
export interface ActionDefinition {
  schema?: "action/v1"
  id: string
  description: string
  version?: string
  category?: string
  verb?: string
  targetKind?: string
  mutates?: string[]
  requires?: Capabilities
  approval?: ApprovalClass
  riskLevel?: RiskLevel
  firesEvents?: string[]
  /** a hint for catalogues, never read as authority */
  implementations?: { kind: "tool" | "driver" | "ui" | "lifecycle"; ref: string }[]
  tags?: string[]
  examples?: { name: string; scenario: string; note?: string }[]
  metadata?: Record<string, unknown>
}

export interface DefineOptions {
  /**
   * The module that this is written in: `import.meta.url`. A driver with functions of its own needs it, because they
   * are imported inside a sandbox; paths to other manifests are taken from its folder.
   */
  readonly module?: string
  /** the export of that module that holds the definition; default `default` */
  readonly export?: string
}

export interface ToolHandle extends DefinedManifest {
  readonly doctype: "tool"
  readonly id: string
  readonly contract: ToolContract
}
export interface DriverHandle extends DefinedManifest {
  readonly doctype: "driver" | "cli"
  readonly id: string
  readonly contract: DriverContract
}
export interface ActionHandle extends DefinedManifest {
  readonly doctype: "action"
  readonly id: string
  readonly contract: ActionContract
}
export interface PolicyHandle extends DefinedManifest {
  readonly doctype: "policy"
  readonly id: string
  readonly contract: PolicyContract
}
export interface SecretHandle extends DefinedManifest {
  readonly doctype: "secrets"
  readonly slug: string
  /** what stands before the slash of the slug */
  readonly namespace?: string
  readonly kind: "opaque" | "oauth" | "keypair" | "json"
  readonly access: Required<AccessGrants>
  readonly audit: { readonly retention?: string; readonly pii: boolean; readonly classification: readonly string[] }
  /** May this be had? Any entry that fits is enough; none at all is a no. */
  checkAccess(operation: "reveal" | "bind" | "rotate", request: SecretRequest): AccessVerdict
}
