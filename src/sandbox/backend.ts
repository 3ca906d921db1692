/**
 * The one interface over sandbox backends, and the plain policy value they enforce.
 *
 * Guarantees: a backend runs the command only if every control in the profile is enforced; else `prepare` or `start`
 * answers `unavailable` and nothing was started. States are types: Prepared → Running → Exited → (committed |
 * held | discarded); each is owned by the caller and disposable at any time. `profile.ts` splits a profile into the shape that
 * a sandbox is made in and the job that it is given.
 * Does not: know tools, drivers, contracts or logins.
 */
import type { Server } from "node:net"
import type { Socket as UdpSocket } from "node:dgram"
import type { Readable, Writable } from "node:stream"
import type { WriteSet } from "./effects/types.ts"
import type { FolderIdentity } from "./folder.ts"
import type { HeldCommit, HeldCommitResult, HoldAnswer, HoldRequest } from "./layers/held.ts"

export interface Limits {
  readonly wallMs: number
  readonly memoryBytes: number
  readonly pids: number
  /** total CPU time of the tree */
  readonly cpuMs?: number
  /** share of the machine: 1 = one core */
  readonly cpus?: number
  /** bytes the call may write in all: workspace layer, home layer and /tmp */
  readonly diskBytes: number
  /** bytes of stdout and of stderr kept, each */
  readonly outputBytes: number
  readonly openFiles: number
}

/** Limits a contract or the operator named: these are refused where they cannot be enforced; others are defaults. */
export type LimitName = keyof Limits

export interface Executables {
  /** absolute host path of the program that the call starts */
  readonly program: string
  /** may it have child processes at all */
  readonly children: boolean
  /** further programs it may run: name → absolute host path */
  readonly spawn: Readonly<Record<string, string>>
  /** read-only folders of the driver's own (vendored files): host path → path inside */
  readonly bundles: Readonly<Record<string, string>>
}

/**
 * Where the sandbox may listen to the host's channel. Nothing here means no network at all.
 * The backend makes listeners inside the call's own network namespace and hands them out as
 * `Prepared.channel`; whoever serves them decides what gets out.
 */
export interface NetworkChannelSpec {
  /** loopback port of the HTTP/SOCKS proxy inside the sandbox */
  readonly proxyPort: number
  /** ports that transparent listeners take connections on, any local address */
  readonly transparentPorts: readonly number[]
  /** serve UDP and TCP 53 on 127.0.0.1 */
  readonly dns: boolean
}

export interface SandboxProfile {
  readonly executables: Executables
  /** glob lists relative to the workspace root; what they hide is not visible inside */
  readonly view: { readonly read: readonly string[]; readonly deny: readonly string[] }
  /** workspace paths kept visible although `view.read` does not name them, because they may be written */
  readonly write: readonly string[]
  /** keep `$HOME` between calls in this host folder; absent: a private, empty home */
  readonly home?: { readonly dir: string; readonly keep: readonly string[] }
  readonly env: Readonly<Record<string, string>>
  readonly tty: boolean
  readonly network: NetworkChannelSpec | "none"
  readonly limits: Limits
  /** limits that must hold or the call is refused */
  readonly required: readonly LimitName[]
  /** read-only files placed in the sandbox: path inside → content (CA bundles, config) */
  readonly files: Readonly<Record<string, Uint8Array>>
}

/** What creation needs: sandboxes of equal shapes can stand in for each other. */
export interface SandboxShape {
  readonly executables: Executables
  readonly network: NetworkChannelSpec | "none"
  /** descriptors 3 (read) and 4 (write) inside, for a runner's own protocol */
  readonly privatePipes: boolean
  readonly limits: Pick<Limits, "memoryBytes" | "pids" | "cpus" | "openFiles">
  readonly required: readonly LimitName[]
}

/** The program's three streams: pipes, or one terminal of its own that is all three. */
export type Stdio =
  | { readonly kind: "pipes" }
  | {
      readonly kind: "terminal"
      readonly columns: number
      readonly rows: number
      /** as for a person: what is typed is shown, and lines end as a screen wants them; else output comes as written */
      readonly echo: boolean
    }

/** What one run is given. */
export interface Job {
  readonly argv: readonly string[]
  readonly env: SandboxProfile["env"]
  readonly files: SandboxProfile["files"]
  /**
   * absolute path of a real directory, or which directory that must be; by its path it is the one that is there when
   * the job starts, and another one is never used
   */
  readonly workspace: string | FolderIdentity
  readonly view: SandboxProfile["view"]
  readonly write: SandboxProfile["write"]
  readonly home?: NonNullable<SandboxProfile["home"]>
  readonly limits: Pick<Limits, "wallMs" | "cpuMs" | "diskBytes">
  readonly stdio: Stdio
}

/** Listeners that live inside the call's network namespace and are served from outside it. */
export interface Channel {
  readonly proxy: Server
  readonly transparent: ReadonlyMap<number, Server>
  readonly dnsUdp?: UdpSocket
  readonly dnsTcp?: Server
}

export interface Denial {
  readonly layer: "egress" | "exec" | "fs" | "limit"
  readonly reason: string
  readonly target: string
  readonly count: number
}

export type Unavailable = {
  readonly ok: false
  /** the control that cannot be enforced here */
  readonly control: string
  readonly message: string
  readonly fix: string
}

export interface Captured {
  readonly bytes: Uint8Array
  /** the stream went on after the cap */
  readonly truncated: boolean
  readonly total: number
}

export type Ending =
  | { readonly by: "exit"; readonly code: number }
  | { readonly by: "signal"; readonly signal: string }
  | { readonly by: "limit"; readonly limit: "wall" | "memory" | "pids" | "cpu" | "disk" | "output" }
  | { readonly by: "cancelled" }
  /** a process was stopped for making a child process that the profile forbids */
  | { readonly by: "exec-denied" }
  /** the sandbox itself broke; the tool's own work is unknown, unless its program was never started */
  | { readonly by: "infrastructure"; readonly message: string; readonly started?: false }

export interface SandboxBackend extends AsyncDisposable {
  readonly name: "namespace" | "docker"
  /** Start what the first call would otherwise wait for. A failure shows at the first call. */
  start?(): Promise<void>
  /** All that does not need the call. `cancel` ends a wait for a sandbox. */
  prepare(shape: SandboxShape, cancel?: AbortSignal): Promise<PreparedSandbox | Unavailable>
  /** Finish or undo what a crashed host left, for this workspace. Called before anything else touches it. */
  recover(workspace: string | FolderIdentity, cancel?: AbortSignal): Promise<void>
  /** Write a layer that a call on this data folder left held, all of it or nothing; whichever backend ran the call. */
  commitHeld(held: HeldCommit): Promise<HeldCommitResult>
  /** Prove each control with a canary that must fail. */
  examine(): Promise<readonly ControlReport[]>
}

export interface PreparedSandbox extends AsyncDisposable {
  readonly ok: true
  readonly channel: Channel | "none"
  /** Attach workspace and job and start, once. `cancel` stops the whole tree at once, whenever it comes. */
  start(job: Job, cancel: AbortSignal): Promise<RunningSandbox | Unavailable>
}

/** The program runs. Disposing ends it and throws its layer away, unless that was settled. */
export interface RunningSandbox extends AsyncDisposable {
  readonly ok: true
  /** Ended, the program reads to the end of its input. What a program that is gone does not read is lost. */
  readonly stdin: Writable
  /** A reader that stops costs a pipe's size and a buffer's: the program waits. At its end the streams end. */
  readonly stdout: Readable
  readonly stderr: Readable
  /** there where the job asked for one: `stdin` and `stdout` are then the terminal's */
  readonly terminal?: { resize(columns: number, rows: number): void }
  /** there where the shape asked for them */
  readonly pipes?: { readonly toTool: Writable; readonly fromTool: Readable }
  /** To the program's first process, where it still lives. */
  signal(name: NodeJS.Signals): void
  /** End the whole tree now; the first reason given is how the run ended, unless it had ended. */
  stop(ending: Ending): void
  /** The tree is gone and the layer sealed, whether or not the streams were read. */
  readonly exited: Promise<ExitedSandbox | Unavailable>
}

/** The process tree is gone; its layer is still there, unjudged. */
export interface ExitedSandbox extends AsyncDisposable {
  readonly ok: true
  readonly ending: Ending
  readonly denied: readonly Denial[]
  readonly usage: { readonly wallMs: number; readonly cpuMs?: number; readonly peakMemoryBytes?: number }
  readonly writes: WriteSet
  /** what the call changed in its home, of what `home.keep` names; absent where no home is kept */
  readonly home?: WriteSet
  /** Keep that, all of it or nothing, whatever becomes of the workspace's layer. Before `commit` and `discard`. */
  keepHome(): Promise<CommitResult>
  /** Write the layer to the workspace, all of it or nothing. `cancel` ends a wait for another commit, and no more. */
  commit(cancel?: AbortSignal): Promise<CommitResult>
  /** Keep the layer on disk beyond the call, with no process alive. Where it cannot be, it is there as before. */
  hold(request: HoldRequest): Promise<HoldAnswer>
  /** Throw the layer away. Also what disposing does. */
  discard(): Promise<void>
}

/** An exited sandbox together with what its program printed (`collect.ts`). */
export interface CollectedSandbox extends ExitedSandbox {
  readonly stdout: Captured
  readonly stderr: Captured
}

export type CommitResult =
  | { readonly ok: true }
  | { readonly ok: false; readonly reason: "conflict"; readonly paths: readonly string[] }
  /** nothing was written */
  | { readonly ok: false; readonly reason: "failed"; readonly message: string }
  /** whoever wrote it broke off: all of it, nothing or a part is there until the next call's recovery */
  | { readonly ok: false; readonly reason: "unknown"; readonly message: string }

export interface ControlReport {
  /** stable name, e.g. `network-isolated`, `memory-limit` */
  readonly control: string
  readonly state: "enforced" | "absent" | "degraded"
  /** what the canary did and what happened */
  readonly evidence: string
  /** what to do where it does not hold */
  readonly fix?: string
}
