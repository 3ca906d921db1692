/** A call: what is asked, how its caller is reached meanwhile, and what is remembered of it. */
import type { JsonObject, JsonValue } from "../../manifest/types.ts"
import type { Attachment } from "../attachment.ts"
import type { CallEvent } from "../events.ts"
import type { ApprovalQuestion } from "./approval.ts"
import type { ListOptions } from "./asking.ts"
import type { ContentChange, Envelope } from "./envelope.ts"

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

/** What a tool's other side wants to know from a person, as a flat JSON Schema. */
export interface ElicitQuestion {
  readonly message: string
  readonly schema: JsonObject
}

export type ElicitAnswer =
  | { readonly action: "accept"; readonly content: JsonObject }
  | { readonly action: "decline" | "cancel" }

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
