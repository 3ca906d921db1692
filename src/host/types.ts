/** What goes in and out of the host: the shapes the CLI, the API and library users see. */
import type {
  Claims,
  CostClass,
  Diagnostic,
  DriverContract,
  DriverKind,
  JsonObject,
  JsonValue,
  ToolContract,
} from "../manifest/types.ts"
import type { DefinedManifest } from "../manifest/read/defined.ts"
import type { ControlReport, Denial, SandboxBackend, SandboxProfile } from "../sandbox/backend.ts"
import type { Effect } from "../sandbox/effects/types.ts"
import type { Caller } from "./access/caller.ts"
import type { BuiltinFunction } from "./builtin-function.ts"
import type { AccessRecord } from "./access-record/types.ts"
import type { Attachment } from "./attachment.ts"
import type { CallEvent } from "./events.ts"
import type { CallError } from "./failure.ts"
import type { LoginProgress, Person } from "./person.ts"
import type { LoginState } from "./login-state.ts"
import type { AuditEvent } from "./receipts/event.ts"
import type { FrozenLayer, InstallProgress } from "./install/types.ts"
import type { ReasonCode } from "./reasons.ts"
import type { SecretName } from "./secrets/vault.ts"

export type { CallError } from "./failure.ts"

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

/** What is asked: a wire type, with nothing in it of who asks. A key that is not here is refused. */
export interface CallRequest {
  /** tool id, or `id@major` */
  readonly tool: string
  readonly input?: JsonValue
  readonly workspace?: string
  /** per-call context (contextSchema); `pinnedProvider` pins a driver */
  readonly context?: JsonObject
  readonly driver?: string
  /** run, show the effects, commit nothing */
  readonly plan?: boolean
  /** record what it asks for: files, programs, hosts (`access` of the envelope); refused where the backend cannot */
  readonly observe?: boolean
}

/** Any command, without a manifest: what it may do is what is named here, and nothing else. */
export interface RunRequest {
  /** the program (a name in the system's folders, a path) and its arguments */
  readonly command: readonly string[]
  readonly workspace?: string
  /** hosts that it may reach, as a driver's egress entries; none: no network */
  readonly allow?: readonly string[]
  /** globs of the workspace that it may write; none: nothing */
  readonly write?: readonly string[]
  /** globs of the workspace that it may read, beside those; none: all of it */
  readonly read?: readonly string[]
  /** programs that it may start, by name */
  readonly exec?: readonly string[]
  /** secrets of the vault that it is given, as variables */
  readonly secrets?: readonly string[]
  /** run, show the effects, commit nothing */
  readonly plan?: boolean
  /** default: a day */
  readonly timeoutMs?: number
  /** record what it asks for; default: yes, where the backend can */
  readonly observe?: boolean
}
export interface RunOptions
  extends Pick<
    CallOptions,
    "caller" | "signal" | "approved" | "approve" | "onEvent" | "onChanges" | "record" | "replay"
  > {
  /** who takes its streams while it runs; absent: its output is in the value, bounded */
  readonly attachment?: Attachment
  /** what it reads, where nobody takes its streams */
  readonly stdin?: Uint8Array
}

export type ReportedDenial = Denial & { readonly message: string; readonly hint: string }
/** What a person is asked. The answer holds for exactly what is shown here. */
export interface ApprovalQuestion {
  readonly call: string
  readonly tool: string
  /** absent before a driver was chosen */
  readonly driver?: string
  /** `call`: before anything runs. `effects`: the call ran, no process of it is left, and nothing is committed yet. */
  readonly about: "call" | "effects"
  readonly approval: "auto" | "on-mutate" | "always"
  readonly message: string
  readonly mutates: readonly string[]
  /** empty before the run */
  readonly effects: readonly ReportedEffect[]
  readonly denied: readonly ReportedDenial[]
  /** the same effects with what files hold before and after, deletions first; empty before the run */
  readonly changes: readonly ContentChange[]
  /** aborted when the answer no longer matters: the call was cancelled, or waited too long */
  readonly signal: AbortSignal
}

/** What a tool's other side wants to know from a person, as a flat JSON Schema. */
export interface ElicitQuestion {
  readonly message: string
  readonly schema: JsonObject
}
export type ElicitAnswer =
  | { readonly action: "accept"; readonly content: JsonObject }
  | { readonly action: "decline" | "cancel" }

/** Who asks. */
export interface ListOptions {
  /** default: this process, whose OS user owns the data folder */
  readonly caller?: Caller
}
export interface WhyOptions extends ListOptions {
  readonly signal?: AbortSignal
  /** why what was given as input or context is no JSON: the call is refused for it, and leaves a receipt */
  readonly unreadable?: string
  /** an empty folder for a call whose request names no workspace; its tool must change nothing there. Default: the folder that this process is in */
  readonly empty?: string
}
/** Beside what is asked: who asks, and how they can be reached while the call is under way. */
export interface CallOptions extends WhyOptions {
  /** a yes, given beforehand, to what this call asks approval for; it counts where the caller may approve */
  readonly approved?: boolean
  /** so many milliseconds this call waits for its workspace, instead of failing on a conflict with others that change it */
  readonly wait?: number
  /** a file: what passes the proxy is kept there, without secrets */
  readonly record?: string
  /** a recording: the network is closed, and it answers */
  readonly replay?: string
  /** the caller's own name for this call: brought again, it is given the first answer and nothing is run */
  readonly key?: string
  /** Hear of what happens in the call while it does. It cannot fail or hold up the call. */
  readonly onEvent?: (event: CallEvent) => void
  /** Of a plan: what it would change, with what files hold before and after. It cannot fail or hold up the call. */
  readonly onChanges?: (changes: readonly ContentChange[]) => void
  /** Ask a person; undefined: nobody answered. Where it is absent, a call that needs approval ends as `approval_required`. */
  readonly approve?: (question: ApprovalQuestion) => Promise<boolean | undefined>
  /** Ask a person for what a tool wants to know while it runs. Where it is absent, the tool is told that nobody is there. */
  readonly elicit?: (question: ElicitQuestion) => Promise<ElicitAnswer>
}

/** A call that ran, whose effects wait for a person's answer. */
export interface HeldApproval {
  /** the call's id */
  readonly id: string
  /** nothing was run: the question is whether the call may be made; absent: about what a call changed */
  readonly about?: "call"
  /** `id@major` */
  readonly tool: string
  readonly driver: string
  readonly user: string
  readonly workspace: string
  readonly approval: "auto" | "on-mutate" | "always"
  /** when it was held, and until when it is */
  readonly held: string
  readonly expires: string
  /** how many paths it changes */
  readonly changes: number
  readonly bytes: number
  /** what was remembered of it cannot be read any more: told to operators alone; denying it throws it away */
  readonly damaged?: true
}
export interface HeldApprovalDetail extends HeldApproval {
  /** false: what lies on disk is not what was held, so nothing of it is shown, nor can it be approved */
  readonly intact: boolean
  readonly mutates: readonly string[]
  /** deletions first */
  readonly effects: readonly ReportedEffect[]
  readonly denied: readonly ReportedDenial[]
  /** the same effects with what files hold before and after, deletions first; empty where it is not intact */
  readonly content: readonly ContentChange[]
  /** of a call that was not run: why it is asked about, what it would be given, and what it costs */
  readonly message?: string
  readonly input?: JsonObject
  readonly context?: JsonObject
  readonly cost?: JsonObject
}
export interface DecideOptions extends ListOptions {
  readonly signal?: AbortSignal
  /** why, in words, for the decision's receipt */
  readonly reason?: string
}

/** One effect as a person reads it. */
export interface ContentChange {
  readonly kind: ReportedEffect["kind"]
  readonly path: string
  readonly declared: boolean
  /** lines of a unified diff, without its names; absent where there is no text to compare */
  readonly diff?: string
  /** what stands in its place, or what was cut off it */
  readonly note?: string
  /** octal, before and after */
  readonly mode?: string
  readonly target?: string
  readonly from?: string
}
export type ReportedEffect = Effect & { readonly declared: boolean; readonly committed: boolean }

interface EnvelopeBase {
  readonly call: string
  /** `jq@1`; absent when no driver was chosen */
  readonly driver?: string
  readonly effects: readonly ReportedEffect[]
  readonly denied: readonly ReportedDenial[]
  readonly receipt: string
  /** of a call that was observed, once it ran */
  readonly access?: AccessRecord
}
export type Envelope =
  | (EnvelopeBase & {
      readonly ok: true
      readonly value: JsonValue
      /** the end of what the program said beside its value */
      readonly stderr?: string
      readonly notes?: readonly string[]
    })
  | (EnvelopeBase & {
      readonly ok: false
      readonly error: CallError
      readonly notes?: readonly string[]
      /** its effects are held, and approving commits exactly those; the address is the API's */
      readonly approval?: { readonly id: string; readonly url: string; readonly expires: string }
    })

export type Availability =
  | { readonly available: true; readonly version?: string }
  | { readonly available: false; readonly code: ReasonCode; readonly reason: string; readonly fix: string }

export interface ToolListing {
  readonly contract: ToolContract
  readonly drivers: readonly string[]
  /** of those, how many a call could not be served by: for want of a login or set-up, or for anything else */
  readonly unauthed: number
  readonly unavailable: number
  readonly availability: Availability
}
export interface DriverListing {
  readonly contract: DriverContract
  readonly availability: Availability
}

export interface UnloadedListing {
  readonly file: string
  readonly kind: "tool" | "driver"
  /** what it says of itself */
  readonly claims: Claims
  readonly availability: Availability
}

export type RoutePhase = "candidates" | "capability" | "policy" | "pin" | "rank" | "selected"
export interface RouteRow {
  readonly driver: string
  readonly kind: DriverKind
  /** the phase that dropped it, or `selected` / `rank` for the ones that lived */
  readonly phase: RoutePhase
  readonly reason: string
  /** the stable word for the reason, of those that were dropped */
  readonly code?: string
  readonly fix?: string
  readonly costUnitsPerCall?: number
  /** of the units; absent: USD */
  readonly currency?: string
  readonly costClass?: CostClass
}
/** What a call is held to. Without `executables` no program is run and no sandbox made: the host itself acts. */
export interface CallProfile extends Omit<SandboxProfile, "executables"> {
  readonly executables?: SandboxProfile["executables"]
}

export interface WhyReport {
  readonly tool: string
  readonly selected?: string
  readonly error?: CallError
  readonly rows: readonly RouteRow[]
  /** the command line: as it would be where the input was given whole, else the driver's templates */
  readonly argv?: readonly string[]
  /** hosts that the call could reach: what the driver declares and the operator allows */
  readonly egress?: readonly string[]
  readonly mutates?: readonly string[]
  /** who has to say yes, and about what: the strictest of contract, action, policy and host */
  readonly approval?: { readonly class: string; readonly effects: "commit" | "ask" }
  /** the sealed profile the call would get; secrets never in it */
  readonly profile?: CallProfile
  readonly profileDigest?: string
}

/** Whose a secret is; default: the caller's own user, in every workspace, for every driver. */
export interface SecretOptions extends ListOptions {
  readonly user?: string
  /** for everybody */
  readonly shared?: boolean
  /** a folder: only in calls on it */
  readonly workspace?: string
  /** only for this driver */
  readonly driver?: string
}
type SecretAnswer<T> = Promise<
  { readonly ok: true; readonly value: T } | { readonly ok: false; readonly error: CallError }
>
export interface SecretListing extends SecretName {
  /** where the scope's workspace was when it was first named here */
  readonly folder?: string
}
export interface SecretsOfHost {
  set(slug: string, value: string, options?: SecretOptions): SecretAnswer<undefined>
  /** whether there was one */
  remove(slug: string, options?: SecretOptions): SecretAnswer<boolean>
  /** names and scopes, never values */
  list(options?: ListOptions): SecretAnswer<readonly SecretListing[]>
  /** New keys. `oldKey`: the file of the key that the vault is under, where the operator replaced that. */
  rotate(options?: ListOptions & { readonly oldKey?: string }): SecretAnswer<undefined>
}

/** A call as it is remembered. */
export interface RecordedCall {
  readonly call: string
  readonly user: string
  readonly tool: string
  /** as its caller named it */
  readonly workspace: string
  readonly state: "running" | "settled"
  readonly began: string
  readonly ended?: string
  /** what it answered; absent while it runs */
  readonly envelope?: Envelope
}
/** A call under way. */
export interface BegunCall {
  /** its id, or that of the call that its key stands for; `none` where there is none */
  readonly call: string
  readonly envelope: Promise<Envelope>
}
export interface CallsOptions extends ListOptions {
  /** how many at most */
  readonly limit?: number
}

/** Which entries of the log; all that is given must fit. */
export interface ReceiptsOptions extends ListOptions {
  readonly call?: string
  /** `id@major`, or `id` of any */
  readonly tool?: string
  /** whose call it was */
  readonly user?: string
  /** `ok`, or the reason's code */
  readonly verdict?: string
  /** ISO date-times, or days; `until` is not included */
  readonly since?: string
  readonly until?: string
  /** an absolute path: what was committed there or below it */
  readonly wrote?: string
  /** `host` or `host:port` that was reached */
  readonly host?: string
  /** something was denied, or the call itself was */
  readonly denied?: boolean
  readonly limit?: number
  /** what the page before said */
  readonly cursor?: string
}
export type ReceiptsReport =
  | {
      readonly ok: true
      /** entries as they lie in the log, the latest first */
      readonly receipts: readonly AuditEvent[]
      /** for the next page; absent: this was the last */
      readonly next?: string
    }
  | { readonly ok: false; readonly error: CallError }
export type ReceiptsExport =
  /** each line with its newline */
  { readonly ok: true; readonly lines: AsyncIterable<string> } | { readonly ok: false; readonly error: CallError }

export interface TokenOptions extends ListOptions {
  /** whom it stands for; default: the caller's own user */
  readonly user?: string
  readonly tenant?: string
  /** what it is for, in words */
  readonly label?: string
  /** default: yes. Such a token can never approve */
  readonly agent?: boolean
  /** folders that it may be used on, and those below them */
  readonly workspaces?: "any" | readonly string[]
  readonly roles?: readonly string[]
  readonly days?: number
}
export interface TokenListing {
  readonly id: string
  readonly tenant: string
  readonly user: string
  readonly label: string
  readonly agent: boolean
  readonly workspaces: "any" | readonly string[]
  readonly roles: readonly string[]
  readonly made: string
  readonly by: string
  readonly expires?: string
  readonly revoked?: string
}
export interface IssuedToken extends TokenListing {
  /** told this once, and kept nowhere */
  readonly token: string
}
export interface TokensOfHost {
  issue(options?: TokenOptions): SecretAnswer<IssuedToken>
  list(options?: TokenListOptions): SecretAnswer<readonly TokenListing[]>
  revoke(id: string, options?: TokenListOptions): SecretAnswer<undefined>
  /** Who shows it; undefined for one that is no good, whatever the reason. */
  callerOf(token: string): Promise<Caller | undefined>
}
export interface TokenListOptions extends ListOptions {
  readonly tenant?: string
}

export interface GrantOptions extends ListOptions {
  /** `id`, or `id@major` */
  readonly tool: string
  /** for whose calls; default: the caller's own user */
  readonly user?: string
  /** the folder that its calls are on, or `any` */
  readonly workspace?: string
  /** how many calls; default: 1 */
  readonly uses?: number
  /** an ISO moment; or a number of days, by default 1 */
  readonly until?: string
  readonly days?: number
  /** in words, for whoever reads the evidence */
  readonly reason?: string
}
export interface GrantListing {
  readonly id: string
  readonly tenant: string
  readonly user: string
  readonly tool: string
  readonly workspace: string
  readonly uses: number
  readonly used: number
  readonly made: string
  readonly by: string
  readonly expires: string
  readonly revoked?: string
  readonly reason: string
  /** is it good for one more call */
  readonly good: boolean
}
export interface GrantsOfHost {
  /** Who may approve says yes beforehand. */
  create(options: GrantOptions): SecretAnswer<GrantListing>
  list(options?: ListOptions): SecretAnswer<readonly GrantListing[]>
  revoke(id: string, options?: ListOptions): SecretAnswer<undefined>
}

/** What a tool asks a person, while nobody has answered. */
export interface QuestionListing {
  /** the call that asked first */
  readonly id: string
  /** `id@major` */
  readonly tool: string
  readonly user: string
  readonly message: string
  readonly input: JsonObject
  /** the JSON Schema that the answer fits */
  readonly form: JsonObject
  readonly asked: string
  readonly expires: string
}
export interface QuestionsOfHost {
  list(options?: ListOptions): Promise<readonly QuestionListing[]>
  /** A person's answer to one; the call that waits for it goes on. */
  answer(id: string, answer: JsonValue, options?: ListOptions): SecretAnswer<undefined>
}

export interface InstallDriverOptions extends ListOptions {
  readonly signal?: AbortSignal
  readonly onProgress?: (progress: InstallProgress) => void
}
export type InstallReport =
  | {
      readonly ok: true
      /** `id@major` */
      readonly driver: string
      /** what its version check found */
      readonly version?: string
      /** none where the driver brings no packages: then its program is on this machine */
      readonly layers: readonly Pick<FrozenLayer, "digest" | "source" | "packages">[]
    }
  | { readonly ok: false; readonly error: CallError }

export interface ReviewOptions extends ListOptions {
  /** the digest of a word that waits, to be accepted from now on */
  readonly accept?: string
  /** what the driver asks for, in lines: remembered, and told beside what was accepted of it */
  readonly asks?: readonly string[]
}
/** A tool of the server behind a driver, as the server describes it. */
export interface ReviewedTool {
  readonly name: string
  /** `offer` is absent where it was too long to be kept */
  readonly accepted: { readonly digest: string; readonly at: string; readonly by?: string; readonly offer?: JsonObject }
  /** what it says now, where that is something else: calls of it are refused */
  readonly waiting?: { readonly digest: string; readonly at: string; readonly offer?: JsonObject }
}
export type ReviewReport =
  | {
      readonly ok: true
      readonly driver: string
      readonly tools: readonly ReviewedTool[]
      /** there where `asks` was given once; `offer.rows` are its lines. Nothing is refused while some wait. */
      readonly asks?: ReviewedTool
    }
  | { readonly ok: false; readonly error: CallError }

export type PruneReport =
  /** `removed`: digests */
  | { readonly ok: true; readonly removed: readonly string[]; readonly bytes: number }
  | { readonly ok: false; readonly error: CallError }

export type ReloadReport =
  | { readonly ok: true; readonly generation: number; readonly tools: number; readonly drivers: number }
  /** `details.faults`: file, path, message and fix of each */
  | { readonly ok: false; readonly error: CallError }

export interface WorkspaceOptions extends ListOptions {
  /** default: the folder that this process is in */
  readonly workspace?: string
}
export interface LogoutDriverOptions extends WorkspaceOptions {
  readonly signal?: AbortSignal
}
export interface LoginDriverOptions extends LogoutDriverOptions {
  /** whoever is there, as far as they can be reached; default: nobody */
  readonly person?: Person
  readonly onProgress?: (progress: LoginProgress) => void
  /** wait for another login of the same that is under way; default: no */
  readonly waits?: boolean
  readonly timeoutMs?: number
}
interface LoginFigures {
  readonly state: LoginState
  /** as the proof told it */
  readonly account?: string
  /** ISO: when the tokens end, when the login was proven, when it was refreshed last */
  readonly expires?: string
  readonly proven?: string
  readonly refreshed?: string
  /** set-up steps still to do */
  readonly pending?: readonly string[]
  /** what keeps it from being signed in */
  readonly why?: string
}
export type LoginReport =
  | (LoginFigures & {
      readonly ok: true
      /** `id@major` */
      readonly driver: string
      /** somebody was signed in before */
      readonly already: boolean
      readonly method?: string
    })
  | { readonly ok: false; readonly error: CallError }
export type LogoutReport =
  | {
      readonly ok: true
      readonly driver: string
      readonly was: LoginState
      /** `yes`, or why the provider was not told; absent: it offers no way */
      readonly revoked?: string
    }
  | { readonly ok: false; readonly error: CallError }
export interface AuthListing extends LoginFigures {
  readonly driver: string
  readonly user: string
  readonly workspace: string
  /** what a person does next; absent: nothing */
  readonly next?: string
}
export type AuthReport =
  | { readonly ok: true; readonly logins: readonly AuthListing[] }
  | { readonly ok: false; readonly error: CallError }

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
