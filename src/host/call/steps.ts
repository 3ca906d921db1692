/**
 * What a call is at each step of its way. Each step takes the value before it and gives the one after it, or ends the
 * call; a value holds all that came before, so the receipt can be written from wherever the call ended.
 */
import type { EgressPolicy } from "../../egress-proxy/types.ts"
import type { ActionContract, CostClass, JsonObject, RetryRule, ToolContract } from "../../manifest/types.ts"
import type { Captured, Denial, Ending, ExitedSandbox } from "../../sandbox/backend.ts"
import type { Effect } from "../../sandbox/effects/types.ts"
import type { FolderIdentity, OpenFolder } from "../../sandbox/folder.ts"
import type { Caller } from "../access/caller.ts"
import type { Approval } from "../access/decide.ts"
import type { AccessRecord as AccessFacts } from "../access/grants.ts"
import type { AccessRecord } from "../access-record/types.ts"
import type { EffectiveTimeout } from "../invoke/retry.ts"
import type { Failure, Success } from "../failure.ts"
import type { DriverKindModule, Elicit, KindCommand } from "../drivers/kind.ts"
import type { Program } from "../drivers/program/program.ts"
import type { FoundFunctions } from "../drivers/found-functions.ts"
import type { FoundModule } from "../drivers/runner/found-module.ts"
import type { SealedSecrets } from "./sealing/secrets.ts"
import type { CallTape } from "./tape/call-tape.ts"
import type { BoundSecret } from "../secrets/bind.ts"
import type { HomeKept, OpenedHome } from "../homes/sealed-homes.ts"
import type { FrozenLayer, InstallSpec } from "../install/types.ts"
import type { RegisteredDriver } from "../registry/types.ts"
import type { Reached } from "./core.ts"
import type { Tell } from "../events.ts"
import type { Resolution } from "../resolver/types.ts"
import type { ImageProgram } from "../../sandbox/backend.ts"
import type { CallOptions, CallProfile, CallRequest, Envelope, ReportedEffect } from "../types.ts"
import type { KeptPath } from "./admission/workspace.ts"

export type Step<T> = { readonly ok: true; readonly value: T } | Failure

export interface Waits {
  /** on the clock of `performance.now` */
  readonly until: number
  /** undefined: the time is over, or the call was cancelled */
  readonly turn: (workspace: FolderIdentity) => Promise<Disposable | undefined>
}

export interface Requested {
  /** ULID */
  readonly call: string
  readonly request: CallRequest
  readonly caller: Caller
  /** a yes came with the call */
  readonly approved: boolean
  /** why what was given as input or context is no JSON */
  readonly unreadable?: string
  /** what was asked for cannot be meant, by whoever made a call of it */
  readonly refused?: Failure
  /** the folder of a call that names none, for tools that change nothing in it; absent: the one that this process is in */
  readonly empty?: string
  /** the caller's own signal, or the host closing */
  readonly signal: AbortSignal
  /** what happens, told to whoever observes the call */
  readonly tell: Tell
  /** what it asks for is recorded; `where-possible`: where the backend can */
  readonly observe?: "required" | "where-possible"
  /** it waits for its workspace; absent: it fails where others change that */
  readonly wait?: Waits
  /** how a person can be asked, where one can */
  readonly ask?: NonNullable<CallOptions["approve"]>
  /** hears what a plan would change */
  readonly onChanges?: NonNullable<CallOptions["onChanges"]>
  /** how a person can be asked for what a tool wants to know */
  readonly elicit?: Elicit
  /** what it is known by to whoever carries it out; the same for whoever asks again with its key */
  readonly operation: string
  /** what passes the proxy is kept, or answered from a recording */
  readonly tape?: CallTape
  /** absent: no program of another call asked for it */
  readonly within?: Within
  /** absent: what runs has nobody to ask for further calls */
  readonly nesting?: Nesting
}

/** Of a call that another one's program asked for. */
export interface Within {
  /** the call that asked */
  readonly parent: string
  readonly depth: number
  /** shared by the whole tree */
  readonly left: { calls: number }
  /** It may have changed what no layer holds. */
  changed(): void
}

/** Further calls, for the program of this one. */
export interface Nesting {
  /** 0: nobody's program asked for this call */
  readonly depth: number
  readonly left: { calls: number }
  /** for the receipt */
  readonly made: NestedCall[]
  /** one of them may have changed what no layer holds: the call is not run a second time */
  mayHaveChanged: boolean
  make(requested: Omit<Requested, "tell" | "nesting">): Promise<Envelope>
}
interface NestedCall {
  readonly tool: string
  readonly call: string
  readonly ok: boolean
  readonly verdict: string
  readonly receipt: string
}

export interface Admitted extends Requested {
  readonly tool: ToolContract
  /** what the tool implements, where it says so */
  readonly action?: ActionContract
  /** a frozen copy, valid against the contract */
  readonly input: JsonObject
  /** the question is about the tool: `input` is empty because none was given */
  readonly anyInput?: boolean
  /** what tools see: the host's own keys taken out, valid against `contextSchema` */
  readonly context: JsonObject
  readonly pin?: string
  readonly regions?: readonly string[]
  /** real path of the workspace when it was opened, for words and names */
  readonly workspace: string
  /** the workspace itself; whoever admitted the call closes it */
  readonly folder: OpenFolder
  /** what in the workspace is the host's while it runs */
  readonly kept: readonly KeptPath[]
  /** whose logins, homes and secrets: the caller's user, with its tenant where that is another's */
  readonly user: string
  readonly plan: boolean
}

export interface Authorized extends Admitted {
  readonly approval: Approval
  /** by which policy and grant it is let through */
  readonly access: AccessFacts
}

type Route = Extract<Resolution, { ok: true }>
/** A driver that failed the call, before the one that serves it now. */
export interface PassedOver {
  readonly driver: string
  readonly code: string
  readonly attempts: number
}
export interface Cost {
  readonly class: CostClass
  /** of one call, in thousandths of a cent of the currency; absent where the driver does not say */
  readonly units?: number
  readonly currency?: string
}
export interface Routed extends Authorized {
  readonly route: Route
  readonly passedOver?: readonly PassedOver[]
  readonly driver: RegisteredDriver
  /** absent: its kind runs none of its own */
  readonly program?: Program
  /** the module whose functions its kind calls */
  readonly module?: FoundModule
  /** functions of the program that embeds this host */
  readonly image?: ImageProgram
  readonly builtins?: FoundFunctions
  /** frozen packages that its kind runs from */
  readonly layers?: readonly FrozenLayer[]
  /** packages that must be installed before anything else is known of it */
  readonly install?: readonly InstallSpec[]
  /** version that the driver's check found */
  readonly programVersion?: string
  /** what it costs, once that was settled */
  readonly cost?: Cost
}

export interface SignedIn extends Routed {
  readonly authState: "not-needed" | "authed"
  /** of the tokens that it runs with; absent: it needs none */
  readonly freshness?: number
  /** what of the vault this call was given */
  readonly secrets: readonly BoundSecret[]
}

export interface Sealed extends SignedIn {
  readonly profile: CallProfile
  readonly profileDigest: string
  /** absent: no network */
  readonly egress?: EgressPolicy
  readonly kind: DriverKindModule
  readonly command: KindCommand
  /** what the receipt says of the command; never a value */
  readonly commandFacts: JsonObject
  readonly sealedSecrets: SealedSecrets
  readonly timeout: EffectiveTimeout
  readonly retry: RetryRule
  readonly notes: readonly string[]
}

/** What an attempt left, whether a program ran in a sandbox or the host itself acted; its layer is still there, unjudged. */
export interface Ended extends Omit<ExitedSandbox, "ok" | "ending" | "denied"> {
  readonly ending: Ending | { readonly by: "answer" }
  /** what a program printed; absent: none ran */
  readonly stdout?: Captured
  readonly stderr?: Captured
}

/** One run of the program, read by the driver's output rules. */
export interface Attempt {
  readonly exited: Ended
  /** what the receipt says of it, beside what it says of each */
  readonly facts?: JsonObject
  readonly denied: readonly Denial[]
  /** declared hosts that it was let through to */
  readonly reached: readonly Reached[]
  readonly outcome: Success | Failure
  /** of a call that is observed */
  readonly access?: AccessRecord
  /** the home that it was handed, where that is kept encrypted */
  readonly home?: OpenedHome
  /** the server still runs; unless it is kept, it ends with the attempt */
  readonly kept?: {
    /** what the receipt says where it is */
    readonly facts: JsonObject
    keep(): void
  }
}
/** What became of the driver's own state after one attempt: it settles apart from the call's effects. */
export interface HomeOutcome {
  readonly effects: readonly Effect[]
  readonly result: HomeKept
}
export interface Ran extends Sealed {
  readonly attempt: Attempt
  /** of all attempts */
  readonly reached: readonly Reached[]
  /** one for each attempt that changed the driver's home */
  readonly homes: readonly HomeOutcome[]
  readonly attempts: number
}

export interface Judged extends Ran {
  readonly effects: readonly ReportedEffect[]
  readonly verdict: Success | Failure
  /** of a tool that failed: paths that its contract gives out as files, which are committed all the same */
  readonly keptFiles?: readonly string[]
  /** what the verdict becomes once a person approves the effects */
  readonly ifApproved?: Success
  /** why the tool failed, where a person may keep what it changed all the same */
  readonly failedBefore?: string
}

/** What became of the wish to keep a judged call until a person answers. */
export type HoldOutcome =
  | { readonly ok: true; readonly id: string; readonly expires: string; readonly bytes: number; readonly layer: string }
  | { readonly ok: false; readonly message: string }

/** Keeps judged calls for later; whoever performs calls is handed one, or keeps none. */
export interface Holder {
  /** What the call needs of it belongs to the scope. */
  hold(judged: Judged, answer: Success, scope: AsyncDisposableStack): Promise<HoldOutcome>
  /** The held call's own receipt is written. */
  receipted(call: string, receipt: string): Promise<void>
}

export type Progress = Requested | Admitted | Authorized | Routed | SignedIn | Sealed | Ran | Judged
