/**
 * The one interface over sandbox backends, and the plain policy value they enforce.
 *
 * Guarantees: a backend runs the command only if every control in the profile is enforced; else `prepare`
 * answers `unavailable` and nothing was started. States are types: Prepared → Running → Exited → (committed |
 * held | discarded); each is owned by the caller and disposable at any time.
 * Does not: know tools, drivers, contracts or logins.
 */
import type { Server } from "node:net"
import type { Socket as UdpSocket } from "node:dgram"
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

export interface Job {
  readonly argv: readonly string[]
  readonly stdin: Uint8Array
  /** absolute path of the workspace on the host, a real directory */
  readonly workspace: string
  /** which folder that is; absent: the one that the path leads to when the job starts. Another one is never used. */
  readonly folder?: FolderIdentity
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
  /** the sandbox itself broke; the tool's own work is unknown */
  | { readonly by: "infrastructure"; readonly message: string }

export interface SandboxBackend extends AsyncDisposable {
  readonly name: "namespace" | "docker"
  /** Start what the first call would otherwise wait for. A failure shows at the first call. */
  start?(): Promise<void>
  /** All that does not need the call. */
  prepare(profile: SandboxProfile): Promise<PreparedSandbox | Unavailable>
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
  /** Attach workspace and job and start. `cancel` stops the whole tree at once. */
  run(job: Job, cancel: AbortSignal): Promise<ExitedSandbox | Unavailable>
}

/** The process tree is gone; its layer is still there, unjudged. */
export interface ExitedSandbox extends AsyncDisposable {
  readonly ok: true
  readonly ending: Ending
  readonly stdout: Captured
  readonly stderr: Captured
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
