/** What goes in and out of the host: the shapes the CLI, the API and library users see, a file a noun. */
import type { DefinedManifest } from "../manifest/read/defined.ts"
import type { Diagnostic } from "../manifest/types.ts"
import type { ControlReport, SandboxBackend } from "../sandbox/backend.ts"
import type { BuiltinFunction } from "./builtin-function.ts"
import type { GrantsOfHost, TokensOfHost } from "./types/access.ts"
import type { DecideOptions, HeldApproval, HeldApprovalDetail } from "./types/approval.ts"
import type { ListOptions } from "./types/asking.ts"
import type {
  BegunCall,
  CallOptions,
  CallRequest,
  CallsOptions,
  RecordedCall,
  RunOptions,
  RunRequest,
  WhyOptions,
} from "./types/call.ts"
import type { DriverListing, ReloadReport, ToolListing, UnloadedListing } from "./types/catalogue.ts"
import type { InstallDriverOptions, InstallReport, PruneReport, ReviewOptions, ReviewReport } from "./types/drivers.ts"
import type { Envelope } from "./types/envelope.ts"
import type {
  AuthReport,
  LoginDriverOptions,
  LoginReport,
  LogoutDriverOptions,
  LogoutReport,
  WorkspaceOptions,
} from "./types/logins.ts"
import type { QuestionsOfHost } from "./types/questions.ts"
import type { ReceiptsExport, ReceiptsOptions, ReceiptsReport } from "./types/receipts.ts"
import type { SecretsOfHost } from "./types/secrets.ts"
import type { WhyReport } from "./types/why.ts"

export type { CallError } from "./failure.ts"
export type * from "./types/access.ts"
export type * from "./types/approval.ts"
export type * from "./types/asking.ts"
export type * from "./types/call.ts"
export type * from "./types/catalogue.ts"
export type * from "./types/drivers.ts"
export type * from "./types/envelope.ts"
export type * from "./types/logins.ts"
export type * from "./types/questions.ts"
export type * from "./types/receipts.ts"
export type * from "./types/secrets.ts"
export type * from "./types/why.ts"

export interface HostOptions {
  /** data folder; default `$CAISSON_DATA`, else `~/.caisson` */
  readonly data?: string
  /** more folders with manifests, and what the define functions return; the bundled catalogue is always there */
  readonly manifests?: readonly (string | DefinedManifest)[]
  /**
   * Functions of the program itself, which drivers of kind builtin name (`metadata.builtin.host_id`, else the tool's id).
   * They run in this process, unsealed, and the receipts of their calls say so.
   */
  readonly builtins?: Readonly<Record<string, BuiltinFunction>>
  readonly backend?: "namespace" | "docker" | SandboxBackend
  /** start the sandbox backend at once, while manifests load, because a call is certain to follow */
  readonly warm?: boolean
  /** remember what every call answered, for who asks later; default: only of calls with a key */
  readonly record?: boolean
  /** operator's config file; default `<data>/caisson.yaml` where it exists. Never read from a workspace. */
  readonly config?: string
}

export interface Host extends AsyncDisposable {
  readonly data: string
  call(request: CallRequest, options?: CallOptions): Promise<Envelope>
  /** The same, for who wants to know its id before it ends. */
  begin(request: CallRequest, options?: CallOptions): Promise<BegunCall>
  /** Any command, through the same pipeline as a call; for the operator. */
  run(request: RunRequest, options?: RunOptions): Promise<Envelope>
  why(request: CallRequest, options?: WhyOptions): Promise<WhyReport>
  /** calls whose effects wait for an answer that the caller may see, the oldest first */
  approvals(options?: ListOptions): Promise<readonly HeldApproval[]>
  /** one of them in full; undefined where there is none that the caller may see */
  approval(id: string, options?: ListOptions): Promise<HeldApprovalDetail | undefined>
  /** A call that this host remembers; undefined where there is none that the caller may be told of. */
  recorded(id: string, options?: ListOptions): Promise<RecordedCall | undefined>
  /** the latest first */
  calls(options?: CallsOptions): Promise<readonly RecordedCall[]>
  /** who may use the daemon's API */
  readonly tokens: TokensOfHost
  /** yeses given beforehand: this tool, in this workspace, so many times, until then */
  readonly grants: GrantsOfHost
  /** The evidence of what is the caller's; of all of its tenant for operators. */
  receipts(options?: ReceiptsOptions): Promise<ReceiptsReport>
  /** The log as it lies there, line by line; of a tenant's operator, that tenant's lines. */
  exportReceipts(options?: ListOptions): Promise<ReceiptsExport>
  /** Commit exactly what was held, or throw it away. */
  decide(id: string, answer: "approve" | "deny", options?: DecideOptions): Promise<Envelope>
  /** what the caller may use; the operator is told of everything */
  tools(options?: ListOptions): Promise<readonly ToolListing[]>
  drivers(options?: ListOptions): Promise<readonly DriverListing[]>
  /** manifests that did not load, and warnings on those that did; for the operator */
  diagnostics(options?: ListOptions): readonly Diagnostic[]
  /** tools and drivers whose manifests did not load: what they claim to be, and why they are not available; for the operator */
  unloaded(options?: ListOptions): readonly UnloadedListing[]
  /** A driver's packages, installed or mended, and its version check; for the operator. */
  install(driver: string, options?: InstallDriverOptions): Promise<InstallReport>
  /** Installed packages that no registered driver asks for, removed; for the operator. */
  prune(options?: ListOptions): Promise<PruneReport>
  /** the vault, by name; values go in and never come out here */
  readonly secrets: SecretsOfHost
  /** what tools ask people */
  readonly questions: QuestionsOfHost
  /** Set a driver up and log in, for the caller's user in one workspace. */
  login(driver: string, options?: LoginDriverOptions): Promise<LoginReport>
  /** End a login: what it left is wiped. */
  logout(driver: string, options?: LogoutDriverOptions): Promise<LogoutReport>
  /** Where the logins of the caller's user stand, in one workspace. */
  auth(options?: WorkspaceOptions): Promise<AuthReport>
  /** What was accepted of what the server behind a driver says of itself, and what waits to be; for the operator. */
  review(driver: string, options?: ReviewOptions): Promise<ReviewReport>
  doctor(): Promise<readonly ControlReport[]>
  /** Manifests and config, read again: taken whole for calls from now on, or not at all; for the operator. */
  reload(options?: ListOptions): Promise<ReloadReport>
  close(): Promise<void>
}
