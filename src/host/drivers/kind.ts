/**
 * The seam between a call and the kinds of drivers: all that a call, a route or a listing may know of a kind.
 *
 * Guarantees: a kind is asked the same questions in the same order whatever it is: does an entry hold against its
 * contract, is what it runs there, what must be sealed, what is run and how its result is read, what goes into the receipt.
 * It answers with plain data; what is sealed, run, judged and committed is decided by the call alone, so that no kind
 * can widen anything.
 */
import type { Tape } from "../../egress-proxy/tape/words.ts"
import type { EgressEntry } from "../../manifest/values/egress-entry.ts"
import type { TemplatePath } from "../../manifest/templates/template.ts"
import type {
  CliSandbox,
  Diagnostic,
  DriverContract,
  DriverKind,
  HttpSpec,
  Implementation,
  JsonObject,
  JsonValue,
  OutputFormat,
  ToolContract,
} from "../../manifest/types.ts"
import type { Dialled, HostedDial } from "../../egress-proxy/serve/hosted.ts"
import type { Captured, Executables, ImageProgram, ImageQuestion, Unavailable, Waits } from "../../sandbox/backend.ts"
import type { HostedFiles } from "../../sandbox/layers/hosted/layer.ts"
import type { Readable, Writable } from "node:stream"
import type { OperatorConfig } from "../config/types.ts"
import type { Attachment } from "../attachment.ts"
import type { Tell } from "../events.ts"
import type { Failure, Success } from "../failure.ts"
import type { Installs } from "../install/installs.ts"
import type { FrozenLayer, InstallSpec } from "../install/types.ts"
import type { ProtectedResource } from "./resource.ts"
import type { Availability, CallOptions } from "../types.ts"
import type { CliProgram } from "./cli/bind.ts"
import type { Program } from "./program/program.ts"
import type { Discovered } from "./amplifier/discover.ts"
import type { BuiltinFunctions } from "./embedded/functions.ts"
import type { FoundFunctions } from "./found-functions.ts"
import type { FoundModule } from "./runner/found-module.ts"
import type { RunInModule } from "./runner/run-in-module.ts"
import type { VersionChecks, VersionStore } from "./program/version-check.ts"

/** One `implements[]` entry that holds against one registered contract, compiled by its kind. */
export interface Binding {
  readonly tool: ToolContract
  readonly implementation: Implementation
  /** values without which no call can be made: the driver's names, where neither template nor contract has a default */
  readonly needs: readonly TemplatePath[]
  readonly cli?: CliProgram
}

export interface BoundEntry {
  readonly binding: Binding
  readonly diagnostics: readonly Diagnostic[]
}

export type DriverAvailability =
  | (Extract<Availability, { available: true }> & {
      readonly program?: Program
      /** the module whose functions it calls, and what runs it */
      readonly module?: FoundModule
      /** what the image starts that it runs from */
      readonly image?: ImageProgram
      /** functions of the host, or of the program that embeds it, by tool */
      readonly builtins?: FoundFunctions
      /** packages that it runs from, for its kind to mount */
      readonly layers?: readonly FrozenLayer[]
      /** not installed yet, and the operator lets calls install: the call that chooses it does, and asks again */
      readonly install?: readonly InstallSpec[]
    })
  | Extract<Availability, { available: false }>

/** What a kind may use to find out whether a driver can serve. */
export interface Surroundings {
  readonly folders: readonly string[]
  readonly versions: VersionChecks
  /** packages, installed and frozen */
  readonly installs: Installs
  /** which is taken where a program is on this machine and in a driver's layer */
  readonly prefer: OperatorConfig["install"]["prefer"]
  /** the operator lets a call install what its driver needs */
  readonly mayInstall: boolean
  /** a function of a module, without network, secrets or workspace */
  readonly runInModule: RunInModule
  readonly interpreters: OperatorConfig["interpreters"]
  /** functions of the program that embeds this host, by the name that manifests have for them */
  readonly builtins: BuiltinFunctions
  /** further names of this host, by the operator */
  readonly builtinHosts: OperatorConfig["builtinHosts"]
  readonly talk: Talk
  readonly imageProgram: AskImage
  /** asked before and after each call of a module of Amplifier's */
  readonly amplifierHooks: OperatorConfig["amplifierHooks"]
  /** what a module of the operator's mounted when it was registered; absent: it is looked into when it is asked for */
  readonly amplifierTools?: (driver: DriverContract) => Discovered | undefined
  /** short words that outlive the process, by hex digests of what they were found for */
  readonly remembered?: VersionStore
}

/** A talk with a driver's program outside any call: no network, no secrets, an empty workspace. */
export interface TalkRequest extends Pick<ConversationCommand, "argv" | "converse"> {
  readonly driver: DriverContract
  readonly executables: Executables
  /** variables that the driver sets */
  readonly env: Readonly<Record<string, string>>
  /** absent: in its empty workspace */
  readonly startsIn?: string
}
/** What an image starts, by the backend that runs calls; the failure says where that has none, or not this one. */
export type AskImage = (
  question: ImageQuestion,
) => Promise<{ readonly ok: true; readonly value: ImageProgram } | Pick<Unavailable, "ok" | "message" | "fix">>
export type Talk = (request: TalkRequest) => Promise<Success | Failure>

/** Which of a driver's packages are asked for. */
export interface WantedPackages {
  readonly prefer: OperatorConfig["install"]["prefer"]
  /** also where the program is on this machine, or comes along */
  readonly atHandToo?: boolean
}

/** What a driver declares and this host has no control for. */
export interface Unenforceable {
  readonly control: string
  readonly reason: string
  readonly fix: string
}

/** A call as far as a kind has a say in it. */
export interface KindCall {
  readonly tool: ToolContract
  readonly driver: { readonly key: string; readonly contract: DriverContract }
  readonly binding: Binding
  /** valid against the contract, under the driver's names (C-34) */
  readonly input: JsonObject
  readonly context: JsonObject
  /** what the other side knows the call by: the same in all of its attempts, and for whoever asks again with its key */
  readonly operation: string
  /** what `available` found; absent: the kind runs none of its own */
  readonly program?: Program
  readonly layers?: readonly FrozenLayer[]
  readonly module?: FoundModule
  readonly image?: ImageProgram
  readonly builtins?: FoundFunctions
}

/** What must be in the sandbox, in the manifest's own words; never more than the driver declares for this tool. */
export interface Needs {
  /** absent: no program is run, and no sandbox is made */
  readonly executables?: Executables
  readonly fs: CliSandbox["fs"]
  readonly env: CliSandbox["env"]
  readonly egress: readonly EgressEntry[]
  readonly tty: boolean
  /** where the program is started; absent: in the workspace */
  readonly startsIn?: string
  /** descriptors 3 and 4, for a protocol that leaves the tool's own streams alone */
  readonly privatePipes?: boolean
  readonly notes: readonly string[]
}

/**
 * What is run in it, and how: once, its output read at the end; with the host talking to it while it runs; or nothing at
 * all, where the host itself does what is asked, with no more than it is handed.
 */
export type KindCommand = ProgramCommand | ConversationCommand | HostedCommand

export interface ProgramCommand {
  readonly run: "program"
  readonly argv: readonly string[]
  readonly stdin: Uint8Array
  /** what its result is read as */
  readonly format: OutputFormat
  /** who has its streams while it runs; absent: they are collected, and `stdin` is fed */
  readonly attachment?: Attachment
  /** where the tool fails by its own word, a person who is asked may keep what it changed all the same */
  readonly keepsAnyway?: true
  /** of a program that ended by itself; `signal`: aborted when the call is cancelled or its time is over */
  read(result: KindResult, signal: AbortSignal): Success | Failure | Promise<Success | Failure>
}

export interface ConversationCommand {
  readonly run: "conversation"
  readonly argv: readonly string[]
  /** path inside → content */
  readonly files: Readonly<Record<string, Uint8Array>>
  /** the program may be started before there is a call, by these words and files; absent: it is started with its call */
  readonly waits?: Pick<Waits, "argv" | "files"> & {
    /** folders of this machine that hold what it imports then */
    readonly imports: readonly string[]
  }
  /**
   * The host's side. What it answers is the call's outcome, unless the run ends by a limit, a violation or a cancel; then
   * the program is ended. A program that is gone ends its streams, and this must then answer too.
   */
  converse(session: Session): Promise<Success | Failure>
  /** the program may be kept for the next call of the same driver, workspace and user; absent: it ends with its call */
  readonly keeps?: Keeps
}

/** How a program is talked with that outlives its call. */
export interface Keeps {
  /** Once, for a program that was just started. */
  open(streams: Required<Pick<Session, "stdin" | "stdout">>): Promise<KeptTalk>
  /** One call over a talk that `open` of the same driver made. */
  converse(talk: KeptTalk, session: Omit<Session, "stdin" | "stdout" | "pipes">): Promise<KeptAnswer>
}

/** What a kind knows of a program that is kept. Between calls whatever the program says is heard by nobody. */
export type KeptTalk = AsyncDisposable

export interface KeptAnswer {
  readonly answer: Success | Failure
  /**
   * `answered`: what was asked has its answer, and the program can be asked again; `unasked`: it could not be talked with,
   * and nothing was asked of it; `unknown`: all else, after which it is of no more use
   */
  readonly left: "answered" | "unasked" | "unknown"
}

/** A program that runs, as far as a conversation may use it. Whatever it says is a stranger's word. */
export interface Session {
  readonly stdin: Writable
  /** where the private pipes carry the talk, its output is the tool's own, and collected elsewhere */
  readonly stdout?: Readable
  readonly pipes?: { readonly toTool: Writable; readonly fromTool: Readable }
  /** aborted when nobody waits for the answer any longer */
  readonly signal: AbortSignal
  readonly tell: Tell
  readonly review: Review
  /** absent: nobody is there to be asked */
  readonly elicit?: Elicit
  /** absent: it may ask for no further call */
  readonly callTool?: CallTool
}

/** Another tool, as a program asks for it: a stranger's word. */
export interface AskedTool {
  readonly tool: JsonValue
  readonly input: JsonValue
}
export type ToolAnswer =
  | { readonly ok: true; readonly value: JsonValue }
  | {
      readonly ok: false
      readonly error: {
        readonly code: string
        readonly class: string
        readonly message: string
        readonly retryable: boolean
      }
    }
/** Never rejects for what a call can end with. `signal`: nobody waits for the answer any longer. */
export type CallTool = (asked: AskedTool, signal: AbortSignal) => Promise<ToolAnswer>

export interface HostedCommand {
  readonly run: "hosted"
  /** what stands for a command line where one is shown; never a secret */
  readonly shown: readonly string[]
  /** what acts is on this machine and may be handed files: `Desk.filesAt` */
  readonly takesFiles?: boolean
  /** a second attempt does no harm, whatever the contract says: the other side knows it by its key */
  readonly repeatable?: boolean
  /**
   * The whole of what is done, once for each attempt. Its answer is the call's outcome, unless the call is cancelled or its
   * time is over: then nobody waits for it, and all that it was handed is gone.
   */
  act(desk: Desk): Promise<Success | Failure>
}

/** All that a kind without a program has to act with. */
export interface Desk {
  /** aborted when the call is cancelled or its time is over */
  readonly signal: AbortSignal
  /** bytes of an answer that may be kept */
  readonly outputBytes: number
  readonly tell: Tell
  readonly review: Review
  /** absent: nobody is there to be asked */
  readonly elicit?: Elicit
  readonly outlet: Outlet
  readonly pace: Pace
  /** The value of a secret that the driver names, to be sent to this host now; undefined where there is none for it. */
  secret(name: string, host: string): Promise<string | undefined>
  /** the workspace, through the call's view; what is written lies in a layer that is judged and committed as always */
  readonly layer: HostedFiles
  /** folder of this machine with the contract's files, where it has any */
  readonly filesAt?: string
  /** A person's answer to what the tool asks, which fits its output; waits for it as long as the call may take. Absent: nobody can be asked. */
  askPerson?(): Promise<Success | Failure>
  /** What the receipt says of this attempt, beside what it says of each: words and numbers of ours, never a value. */
  note(facts: JsonObject): void
}

/** Requests one after the other, as the driver declares or the other side asks; shared by all calls that it is one of. */
export interface Pace {
  /** Waits for this request's turn. A failure: it would take too long, and nothing may be sent. */
  turn(rate: HttpSpec["rateLimit"]): Promise<Failure | undefined>
  /** The other side asked to be left alone; later calls hear of it. */
  leaveAlone(ms: number): Promise<void>
}

/** The one way out: whatever is asked of it is decided, dialled, counted and recorded as a sandbox's dial is. */
interface Outlet {
  /** what passes is kept, or answered from a recording */
  readonly tape?: Tape
  connect(to: HostedDial): Promise<Dialled>
}

export type Elicit = NonNullable<CallOptions["elicit"]>

/**
 * What the driver's other side says of itself under a name, against what was accepted of it: the first word counts as
 * accepted, another one is refused until a person accepts it.
 */
export type Review = (
  name: string,
  offer: JsonObject,
) => Promise<Answer<{ readonly digest: string; readonly first: boolean }>>

/** A program that ended by itself. */
export interface KindResult {
  readonly exitCode: number
  readonly stdout: Captured
  readonly stderr: Captured
}

export type Answer<T> = { readonly ok: true; readonly value: T } | Failure

/** What whoever wrote the driver does where its tool did more than was declared; absent: nothing that it could declare. */
export interface Remedies {
  readonly write?: string
  readonly exec?: string
  /** of hosts; absent: the proxy's own words, which name the entry */
  readonly egress?: string
}

export interface DriverKindModule {
  readonly kind: DriverKind
  /** in the words of its manifests; absent: what the table of reasons says */
  remedies?(driver: DriverContract, tool: ToolContract): Remedies
  /** are the packages that a runner needs installed beside its own? */
  readonly takesPackages?: boolean
  /** may it run on the root of an image that its runner names? */
  readonly takesImage?: boolean
  /** the image that its program comes from, which is no runner's */
  image?(driver: DriverContract): string | undefined
  /** may its code bring transforms that this host does not know? */
  readonly bringsTransforms: boolean
  bind(driver: DriverContract, index: number, tool: ToolContract, implementation: Implementation): BoundEntry
  /** can what it runs reach files of this machine? absent: it can */
  reachesFiles?(driver: DriverContract): boolean
  /** the address that the driver talks to, for those that talk to one */
  service?(driver: DriverContract): string | undefined
  /** what takes tokens and says where they come from, for those that talk to such a service */
  resource?(driver: DriverContract): ProtectedResource | undefined
  unenforceable(driver: DriverContract): Unenforceable | undefined
  /** packages that must be installed before it can serve; absent: it needs none */
  packages?(driver: DriverContract, wanted: WantedPackages): readonly InstallSpec[]
  available(driver: DriverContract, here: Surroundings, bindings: readonly Binding[]): Promise<DriverAvailability>
  needs(call: KindCall, findProgram: (name: string) => Program | undefined): Answer<Needs>
  command(call: KindCall): Answer<KindCommand>
  /** the command as the driver writes it, for a call whose input is not there yet */
  outline(call: KindCall): readonly string[]
  /** what the receipt says of the command beside what it says of every call; never a value */
  evidence(call: KindCall, command: KindCommand): JsonObject
}
