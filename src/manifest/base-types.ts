/**
 * The types of manifests that no kind of driver bears on: JSON, messages, sources, contracts of tools and actions.
 *
 * What reads a kind's own part takes them from here; `types.ts` adds the rest, and is what every other room reads.
 */
export type JsonValue = null | boolean | number | string | readonly JsonValue[] | { readonly [key: string]: JsonValue }
export type JsonObject = { readonly [key: string]: JsonValue }
/** A JSON Schema (2020-12) as found in a manifest: an object that compiled under our limits. */
export type JsonSchema = JsonObject

export type ManifestMode = "strict" | "compat"
export type ManifestKind = "tool" | "driver" | "cli" | "secrets" | "action" | "policy" | "code" | "auth"

/** One message about one manifest: always a file, mostly a field path, always a way to mend it. */
export interface Diagnostic {
  readonly severity: "error" | "warning"
  /** stable machine-readable rule name, e.g. `approval-auto-with-mutates` */
  readonly rule: string
  readonly file: string
  /** dotted path in the frontmatter, e.g. `implements[0].version`; empty for the whole file */
  readonly path: string
  readonly message: string
  /** what to write instead */
  readonly fix: string
  /** where that stands in the file, from 1 on, where it is known */
  readonly line?: number
  readonly column?: number
}

export interface ManifestSource {
  readonly file: string
  readonly mode: ManifestMode
  /** `sha256:<hex>` over the JCS form of the validated frontmatter */
  readonly digest: string
  /** which spec leniencies were applied in compat mode */
  readonly leniencies: readonly string[]
}

export type DriverKind = "cli" | "http" | "mcp" | "sdk" | "builtin"
export type Approval =
  | { readonly class: "auto" | "on-mutate" | "always" }
  | { readonly class: "policy"; readonly ref: string }
export type CostClass = "trivial" | "metered" | "expensive"

/** `workspace:/notes/*` → { class: "workspace", scope: "/notes/*" } */
export interface MutateScope {
  readonly class: string
  readonly scope: string
  readonly text: string
}

export interface RetryRule {
  readonly maxAttempts: number
  readonly backoff: "fixed" | "exponential"
  readonly initialMs: number
}

declare const filePath: unique symbol
/** Made by `values/file-path.ts` alone. */
export type FilePath = string & { readonly [filePath]: true }
/** A file of the workspace that a tool gets or gives; tokens such as `<runId>` stand in its path. */
export interface FileContract {
  readonly path: FilePath
  readonly mode: "ro" | "rw"
  readonly contentType?: string
}
/** By the name that the tool finds it under. */
export type FileContracts = Readonly<Record<string, FileContract>>

/** Fields that a tool may leave to the action it carries out (AIP-39). */
export type Inherited = "mutates" | "network" | "secrets" | "tools" | "approval" | "risk_level"

export interface ToolContract {
  readonly kind: "tool"
  readonly id: string
  readonly name: string
  readonly description: string
  readonly version: string
  readonly major: number
  readonly inputs: JsonSchema
  readonly outputs: JsonSchema
  /** from `metadata.contextSchema` (C-36) */
  readonly contextSchema?: JsonSchema
  readonly idempotent: boolean
  readonly mutates: readonly MutateScope[]
  readonly requires: {
    /** undefined: silent; `[]`: explicitly none, which forces the call's egress empty (C-14) */
    readonly network?: readonly string[]
    readonly secrets: readonly string[]
    readonly tools: readonly string[]
  }
  readonly approval: Approval
  readonly riskLevel: 0 | 1 | 2 | 3
  readonly costClass: CostClass
  readonly timeoutMs: number
  readonly retry?: RetryRule
  readonly defaultImplementation?: string
  readonly driverConstraints: { readonly forbid: readonly DriverKind[]; readonly requireKind: readonly DriverKind[] }
  /** the ACTION this tool carries out: `id`, `id@major`, `@owner/…/slug`, `file:PATH`, or `inline:id` */
  readonly implements?: string
  /** defined on the spot: this tool's alone, and nothing is granted by its name */
  readonly inlineAction?: ActionContract
  /** what it leaves to its action; the catalogue fills it in */
  readonly unsaid?: readonly Inherited[]
  /** what it has from its action, verbatim */
  readonly action?: Pick<ActionContract, "id" | "version" | "category" | "verb" | "targetKind" | "firesEvents">
  /** AIP-16 file contracts */
  readonly inputsFiles?: FileContracts
  readonly outputsFiles?: FileContracts
  readonly tags: readonly string[]
  readonly examples: readonly {
    readonly name: string
    readonly input: JsonObject
    readonly output?: JsonValue
    readonly note?: string
  }[]
  readonly conform?: readonly ConformCase[]
  readonly metadata: JsonObject
  /** from `metadata.operation` */
  readonly operation?: Operation
  readonly source: ManifestSource
}

/** What a tool's author says of one way for it to fail. */
export interface OperationError {
  readonly status?: number
  readonly code?: string
  readonly meaning?: string
  /** what the caller should do */
  readonly action?: string
  readonly retryable?: boolean
}

/** How a tool is run and told of, beyond AIP-14. */
export interface Operation {
  readonly status?: "draft" | "active" | "deprecated" | "disabled"
  /** milliseconds since the epoch */
  readonly deprecation?: {
    readonly introduced?: number
    readonly deprecated?: number
    readonly removed?: number
    readonly replacement?: string
    readonly compatibility?: string
  }
  readonly errors: readonly OperationError[]
  /** statuses of a service after which another attempt is made; absent: the host's own judgement */
  readonly retryOnStatus?: readonly number[]
  /** calls at once in one host */
  readonly concurrency?: number
  readonly rate?: { readonly perMinute: number; readonly burst: number }
  readonly dataClassification?: string
  readonly permissionClass?: string
  /** fields of the input whose digests a receipt keeps */
  readonly auditFields: readonly string[]
  /** the tool that undoes what this one did */
  readonly compensation?: { readonly tool: string; readonly note?: string }
  /** the tool that says what became of a call of this one: `id`, or `id@major` */
  readonly statusTool?: string
  /** whose words for errors its callers know */
  readonly spelling?: "aruntime"
}

/** What a run must come to, from `metadata.conform`. */
export interface ConformCase {
  readonly name: string
  readonly note?: string
  /** of a driver's case */
  readonly tool?: string
  /** absent: it adds to the example of that name */
  readonly input?: JsonObject
  readonly context?: JsonObject
  /** a folder beside the manifest; default: `example`, where it is there */
  readonly workspace?: string
  readonly files: readonly { readonly path: string; readonly content: string }[]
  /** calls that make the workspace ready */
  readonly before: readonly { readonly tool: string; readonly input: JsonObject; readonly driver?: string }[]
  readonly output?: JsonValue
  readonly schema?: JsonSchema | boolean
  readonly pattern?: string
  readonly error?: string
  /** `kind path`, globs allowed; all that changes and nothing else */
  readonly effects?: readonly string[]
  /** a recording beside the manifest */
  readonly replay?: string
}

export interface DriverLimits {
  readonly memoryMb?: number
  readonly timeoutMs?: number
  readonly cpuMs?: number
  readonly diskMb?: number
  readonly pids?: number
  readonly outputBytes?: number
}

export interface EgressBudgetSpec {
  readonly bytesOut?: number
  readonly bytesIn?: number
  readonly requests?: number
  readonly connections?: number
  readonly distinctNames?: number
  readonly connectTimeoutMs?: number
  readonly idleTimeoutMs?: number
}

/** How the output of a command is read. */
export type OutputFormat = "text" | "json" | "yaml" | "binary"

export interface ActionContract {
  readonly kind: "action"
  readonly id: string
  readonly description: string
  readonly version: string
  readonly category: string
  readonly verb: string
  readonly targetKind: string
  readonly mutates: readonly MutateScope[]
  readonly requires: ToolContract["requires"]
  readonly approval: Approval
  readonly riskLevel: 0 | 1 | 2 | 3
  readonly firesEvents: readonly string[]
  readonly source: ManifestSource
}
